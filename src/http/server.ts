import { readFileSync } from 'node:fs';
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import type { Socket } from 'node:net';
import type { Express } from 'express';
import { fail } from '../errors.ts';
import { errorBody } from './error-handler.ts';
import { firstHeaders } from './request-context.ts';

/** How much longer than an upload may take a connection lives on, in milliseconds, so that the answer gets out. */
const GRACE_MS = 5_000;

/** A third of the files that this process may have open; the others are for pictures and for talking to tools. */
const MOST_CONNECTIONS = Math.floor(openFilesAllowed() / 3);

export interface HttpServer {
  readonly server: Server;
  /** Hangs up on everyone for whom nothing is under way, also those who never sent a request. */
  closeIdle(): void;
}

/** An HTTP server for the app, with deadlines of its own for whoever sends too slowly. It does not listen yet. */
export function createHttpServer(app: Express, uploadTimeoutMs: number): HttpServer {
  /** Who is connected, and the answer that is under way, if one is. */
  const connections = new Map<Socket, ServerResponse | undefined>();
  const handle = (req: IncomingMessage, res: ServerResponse): void => {
    connections.set(req.socket, res);
    res.once('close', () => {
      if (connections.has(req.socket)) connections.set(req.socket, undefined);
    });
    app(req, res);
  };

  const server = createServer(
    {
      requestTimeout: uploadTimeoutMs + GRACE_MS,
      headersTimeout: Math.min(uploadTimeoutMs, 30_000),
      connectionsCheckingInterval: 1_000,
      keepAliveTimeout: 65_000, // longer than the 60 s after which common proxies reuse no connection
      requireHostHeader: false, // nothing here depends on it, and Node would answer in a shape of its own
    },
    handle,
  );
  server.on('checkExpectation', handle);
  const closeIdle = (): void => {
    for (const [socket, answer] of connections) if (!answer) socket.destroy();
  };
  server.on('connection', (socket) => {
    // Connections for which nothing is under way must not take the places of files and tools.
    if (connections.size >= MOST_CONNECTIONS) closeIdle();
    if (connections.size >= MOST_CONNECTIONS) return void socket.destroy();
    connections.set(socket, undefined);
    socket.once('close', () => connections.delete(socket));
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    // A request that came in the same piece is only beginning, and the answer has the headers that it gets.
    setImmediate(() => refuse(error, socket, connections.get(socket)));
  });
  return { server, closeIdle };
}

/** What Node found wrong, in the client's terms; anything else is no HTTP. */
const REFUSALS = {
  ERR_HTTP_REQUEST_TIMEOUT: 'REQUEST_TIMEOUT',
  HPE_HEADER_OVERFLOW: 'HEADERS_TOO_LARGE',
  HPE_INVALID_EOF_STATE: 'BODY_ENDED',
} as const;

/** Answers what never became a whole request, in the error shape; or hangs up when an answer has begun already. */
function refuse(error: NodeJS.ErrnoException, socket: Socket, answer: ServerResponse | undefined): void {
  if (!socket.writable || answer?.headersSent || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const { status, message } = fail(REFUSALS[error.code as keyof typeof REFUSALS] ?? 'NOT_HTTP');
  const body = JSON.stringify(errorBody(status, message));
  const headers = {
    ...(answer?.getHeaders() ?? firstHeaders()),
    Connection: 'close',
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`);
}

/** RLIMIT_NOFILE by proc(5); where that is not told, as many as systems allow that do not tell. */
function openFilesAllowed(): number {
  try {
    return Number(/^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? 10_240);
  } catch {
    return 10_240;
  }
}
