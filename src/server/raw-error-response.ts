/** @module Sends error responses without Express, to requests that Node's HTTP parser rejects. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Express, Request, Response } from 'express';
import { ServiceError, serviceError } from '../errors.ts';
import { identifyClient } from './clients.ts';
import { errorBody, MAX_DISCARD_MS } from './error-handler.ts';
import { apiHeadersOf, baseHeaders, whenHeadersSet } from './middleware.ts';

const http = process.getBuiltinModule('node:http'); // not imported: see http-server.ts

/** A request and its response. */
export interface Exchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  /** Resolves when the response is closed. A promise, because Node.js warns about more than 10 listeners. */
  readonly closed: Promise<void>;
  /** Starts the handlers; undefined if they have started. */
  start: (() => void) | undefined;
}

/** Error of Node's HTTP parser. */
interface ClientError extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer;
  /** Bytes of the packet that the parser has consumed. */
  readonly bytesParsed?: number;
}

/** `receiving` is the request whose body was being received. */
type Listener = (error: ClientError | ServiceError, socket: Socket, receiving?: IncomingMessage) => void;

/** Service error for each code of Node's parser. Every other code means `MALFORMED_REQUEST`. */
const PARSER_ERRORS: Readonly<Record<string, 'REQUEST_TIMEOUT' | 'HEADERS_TOO_LARGE' | 'INCOMPLETE_BODY'>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 'REQUEST_TIMEOUT',
  HPE_HEADER_OVERFLOW: 'HEADERS_TOO_LARGE',
  HPE_INVALID_EOF_STATE: 'INCOMPLETE_BODY',
};

/**
 * Creates the listener for `clientError`. When the responses to earlier requests have been sent, the listener sends an
 * error response and closes the connection.
 *
 * @param exchangesOn returns the requests in progress on a connection, in order
 */
export function createClientErrorHandler(
  app: Express,
  exchangesOn: (socket: Socket) => readonly Exchange[],
): Listener {
  const rejected = new WeakSet<Socket>();
  return (error, socket, receiving) => {
    // Browsers open connections before they have a request. The timeout of one without a request is not an error.
    if (error.code === 'ECONNRESET' || socket.bytesRead === 0) return void socket.destroy();
    if (rejected.has(socket)) return;
    rejected.add(socket);
    // Let the handlers of a request in the same packet start first: they set headers that the response needs.
    setImmediate(() => {
      const exchanges = exchangesOn(socket);
      const broken = exchanges.find(({ req }) => req === receiving);
      if (receiving && !broken) return closeGently(socket); // it has a response
      const earlier = exchanges.at(broken ? -2 : -1);
      const hasStarted = broken?.start === undefined;
      if (broken) broken.start = undefined;
      afterResponse(earlier, () =>
        respond(app, fromParserError(error), socket, hasStarted ? broken?.res : undefined),
      );
    });
  };
}

/**
 * Sends the error response and closes the connection.
 *
 * @param res the response to the request with the malformed body, if it is the body that is malformed
 */
async function respond(
  app: Express,
  error: ServiceError,
  socket: Socket,
  res: ServerResponse | undefined,
): Promise<void> {
  if (!res) return rejectRequest(app, socket, error);
  await whenHeadersSet(res);
  if (!res.headersSent) sendRawError(socket, error, res.getHeaders());
  else closeGently(socket);
}

/**
 * Sends an error response to a request that did not reach the app, and closes the connection. The request counts toward
 * the rate limit of the connection's address: its path and its headers are not known.
 */
export function rejectRequest(app: Express, socket: Socket, error: ServiceError): void {
  const req = Object.assign(new http.IncomingMessage(socket), { url: '/' }) as Request;
  const res = new http.ServerResponse(req) as Response;
  identifyClient(app, req);
  apiHeadersOf(app)(req, res, (limitError?: unknown) =>
    sendRawError(socket, limitError instanceof ServiceError ? limitError : error, {
      ...baseHeaders(),
      ...res.getHeaders(),
    }),
  );
}

/** Calls `then` when the exchange has ended, or at once if there is none. */
export function afterResponse(exchange: Exchange | undefined, then: () => void): void {
  if (exchange) exchange.closed.then(then);
  else then();
}

function fromParserError(error: ClientError | ServiceError): ServiceError {
  if (error instanceof ServiceError) return error;
  const method = error.code === 'HPE_INVALID_METHOD' && unknownMethod(error);
  if (method) return serviceError('METHOD_UNKNOWN', method);
  return serviceError(PARSER_ERRORS[error.code ?? ''] ?? 'MALFORMED_REQUEST');
}

/** Returns the unknown method of a well-formed request line, to be answered with 501 (RFC 9110, section 9.1). */
function unknownMethod({ rawPacket, bytesParsed = 0 }: ClientError): string | undefined {
  const packet = rawPacket?.toString('latin1') ?? '';
  const line = packet.slice(packet.lastIndexOf('\n', bytesParsed - 1) + 1);
  return /^([\w!#$%&'*+.^`|~-]{1,32}) \S+ HTTP\/1\.\d\r?\n/.exec(line)?.[1];
}

/** Writes an error response with the given headers to a connection, and closes the connection. */
function sendRawError(socket: Socket, error: ServiceError, headers: Readonly<Record<string, unknown>>): void {
  if (!socket.writable) return void socket.destroySoon();
  const { status } = error;
  const body = JSON.stringify(errorBody(error));
  // In lower case, as Node.js stores the headers of a response, so that each replaces a header of the same name.
  const lines = Object.entries({
    ...headers,
    date: new Date().toUTCString(),
    connection: 'close',
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${http.STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`);
  closeGently(socket);
}

/** Closes a connection after its last response. A client that is still sending reads the response afterwards. */
function closeGently(socket: Socket): void {
  socket.end();
  socket.resume(); // discards the rest of the request
  const deadline = setTimeout(() => socket.destroy(), MAX_DISCARD_MS);
  socket.once('close', () => clearTimeout(deadline));
}
