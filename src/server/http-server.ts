/**
 * @module Creates the HTTP server: timeouts, limits on connections, requests of a connection one by one, and requests that Express does
 * not receive.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Express } from 'express';
import type { Config } from '../config.ts';
import { serviceError } from '../errors.ts';
import { maxOpenFiles } from '../files/system.ts';
import { monitorRate } from './byte-rate.ts';
import { connectionKey, identifyClient } from './clients.ts';
import { RESPONSE_SENT } from './error-handler.ts';
import { INVALID_PATH, limitHeaders, MAX_HEAD_BYTES, parseTarget } from './head.ts';
import { probeConnections } from './middleware.ts';
import {
  afterResponse,
  createClientErrorHandler,
  type Exchange,
  type OpenRequests,
  sendRawError,
  stopParser,
} from './raw-error-response.ts';
import { sentBytes } from './response.ts';
import { StartQueue } from './start-queue.ts';

// An import would also load HTTP/2 and undici, which `node:http` re-exports: 13 MiB (bench/README.md).
const { createServer } = process.getBuiltinModule('node:http');

/** Time after the upload timeout in which the error response can still be sent, in milliseconds. */
const RESPONSE_GRACE_MS = 5_000;

/** Interval between checks for connections whose request takes too long, in milliseconds. */
const CONNECTIONS_CHECK_MS = 1_000;

/** Maximum number of requests of a connection without a response. A client that pipelines more is disconnected. */
const MAX_UNANSWERED = 4;

/**
 * Minimum rate of a response in bytes per second. Slower clients are disconnected. The kernel forwards the data of a slow reader in
 * pieces of up to 2 MiB, so that the rate is averaged over a long time.
 */
const MIN_RESPONSE_BYTES_PER_SECOND = 4096;

/** Number of chunks of a body that may be small. Programs that write a form in small pieces send fewer. */
const MAX_SMALL_CHUNKS = 2000;
/** Minimum mean size of the further chunks of a body, in bytes. Each takes up to 3 µs of processor time. */
export const MIN_MEAN_CHUNK_BYTES = 32;

/** An HTTP server whose connections are tracked. */
export type HttpServer = ReturnType<typeof createHttpServer>;

/**
 * Creates an HTTP server for the app, with limits on connections and timeouts for slow clients. It does not listen yet.
 */
export function createHttpServer(
  app: Express,
  {
    UPLOAD_TIMEOUT_MS: uploadTimeoutMs,
    IMAGINARY_PATH,
  }: Pick<Config, 'UPLOAD_TIMEOUT_MS' | 'IMAGINARY_PATH'>,
) {
  const connections = new Connections(connectionLimits(), uploadTimeoutMs, (req) => {
    limitHeaders(req);
    return identifyClient(app, req).key;
  });
  const handle = (req: IncomingMessage, res: ServerResponse): void => {
    const target = req.url ?? '';
    // Express keeps an `originalUrl`, so that the app can check the target.
    app(Object.assign(req, { originalUrl: target, url: parseTarget(target) ?? INVALID_PATH }), res);
  };
  const onRequest = (req: IncomingMessage, res: ServerResponse): void => {
    limitChunks(req, (error) => server.emit('clientError', error, req.socket));
    connections.add(req, res, () => handle(req, res));
  };
  const server = createServer({
    maxHeaderSize: MAX_HEAD_BYTES[IMAGINARY_PATH ? 'imaginary' : 'other'],
    requestTimeout: uploadTimeoutMs + RESPONSE_GRACE_MS,
    headersTimeout: Math.min(uploadTimeoutMs, 30_000),
    connectionsCheckingInterval: CONNECTIONS_CHECK_MS,
    keepAliveTimeout: 65_000, // longer than the 60 s for which common proxies reuse a connection
    requireHostHeader: false, // Node.js would send its own error format; see checkHead
  });
  server.on('connection', (socket) => connections.open(socket, connectionKey(app, socket)));
  server.on('request', onRequest);
  server.on('checkContinue', (req, res) => {
    sendContinueWhenRead(req, res);
    onRequest(req, res);
  });
  // RFC 9110, section 10.1.1: an expectation that is not 100-continue may be ignored.
  server.on('checkExpectation', onRequest);
  server.on('connect', (req, socket: Socket) => {
    socket.on('error', () => {}); // Node.js has removed its listeners
    const error = serviceError('METHOD_UNKNOWN', String(req.method));
    afterResponse(connections.requestsOn(socket).exchanges.at(-1), () => sendRawError(socket, error));
  });
  server.on(
    'clientError',
    createClientErrorHandler((socket) => connections.requestsOn(socket)),
  );
  return { server, closeIdle: (): void => connections.closeIdle() };
}

/**
 * Derives the connection limits from the maximum number of open files. A third is reserved for connections, the rest
 * for images and for the pipes of tools. One client may use a quarter of the connections and at most 1000, since an
 * idle connection takes about 19 kB of memory.
 */
function connectionLimits(): ConnectionLimits {
  const max = Math.floor(maxOpenFiles() / 3);
  return { max, maxPerClient: Math.min(Math.ceil(max / 4), 1000) };
}

