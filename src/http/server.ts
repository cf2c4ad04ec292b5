import { createServer, type Server, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Express } from 'express';
import { errorBody } from './error-handler.ts';

/** How much longer than an upload may take a connection lives on, in milliseconds, so that the answer gets out. */
const GRACE_MS = 5_000;

/** An HTTP server for the app, with deadlines of its own for whoever sends too slowly. It does not listen yet. */
export function createHttpServer(app: Express, uploadTimeoutMs: number): Server {
  const server = createServer(
    {
      requestTimeout: uploadTimeoutMs + GRACE_MS,
      headersTimeout: Math.min(uploadTimeoutMs, 30_000),
      connectionsCheckingInterval: 1_000,
      keepAliveTimeout: 65_000, // longer than the 60 s after which common proxies reuse no connection
    },
    app,
  );
  server.on('clientError', refuse);
  return server;
}

const STATUS_BY_CODE: Readonly<Record<string, number>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_HEADER_OVERFLOW: 431,
};

/** Answers what never became a request, in the error shape; or hangs up when an answer has begun already. */
function refuse(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || socket.bytesWritten > 0 || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const status = STATUS_BY_CODE[error.code ?? ''] ?? 400;
  const body = JSON.stringify(
    errorBody(status, `${STATUS_CODES[status]}: the request is not valid HTTP or took too long.`),
  );
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\n` +
      `Content-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}
