/** @module Limits the number of open connections, and tracks the requests on each. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Maximum numbers of open connections. */
export interface ConnectionLimits {
  readonly max: number;
  /** Maximum for connections with the same client key. */
  readonly maxPerClient: number;
}

/** A request and its response. */
export interface Exchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  /** Resolves when the response is closed. A promise, because Node.js warns about more than 10 listeners. */
  readonly closed: Promise<void>;
}

/**
 * Event of a response whose payload has been sent. The response may end later, after the request's body is discarded.
 */
export const RESPONSE_SENT = Symbol('answered');

/** Slots for probes, in addition to the regular limits. A probe needs its slot for milliseconds. */
const PROBE_RESERVE: ConnectionLimits = { max: 64, maxPerClient: 4 };

const reserved = new WeakSet<Socket>();

/** Returns whether a connection has a slot for probes only, because all regular slots were taken. */
export const isProbeOnly = (socket: Socket): boolean => reserved.has(socket);

/** A set of connection slots. When all are taken, an idle connection is closed to free a slot. */
class ConnectionSlots {
  readonly #limits: ConnectionLimits;
  readonly #clients = new Map<Socket, string | undefined>();
  readonly #ofClient = new Map<string, Set<Socket>>();
  /** Idle connections, the longest idle first. */
  readonly #idle = new Set<Socket>();

  constructor(limits: ConnectionLimits) {
    this.#limits = limits;
  }

  /**
   * Assigns a slot to a connection.
   *
   * @returns false if no slot is free and none can be freed
   */
  take(socket: Socket, client: string | undefined): boolean {
    const { max, maxPerClient } = this.#limits;
    const own = client === undefined ? undefined : (this.#ofClient.get(client) ?? new Set());
    if (own && own.size >= maxPerClient && !this.#closeIdleOf(own)) return false;
    if (this.#clients.size >= max && !this.#closeIdleOf(this.#idle)) return false;
    this.#clients.set(socket, client);
    if (client !== undefined && own) this.#ofClient.set(client, own.add(socket));
    this.#idle.add(socket);
    socket.once('close', () => this.#leave(socket));
    return true;
  }

  /** Marks a connection as idle or busy. Only idle connections are closed to free a slot. */
  setIdle(socket: Socket, idle: boolean): void {
    this.#idle.delete(socket);
    if (idle && this.#clients.has(socket)) this.#idle.add(socket);
  }

  #closeIdleOf(sockets: ReadonlySet<Socket>): boolean {
    for (const socket of sockets) {
      if (!this.#idle.has(socket)) continue;
      socket.destroy();
      this.#leave(socket);
      return true;
    }
    return false;
  }

  #leave(socket: Socket): void {
    const client = this.#clients.get(socket);
    this.#clients.delete(socket);
    this.#idle.delete(socket);
    if (client === undefined) return;
    const own = this.#ofClient.get(client);
    own?.delete(socket);
    if (own?.size === 0) this.#ofClient.delete(client);
  }
}

interface Connection {
  readonly slots: ConnectionSlots;
  /** The requests in progress, in order. There is more than one if the client pipelines. */
  readonly exchanges: Exchange[];
  unanswered: number;
}

/** Tracks open connections and the requests on them, and enforces the limits. */
export class Connections {
  readonly #regular: ConnectionSlots;
  readonly #reserve = new ConnectionSlots(PROBE_RESERVE);
  readonly #open = new Map<Socket, Connection>();

  constructor(limits: ConnectionLimits) {
    this.#regular = new ConnectionSlots(limits);
  }

  /**
   * Assigns a slot to a new connection. When all regular slots are taken, it assigns one for probes only. When those
   * are taken, too, it closes the connection.
   *
   * @param client client key of the address; undefined if the limit per client does not apply
   */
  open(socket: Socket, client: string | undefined): void {
    const slots = [this.#regular, this.#reserve].find((group) => group.take(socket, client));
    if (!slots) return void socket.destroy();
    if (slots === this.#reserve) reserved.add(socket);
    this.#open.set(socket, { slots, exchanges: [], unanswered: 0 });
    socket.once('close', () => this.#open.delete(socket));
  }

  /** Counts a request as in progress until its response has been sent. */
  begin(req: IncomingMessage, res: ServerResponse): void {
    const { socket } = req;
    const connection = this.#open.get(socket);
    if (!connection) return;
    const { slots, exchanges } = connection;
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    const exchange = { req, res, closed };
    exchanges.push(exchange);
    connection.unanswered += 1;
    slots.setIdle(socket, false);
    res.once(RESPONSE_SENT, () => {
      connection.unanswered -= 1;
      if (connection.unanswered === 0) slots.setIdle(socket, true);
    });
    res.once('close', () => {
      exchanges.splice(exchanges.indexOf(exchange), 1);
      res.emit(RESPONSE_SENT);
      resolve();
    });
  }

  /** Returns the requests in progress on a connection, in order. */
  exchangesOn(socket: Socket): readonly Exchange[] {
    return [...(this.#open.get(socket)?.exchanges ?? [])];
  }

  /** Closes every connection without a request in progress, including those that never sent one. */
  closeIdle(): void {
    for (const [socket, { exchanges }] of this.#open) if (exchanges.length === 0) socket.destroy();
  }
}