/**
 * Answers `Expect: 100-continue` with 100 when a handler starts to read the body. When the head alone decides, the
 * final status comes instead, as RFC 9110, section 10.1.1 requires. The connection then closes, because the server
 * cannot know whether the body still follows.
 */
function sendContinueWhenRead(req: IncomingMessage, res: ServerResponse): void {
  const { shouldKeepAlive } = res;
  res.shouldKeepAlive = false;
  req.once('resume', () => {
    if (res.headersSent) return;
    res.shouldKeepAlive = shouldKeepAlive;
    res.writeContinue();
  });
}

/**
 * Limits the number of small chunks of a body with `Transfer-Encoding: chunked`, also of a body that is discarded. The body ends
 * with the first error.
 *
 * @param onError receives CHUNKS_TOO_SMALL
 */
function limitChunks(req: IncomingMessage, onError: (error: Error) => void): void {
  if (req.headers['transfer-encoding'] === undefined) return;
  let [chunks, bytes] = [0, 0];
  const push = req.push.bind(req);
  // Counts chunks when the parser adds them: up to 64 KiB are buffered before a handler reads any.
  req.push = (chunk: Buffer | null): boolean => {
    if (chunk === null) return push(chunk);
    chunks += 1;
    bytes += chunk.length;
    if (bytes >= (chunks - MAX_SMALL_CHUNKS) * MIN_MEAN_CHUNK_BYTES) return push(chunk);
    req.push = () => false;
    onError(serviceError('CHUNKS_TOO_SMALL', MIN_MEAN_CHUNK_BYTES));
    return false;
  };
}

/** Maximum numbers of open connections. */
interface ConnectionLimits {
  readonly max: number;
  /** Maximum for connections with the same client key. */
  readonly maxPerClient: number;
}

/** Slots for probes, in addition to the regular limits. A probe needs its slot for milliseconds. */
const PROBE_RESERVE: ConnectionLimits = { max: 64, maxPerClient: 4 };

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

interface Connection extends OpenRequests {
  readonly slots: ConnectionSlots;
  readonly exchanges: Exchange[];
  last: IncomingMessage | undefined;
  unanswered: number;
}

/** Tracks open connections and the requests on them, and enforces the limits. */
class Connections {
  readonly #regular: ConnectionSlots;
  readonly #reserve = new ConnectionSlots(PROBE_RESERVE);
  readonly #open = new Map<Socket, Connection>();
  readonly #starts = new StartQueue();
  readonly #rateWindowMs: number;
  readonly #clientKey: (req: IncomingMessage) => string;
  #closing = false;

  /**
   * @param rateWindowMs time over which the rate of responses is averaged, in ms
   * @param clientKey returns the key of a request's client
   */
  constructor(limits: ConnectionLimits, rateWindowMs: number, clientKey: (req: IncomingMessage) => string) {
    this.#regular = new ConnectionSlots(limits);
    this.#rateWindowMs = rateWindowMs;
    this.#clientKey = clientKey;
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
    if (slots === this.#reserve) probeConnections.add(socket);
    this.#open.set(socket, { slots, exchanges: [], last: undefined, unanswered: 0 });
    // The unsent part of a response takes memory, and its files take disk space.
    const endMonitor = monitorRate(
      () => (socket.writableLength > 0 ? sentBytes(socket) : undefined),
      { bytesPerSecond: MIN_RESPONSE_BYTES_PER_SECOND, windowMs: this.#rateWindowMs },
      () => socket.destroy(),
    );
    socket.once('close', () => {
      endMonitor();
      this.#open.delete(socket);
    });
  }

  /**
   * Adds a request, and calls `start` when the responses to all earlier requests of the connection have been sent and it is the turn
   * of its client. Closes the connection if too many requests have no response.
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
      res.emit(RESPONSE_SENT);
      resolve();
      if (socket.writable) this.#startFirst(exchanges);
    });
    if (exchanges.length === 1) this.#startFirst(exchanges);
  }

  /** Lets the first request of a connection wait for its start. */
  #startFirst([first]: readonly Exchange[]): void {
    if (!first?.start) return;
    this.#starts.add(this.#clientKey(first.req), () => {
      const { start } = first;
      first.start = undefined;
      if (!first.req.socket.destroyed) start?.();
    });
  }

  /** Returns the requests of a connection. */
  requestsOn(socket: Socket): OpenRequests {
    return this.#open.get(socket) ?? { exchanges: [], last: undefined };
  }

  /**
   * Closes every connection without a request in progress, including those that never sent one. Every other connection
   * closes after its last response, from now on.
   */
  closeIdle(): void {
    this.#closing = true;
    for (const [socket, connection] of this.#open) {
      if (connection.exchanges.length > 0) closeAfterLast(connection);
      else socket.destroy();
    }
  }
}

/** Announces the end of a connection in its last response, and not before: a client that pipelines gets all responses. */
function closeAfterLast({ exchanges }: Connection): void {
  for (const [at, { res }] of exchanges.entries()) res.shouldKeepAlive = at < exchanges.length - 1;
}
