/** @module Sends error responses without Express, to requests that Node's HTTP parser rejects. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type ServiceError, serviceError } from '../errors.ts';
import { errorBody, MAX_DISCARD_MS } from './error-handler.ts';
import { baseHeaders } from './request-log.ts';

const { STATUS_CODES } = process.getBuiltinModule('node:http'); // not imported: see http-server.ts

/** A request and its response. */
export interface Exchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  /** Resolves when the response is closed. A promise, because Node.js warns about more than 10 listeners. */
  readonly closed: Promise<void>;
}

/** Error of Node's HTTP parser. */
interface ClientError extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer;
  /** Bytes of the packet that the parser has consumed. */
  readonly bytesParsed?: number;
}

type Listener = (error: ClientError, socket: Socket) => void;

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
export function createClientErrorHandler(exchangesOn: (socket: Socket) => readonly Exchange[]): Listener {
  const rejected = new WeakSet<Socket>();
  return (error, socket) => {
    if (error.code === 'ECONNRESET') return void socket.destroy();
    if (rejected.has(socket)) return;
    rejected.add(socket);
    // Let the handlers of a request in the same packet start first: they set headers that the response needs.
    setImmediate(() => {
      const exchanges = exchangesOn(socket);
      const last = exchanges.at(-1);
      const broken = last?.req.complete ? undefined : last;
      const earlier = broken ? exchanges.at(-2) : last;
      afterResponse(earlier, () => respond(error, socket, broken?.res));
    });
  };
}

/**
 * Sends the error response and closes the connection.
 *
 * @param res the response to the request with the malformed body, if it is the body that is malformed
 */
function respond(error: ClientError, socket: Socket, res: ServerResponse | undefined): void {
  if (socket.writable && !res?.headersSent) sendRawError(socket, toServiceError(error), res?.getHeaders());
  else socket.destroySoon();
}

/** Calls `then` when the exchange has ended, or at once if there is none. */
export function afterResponse(exchange: Exchange | undefined, then: () => void): void {
  if (exchange) exchange.closed.then(then);
  else then();
}

function toServiceError(error: ClientError): ServiceError {
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

/**
 * Writes an error response to a connection, for a request that did not reach the app, and closes the connection.
 *
 * @param headers headers of the response that the app has started, if any
 */
export function sendRawError(
  socket: Socket,
  { status, message }: ServiceError,
  headers: Readonly<Record<string, unknown>> = baseHeaders(),
): void {
  const body = JSON.stringify(errorBody(status, message));
  // In lower case, as Node.js stores the headers of a response, so that each replaces a header of the same name.
  const lines = Object.entries({
    ...headers,
    date: new Date().toUTCString(),
    connection: 'close',
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`);
  // Discard the rest of the request: a client that is still sending reads the response afterwards.
  socket.resume();
  const deadline = setTimeout(() => socket.destroy(), MAX_DISCARD_MS);
  socket.once('close', () => clearTimeout(deadline));
}
