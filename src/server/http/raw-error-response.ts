/** @module Sends error responses without Express, to requests that do not reach it. */
import type { Socket } from 'node:net';
import { ServiceError, serviceError } from '../../tables/errors.ts';
import { baseHeaders } from '../middleware.ts';
import { errorBody, MAX_DISCARD_MS } from '../respond/error-handler.ts';

const { STATUS_CODES } = process.getBuiltinModule('node:http'); // not imported: see http-server.ts

/** Error of Node's HTTP parser. */
export interface ClientError extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer;
  /** Bytes of the packet that the parser has consumed. */
  readonly bytesParsed?: number;
}

/** Service error for each code of Node's parser. Every other code means `MALFORMED_REQUEST`. */
const PARSER_ERRORS: Readonly<Record<string, 'REQUEST_TIMEOUT' | 'HEADERS_TOO_LARGE' | 'INCOMPLETE_BODY'>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 'REQUEST_TIMEOUT',
  HPE_HEADER_OVERFLOW: 'HEADERS_TOO_LARGE',
  HPE_INVALID_EOF_STATE: 'INCOMPLETE_BODY',
};

/**
 * Stops the parser of a connection, and discards what follows. The parser would create objects for
 * all requests in the rest of a packet, which are up to 3600, and Node.js has no documented method
 * to stop it.
 */
export function stopParser(socket: Socket & { readonly parser?: Parser | null }): void {
  // `pause` works only between packets. Within a packet, the parser stops at the next request if
  // that seems to be an upgrade.
  socket.parser?.pause();
  if (socket.parser) socket.parser.onIncoming = () => UPGRADE;
  socket.removeAllListeners('data');
  socket.on('data', () => {}); // replaces the parser, which otherwise receives the bytes directly
}

/** The parser of a connection in Node.js (`lib/_http_common.js`). */
interface Parser {
  pause(): void;
  /** Is called with each request, and returns {@link UPGRADE} if what follows is not HTTP. */
  onIncoming: () => number;
}
const UPGRADE = 2;

/** Converts an error of a connection that is not one of the client's network. */
export function fromParserError(error: ClientError | ServiceError): ServiceError {
  if (error instanceof ServiceError) return error;
  const method = error.code === 'HPE_INVALID_METHOD' && unknownMethod(error);
  if (method) return serviceError('METHOD_UNKNOWN', method);
  return serviceError(PARSER_ERRORS[error.code ?? ''] ?? 'MALFORMED_REQUEST');
}

/** Returns the unknown method of a valid request line, to answer with 501 (RFC 9110, 9.1). */
function unknownMethod({ rawPacket, bytesParsed = 0 }: ClientError): string | undefined {
  const packet = rawPacket?.toString('latin1') ?? '';
  const line = packet.slice(packet.lastIndexOf('\n', bytesParsed - 1) + 1);
  return /^([\w!#$%&'*+.^`|~-]{1,32}) \S+ HTTP\/1\.\d\r?\n/.exec(line)?.[1];
}

/** Writes an error response without the API's headers, and closes the connection. */
export function sendRawError(socket: Socket, error: ServiceError): void {
  if (!socket.writable) return void socket.destroySoon();
  const { status } = error;
  const body = JSON.stringify(errorBody(error));
  const lines = Object.entries({
    ...baseHeaders(),
    Date: new Date().toUTCString(),
    Connection: 'close',
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`);
  closeGently(socket);
}

/** Closes a connection after its last response, which a client that is still sending reads then. */
export function closeGently(socket: Socket): void {
  socket.end();
  socket.resume(); // discards the rest of the request
  const deadline = setTimeout(() => socket.destroy(), MAX_DISCARD_MS);
  socket.once('close', () => clearTimeout(deadline));
}
