/**
 * @module Creates the HTTP server: connection limits, timeouts, and handling of requests that Express does not
 * receive.
 */
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Express } from 'express';
import { serviceError } from '../errors.ts';
import { connectionKey } from './client-key.ts';
import { type ConnectionLimits, Connections } from './connections.ts';
import { afterResponse, createMalformedHandler, sendRawError } from './raw-response.ts';

/** Time after the upload timeout in which the error response can still be sent, in milliseconds. */
const RESPONSE_GRACE_MS = 5_000;

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
  const onRequest = (req: IncomingMessage, res: ServerResponse): void => {
    connections.begin(req, res);
    app(req, res);
  };
  const server = createServer({
    requestTimeout: uploadTimeoutMs + RESPONSE_GRACE_MS,
    headersTimeout: Math.min(uploadTimeoutMs, 30_000),
    connectionsCheckingInterval: 1_000,
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
    const rejectRequest = () => sendRawError(socket, serviceError('METHOD_UNKNOWN', String(req.method)));
    afterResponse(connections.exchangesOn(socket).at(-1), rejectRequest);
  });
  server.on('clientError', createMalformedHandler(connections));
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

/** Reads RLIMIT_NOFILE from proc(5). Without /proc, returns a common value. */
function maxOpenFiles(): number {
  try {
    return Number(/^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? 10_240);
  } catch {
    return 10_240;
  }
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
