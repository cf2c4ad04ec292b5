/** @module Creates the HTTP server: timeouts, limits on chunks, requests that bypass Express. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Express } from 'express';
import type { Config } from '../../tables/config.ts';
import { serviceError } from '../../tables/errors.ts';
import type { Clients } from '../clients.ts';
import { Connections } from './connections.ts';
import { INVALID_PATH, limitHeaders, MAX_HEAD_BYTES, parseTarget } from './head.ts';

// An import would also load HTTP/2 and undici of `node:http`: 13 MiB (bench/README.md).
const { createServer } = process.getBuiltinModule('node:http');

/** Time after the upload timeout in which the error response can still be sent, in milliseconds. */
const RESPONSE_GRACE_MS = 5_000;

/** Interval between checks for connections whose request takes too long, in milliseconds. */
const CONNECTIONS_CHECK_MS = 1_000;

/** Number of chunks of a body that may be small. Forms written in small pieces have fewer. */
const MAX_SMALL_CHUNKS = 2000;
/** Minimum mean size of a body's further chunks, in bytes. Each takes up to 3 µs of CPU time. */
export const MIN_MEAN_CHUNK_BYTES = 32;
/** Chunks of a body per turn of the event loop: about 3 ms. Node.js alone reads up to 2 MB. */
const CHUNKS_PER_TURN = 1000;

/** An HTTP server whose connections are tracked. */
export type HttpServer = ReturnType<typeof createHttpServer>;

/** Creates a server for the app, with limits on connections and slow clients. Does not listen. */
export function createHttpServer(
  { app, clients }: { readonly app: Express; readonly clients: Clients },
  { UPLOAD_TIMEOUT_MS: uploadTimeoutMs, IMAGINARY_PATH }: Config,
) {
  const connections = new Connections(uploadTimeoutMs, (req) => {
    limitHeaders(req);
    return clients.identify(req).key;
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
  server.on('connection', (socket) => connections.open(socket, clients.connectionKey(socket)));
  server.on('request', onRequest);
  server.on('checkContinue', (req, res) => {
    sendContinueWhenRead(req, res);
    onRequest(req, res);
  });
  // RFC 9110, section 10.1.1: an expectation that is not 100-continue may be ignored.
  server.on('checkExpectation', onRequest);
  server.on('connect', (req, socket: Socket) => {
    socket.on('error', () => {}); // Node.js has removed its listeners
    connections.rejectLast(socket, serviceError('METHOD_UNKNOWN', String(req.method)));
  });
  server.on('clientError', (error, socket: Socket) => connections.reject(socket, error));
  return { server, closeIdle: (): void => connections.closeIdle() };
}

/**
 * Answers `Expect: 100-continue` with 100 when a handler starts to read the body. When the head
 * alone decides, the final status comes instead, as RFC 9110, section 10.1.1 requires. The
 * connection then closes, because the server cannot know whether the body still follows.
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
 * Limits the number of small chunks of a body with `Transfer-Encoding: chunked`, also of a body
 * that is discarded, and how many are read in one turn of the event loop. The body ends with the
 * first error.
 *
 * @param onError receives CHUNKS_TOO_SMALL
 */
function limitChunks(req: IncomingMessage, onError: (error: Error) => void): void {
  if (req.headers['transfer-encoding'] === undefined) return;
  let [chunks, bytes] = [0, 0];
  let isWaiting = false;
  const [push, read] = [req.push.bind(req), req._read.bind(req)];
  // The parser stops reading when `push` returns false, until `_read` is called.
  req._read = (size) => {
    if (!isWaiting) read(size);
  };
  const waitForTurn = (): void => {
    if (isWaiting) return;
    isWaiting = true;
    setImmediate(() => {
      isWaiting = false;
      if (!req.destroyed && !req.complete) read(0);
    });
  };
  // Counts chunks when the parser adds them: up to 64 KiB are buffered before a handler reads any.
  req.push = (chunk: Buffer | null): boolean => {
    if (chunk === null) return push(chunk);
    chunks += 1;
    bytes += chunk.length;
    if (bytes < (chunks - MAX_SMALL_CHUNKS) * MIN_MEAN_CHUNK_BYTES) {
      req.push = () => false;
      onError(serviceError('CHUNKS_TOO_SMALL', MIN_MEAN_CHUNK_BYTES));
      return false;
    }
    const hasRoom = push(chunk);
    if (chunks % CHUNKS_PER_TURN === 0) waitForTurn();
    return hasRoom && !isWaiting;
  };
}
