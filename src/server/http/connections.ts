/** @module Tracks connections: what each may hold, and its requests, one by one. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ServiceError } from '../../tables/errors.ts';
import { probeConnections } from '../middleware.ts';
import { RESPONSE_SENT, TOO_OFTEN } from '../respond/error-handler.ts';
import { sentBytes } from '../respond/response.ts';
import { monitorRate } from './byte-rate.ts';
import { ConnectionSlots, connectionLimits, PROBE_RESERVE } from './connection-slots.ts';
import {
  type ClientError,
  closeGently,
  fromParserError,
  sendRawError,
  stopParser,
} from './raw-error-response.ts';
import { StartQueue } from './start-queue.ts';

/** Maximum unanswered requests of a connection. A client that pipelines more is disconnected. */
const MAX_UNANSWERED = 4;

/**
 * Minimum rate of a response in bytes per second. Slower clients are disconnected. The kernel
 * forwards the data of a slow reader in pieces of up to 2 MiB, so that the rate is averaged over a
 * long time.
 */
const MIN_RESPONSE_BYTES_PER_SECOND = 4096;

/** Statuses of requests for which nothing was done: unknown path, rate limit, head too long. */
const REFUSED = [404, 429, 431];

/** A request and its response. */
interface Exchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  /** Resolves when the response is closed. A promise: Node.js warns of more than 10 listeners. */
  readonly closed: Promise<void>;
  /** Starts the handlers; undefined if they have started. */
  start: (() => void) | undefined;
}

interface Connection {
  /** Client key of the address; undefined if many clients share the address. */
  readonly client: string | undefined;
  readonly slots: ConnectionSlots;
  /** Requests without a complete response, in order. Pipelining makes more than one. */
  readonly exchanges: Exchange[];
  /** The last request that was received, which may have a response. */
  last: IncomingMessage | undefined;
  unanswered: number;
  /** Number of requests whose response has been sent. */
  answered: number;
  /** Whether it closes after the response to an error. */
  isRejected: boolean;
}

/** Tracks open connections and the requests on them, and enforces the limits. */
export class Connections {
  readonly #regular = new ConnectionSlots(connectionLimits());
  readonly #reserve = new ConnectionSlots(PROBE_RESERVE);
  readonly #open = new Map<Socket, Connection>();
  readonly #starts = new StartQueue();
  readonly #rateWindowMs: number;
  readonly #clientKey: (req: IncomingMessage) => string;
  #closing = false;

  /** @param rateWindowMs time over which the rate of responses is averaged, in ms */
  constructor(rateWindowMs: number, clientKey: (req: IncomingMessage) => string) {
    this.#rateWindowMs = rateWindowMs;
    this.#clientKey = clientKey;
  }

