import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Express } from 'express';
import { serviceError } from '../errors.ts';
import { connectionKey } from './client-key.ts';
import { type ConnectionLimits, Connections } from './connections.ts';
import { askForBodyWhenRead } from './expectation.ts';
import { afterAnswer, createMalformedHandler } from './malformed-request.ts';
import { sendRawError } from './raw-response.ts';

/** How much longer than an upload may take a connection lives on, in milliseconds, so that the answer gets out. */
const RESPONSE_GRACE_MS = 5_000;

export interface HttpServer {
  readonly server: Server;
  /** See {@link Connections.closeIdle}. */
  closeIdle(): void;
}

/**
 * Creates an HTTP server for the app, which does not listen yet: with limits on connections, and with deadlines for
 * clients that send too slowly.
 *
 * @param uploadTimeoutMs the most that a client may take to send a request, in milliseconds
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
    keepAliveTimeout: 65_000, // longer than the 60 s after which common proxies reuse no connection
    requireHostHeader: false, // Node would answer in a shape of its own: see checkHead
  });
  server.on('connection', (socket) => connections.open(socket, connectionKey(app, socket)));
  server.on('request', onRequest);
  server.on('checkContinue', (req, res) => {
    askForBodyWhenRead(req, res);
    onRequest(req, res);
  });
  // RFC 9110, section 10.1.1: an expectation that is not 100-continue may be ignored.
  server.on('checkExpectation', onRequest);
  server.on('connect', (req, socket: Socket) => {
    socket.on('error', () => {}); // Node has removed its own listeners
    const rejectRequest = () => sendRawError(socket, serviceError('METHOD_UNKNOWN', String(req.method)));
    afterAnswer(connections.exchangesOn(socket).at(-1), rejectRequest);
  });
  server.on('clientError', createMalformedHandler(connections));
  return { server, closeIdle: () => connections.closeIdle() };
}

/**
 * A third of the files that this process may open are for connections; the others are for images and for talking to
 * tools. One client gets a quarter of those, and at most 1000: an idle connection takes about 19 kB of memory.
 */
function connectionLimits(): ConnectionLimits {
  const max = Math.floor(maxOpenFiles() / 3);
  return { max, maxPerClient: Math.min(Math.ceil(max / 4), 1000) };
}

/** RLIMIT_NOFILE by proc(5), or what is usual on systems without it. */
function maxOpenFiles(): number {
  try {
    return Number(/^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? 10_240);
  } catch {
    return 10_240;
  }
}
