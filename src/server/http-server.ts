/**
 * @module Creates the HTTP server: connection limits, timeouts, and handling of requests that Express does not
 * receive.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Express } from 'express';
import { serviceError } from '../errors.ts';
import { maxOpenFiles } from '../files/system.ts';
import { connectionKey } from './clients.ts';
import { type ConnectionLimits, Connections } from './connections.ts';
import { INVALID_PATH, parseTarget } from './endpoint.ts';
import {
  afterResponse,
  createClientErrorHandler,
  type Exchange,
  rejectRequest,
} from './raw-error-response.ts';

// An import would also load HTTP/2 and undici, which `node:http` re-exports: 13 MiB (bench/README.md).
const { createServer } = process.getBuiltinModule('node:http');

/** Time after the upload timeout in which the error response can still be sent, in milliseconds. */
const RESPONSE_GRACE_MS = 5_000;

/** Interval between checks for connections of slow clients, in milliseconds. */
const CONNECTIONS_CHECK_MS = 1_000;

/** An HTTP server whose connections are tracked. */
export interface HttpServer {
  readonly server: Server;
  /** See {@link Connections.closeIdle}. */
  closeIdle(): void;
}

/**
 * Creates an HTTP server for the app, with limits on connections and timeouts for slow clients. It does not listen yet.
 *
 * @param uploadTimeoutMs maximum time in which a client may send a request, in milliseconds
 */
export function createHttpServer(app: Express, uploadTimeoutMs: number): HttpServer {
  const connections = new Connections(connectionLimits());
  const exchangesOn = (socket: Socket): readonly Exchange[] => connections.exchangesOn(socket);
  const handle = (req: IncomingMessage, res: ServerResponse): void => {
    const target = req.url ?? '';
    // Express keeps an `originalUrl`, so that the app can check the target.
    app(Object.assign(req, { originalUrl: target, url: parseTarget(target) ?? INVALID_PATH }), res);
  };
  const onRequest = (req: IncomingMessage, res: ServerResponse): void =>
    connections.add(req, res, () => handle(req, res));
  const server = createServer({
    requestTimeout: uploadTimeoutMs + RESPONSE_GRACE_MS,
    headersTimeout: Math.min(uploadTimeoutMs, 30_000),
    connectionsCheckingInterval: CONNECTIONS_CHECK_MS,
    keepAliveTimeout: 65_000, // longer than the 60 s for which common proxies reuse a connection
    requireHostHeader: false, // Node.js would send its own error format; see checkHead
  });
  server.on('connection', (socket) =>
    connections.open(socket, connectionKey(app, socket), (error) =>
      server.emit('clientError', error, socket),
    ),
  );
  server.on('request', onRequest);
  server.on('checkContinue', (req, res) =>
    connections.add(req, res, () => {
      sendContinueWhenRead(req, res);
      handle(req, res);
    }),
  );
  // RFC 9110, section 10.1.1: an expectation that is not 100-continue may be ignored.
  server.on('checkExpectation', onRequest);
  server.on('connect', (req, socket: Socket) => {
    socket.on('error', () => {}); // Node.js has removed its listeners
    connections.stopReading(socket);
    const error = serviceError('METHOD_UNKNOWN', String(req.method));
    afterResponse(exchangesOn(socket).at(-1), () => rejectRequest(app, socket, error));
  });
  const onClientError = createClientErrorHandler(app, exchangesOn);
  server.on('clientError', (error, socket: Socket) => {
    onClientError(error, socket, connections.stopReading(socket));
  });
  const watch = setInterval(() => connections.closeUnread(uploadTimeoutMs), CONNECTIONS_CHECK_MS).unref();
  server.on('close', () => clearInterval(watch));
  return { server, closeIdle: () => connections.closeIdle() };
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