  /**
   * Assigns a slot to a new connection. When all regular slots are taken, it assigns one for probes
   * only. When those are taken, too, it closes the connection.
   */
  open(socket: Socket, client: string | undefined): void {
    const slots = [this.#regular, this.#reserve].find((group) => group.take(socket, client));
    if (!slots) return void socket.destroy();
    if (slots === this.#reserve) probeConnections.add(socket);
    const connection: Connection = {
      client,
      slots,
      exchanges: [],
      last: undefined,
      unanswered: 0,
      answered: 0,
      isRejected: false,
    };
    this.#open.set(socket, connection);
    // The unsent part of a response takes memory, and its files take disk space.
    let answeredBefore = 0;
    const sentOfResponse = (): number | undefined => {
      // The client may have read all that there was, and waited before it sent another request.
      const isSameResponse = connection.answered === answeredBefore;
      answeredBefore = connection.answered;
      return isSameResponse && socket.writableLength > 0 ? sentBytes(socket) : undefined;
    };
    const endMonitor = monitorRate(
      sentOfResponse,
      { bytesPerSecond: MIN_RESPONSE_BYTES_PER_SECOND, windowMs: this.#rateWindowMs },
      () => socket.destroy(),
    );
    socket.once('close', () => {
      endMonitor();
      this.#open.delete(socket);
    });
  }

  /**
   * Adds a request, and calls `start` when the responses to all earlier requests of the connection
   * have been sent and it is the turn of its client. Closes the connection if too many requests
   * have no response.
   */
  add(req: IncomingMessage, res: ServerResponse, start: () => void): void {
    const { socket } = req;
    const connection = this.#open.get(socket);
    if (!connection || socket.destroyed) return;
    const { slots, exchanges } = connection;
    if (exchanges.length >= MAX_UNANSWERED) {
      stopParser(socket);
      socket.destroy();
      return;
    }
    connection.last = req;
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    const exchange: Exchange = { req, res, closed, start };
    exchanges.push(exchange);
    if (this.#closing) closeAfterLast(connection);
    connection.unanswered += 1;
    slots.setIdle(socket, false);
    res.once(RESPONSE_SENT, () => {
      connection.unanswered -= 1;
      if (connection.unanswered === 0) slots.setIdle(socket, true);
    });
    res.once('close', () => {
      exchanges.splice(exchanges.indexOf(exchange), 1);
      connection.answered += 1;
      res.emit(RESPONSE_SENT);
      resolve();
      if (socket.writable) this.#startFirst(exchanges);
    });
    if (exchanges.length === 1) this.#startFirst(exchanges);
  }

  /** Lets the first request of a connection wait for its start. */
  #startFirst([first]: readonly Exchange[]): void {
    if (!first?.start) return;
    const client = this.#clientKey(first.req);
    const slowDown = (): void => this.#starts.slowDown(client);
    first.res.once(TOO_OFTEN, slowDown);
    first.res.once(RESPONSE_SENT, () => {
      if (REFUSED.includes(first.res.statusCode)) slowDown();
    });
    this.#addStart(client, first.req.socket, first.closed, () => {
      const { start } = first;
      first.start = undefined;
      start?.();
    });
  }

  /** Calls `start` when it is the turn of the client, unless `closed` has resolved. */
  #addStart(client: string, socket: Socket, closed: Promise<unknown>, start: () => void): void {
    const startOpen = (): void => {
      if (!socket.destroyed) start();
    };
    void closed.then(() => this.#starts.forget(client, startOpen));
    this.#starts.add(client, startOpen);
  }

  /**
   * Rejects what a connection has sent: sends an error response after the responses to earlier
   * requests, and closes the connection. After an error of a head, this waits for the turn of the
   * client. Clients that send much of a body, or disconnect, do not flood.
   */
  reject(socket: Socket, error: ClientError | ServiceError): void {
    const connection = this.#open.get(socket);
    // The timeout of a connection without a request is no error: browsers open some in advance.
    if (!connection || error.code === 'ECONNRESET' || socket.bytesRead === 0) return void socket.destroy();
    if (connection.isRejected) return;
    connection.isRejected = true;
    stopParser(socket);
    const { client, exchanges, last } = connection;
    const isBody = last?.complete === false;
    const broken = isBody ? exchanges.find(({ req }) => req === last) : undefined;
    if (broken) broken.start = undefined;
    const refusal = fromParserError(error); // the error has 64 KiB of the request, which would be kept until the response
    const respond = (): void => sendRawError(socket, refusal);
    afterResponse(exchanges.at(broken ? -2 : -1), () => {
      if (isBody && broken?.res.headersSent !== false) return closeGently(socket); // it has a response
      if (isBody || client === undefined) return respond();
      const closed = new Promise((resolve) => socket.once('close', resolve));
      this.#addStart(client, socket, closed, respond);
      this.#starts.slowDown(client);
    });
  }

  /** Sends an error response after all others of a connection, and closes it. */
  rejectLast(socket: Socket, error: ServiceError): void {
    afterResponse(this.#open.get(socket)?.exchanges.at(-1), () => sendRawError(socket, error));
  }

  /** Closes connections without a request at once, and others after their last response. */
  closeIdle(): void {
    this.#closing = true;
    for (const [socket, connection] of this.#open) {
      if (connection.exchanges.length > 0) closeAfterLast(connection);
      else socket.destroy();
    }
  }
}

/** Calls `then` when the exchange has ended, or at once if there is none. */
function afterResponse(exchange: Exchange | undefined, then: () => void): void {
  if (exchange) exchange.closed.then(then);
  else then();
}

/** Announces the end of a connection in its last response only: pipelined requests get theirs. */
function closeAfterLast({ exchanges }: Connection): void {
  for (const [at, { res }] of exchanges.entries()) res.shouldKeepAlive = at < exchanges.length - 1;
}
