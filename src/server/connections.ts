import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** The open connections: how many there may be, what is under way on each, and which makes room for a new one. */

export interface ConnectionLimits {
  readonly max: number;
  /** For connections with the same client key. */
  readonly maxPerClient: number;
}

/** A request and its answer. */
export interface Exchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
}

/** The event of a response whose answer is out, although it ends only when the request's body has been discarded. */
export const ANSWERED = Symbol('answered');

/** Connections beyond the regular limits. Each is replaced soon: a probe needs its place for milliseconds. */
const RESERVE: ConnectionLimits = { max: 64, maxPerClient: 4 };

const reserved = new WeakSet<Socket>();

/** Returns whether a connection has a place for probes only, because the regular ones were taken. */
export const isReserved = (socket: Socket): boolean => reserved.has(socket);

/** Connections within limits. When they are full, one without a request under way is closed for a new one. */
class Places {
  readonly #limits: ConnectionLimits;
  readonly #clients = new Map<Socket, string | undefined>();
  readonly #ofClient = new Map<string, Set<Socket>>();
  /** The longest idle first. */
  readonly #idle = new Set<Socket>();

  constructor(limits: ConnectionLimits) {
    this.#limits = limits;
  }

  /** @returns false when there is no place and none can be made */
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
  readonly places: Places;
  /** Those under way, in order. More than one: the client pipelines. */
  readonly exchanges: Exchange[];
  unanswered: number;
}

export class Connections {
  readonly #regular: Places;
  readonly #reserve = new Places(RESERVE);
  readonly #open = new Map<Socket, Connection>();

  constructor(limits: ConnectionLimits) {
    this.#regular = new Places(limits);
  }

  /**
   * Gives a new connection a place, one for probes only when the regular places are taken, or closes it.
   *
   * @param client the key that its address counts for; undefined when the limit per client does not apply
   */
  open(socket: Socket, client: string | undefined): void {
    const places = [this.#regular, this.#reserve].find((some) => some.take(socket, client));
    if (!places) return void socket.destroy();
    if (places === this.#reserve) reserved.add(socket);
    this.#open.set(socket, { places, exchanges: [], unanswered: 0 });
    socket.once('close', () => this.#open.delete(socket));
  }

  /** Counts a request as under way until its answer is out. */
  begin(req: IncomingMessage, res: ServerResponse): void {
    const { socket } = req;
    const connection = this.#open.get(socket);
    if (!connection) return;
    const { places, exchanges } = connection;
    const exchange = { req, res };
    exchanges.push(exchange);
    connection.unanswered += 1;
    places.setIdle(socket, false);
    res.once(ANSWERED, () => {
      connection.unanswered -= 1;
      if (connection.unanswered === 0) places.setIdle(socket, true);
    });
    res.once('close', () => {
      exchanges.splice(exchanges.indexOf(exchange), 1);
      res.emit(ANSWERED);
    });
  }

  /** Returns what is under way on a connection, in order. */
  exchangesOn(socket: Socket): readonly Exchange[] {
    return [...(this.#open.get(socket)?.exchanges ?? [])];
  }

  /** Closes every connection without a request under way, including those that never sent one. */
  closeIdle(): void {
    for (const [socket, { exchanges }] of this.#open) if (exchanges.length === 0) socket.destroy();
  }
}
