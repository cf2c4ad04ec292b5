/** @module Sends error responses without Express, to requests that do not reach it. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { ServiceError, serviceError } from '../errors.ts';
import { errorBody, MAX_DISCARD_MS } from './error-handler.ts';
import { baseHeaders } from './middleware.ts';

const { STATUS_CODES } = process.getBuiltinModule('node:http'); // not imported: see http-server.ts

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

/** The requests of a connection. */
export interface OpenRequests {
  /** Those without a complete response, in order. There is more than one if the client pipelines. */
  readonly exchanges: readonly Exchange[];
  /** The last request that was received, which may have a response. */
  readonly last: IncomingMessage | undefined;
}

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
 * @param refuse calls its second argument when it is the turn of the client. Only for errors of a head: clients that send much of a
 *   body, or disconnect, do not flood.
 */
export function createClientErrorHandler(
  requestsOn: (socket: Socket) => OpenRequests,
  refuse: (socket: Socket, respond: () => void) => void,
) {
  const rejected = new WeakSet<Socket>();
  return (error: ClientError | ServiceError, socket: Socket): void => {
    // Browsers open connections before they have a request. The timeout of one without a request is not an error.
    if (error.code === 'ECONNRESET' || socket.bytesRead === 0) return void socket.destroy();
    if (rejected.has(socket)) return;
    rejected.add(socket);
    stopParser(socket);
    const { exchanges, last } = requestsOn(socket);
    const isBody = last?.complete === false;
    const broken = isBody ? exchanges.find(({ req }) => req === last) : undefined;
    if (broken) broken.start = undefined;
    const refusal = fromParserError(error); // the error has 64 KiB of the request, which would be kept until the response
    afterResponse(exchanges.at(broken ? -2 : -1), () => {
      if (isBody && broken?.res.headersSent !== false)
        closeGently(socket); // it has a response
      else if (isBody) sendRawError(socket, refusal);
      else refuse(socket, () => sendRawError(socket, refusal));
    });
  };
}

/**
 * Stops the parser of a connection, and discards what follows. The parser would create objects for all requests in the rest of a
 * packet, which are up to 3600, and Node.js has no documented method to stop it.
 */
export function stopParser(socket: Socket & { readonly parser?: Parser | null }): void {
  // `pause` works only between packets. Within a packet, the parser stops at the next request if that seems to be an upgrade.
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

/** Writes an error response to a connection, without the headers of the API, and closes the connection. */
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

/** Closes a connection after its last response. A client that is still sending reads the response afterwards. */
function closeGently(socket: Socket): void {
  socket.end();
  socket.resume(); // discards the rest of the request
  const deadline = setTimeout(() => socket.destroy(), MAX_DISCARD_MS);
  socket.once('close', () => clearTimeout(deadline));
}
