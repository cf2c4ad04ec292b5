import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type ServiceError, serviceError } from '../errors.ts';
import type { Connections, Exchange } from './connections.ts';
import { sendRawError } from './raw-response.ts';

/** Answers for what never becomes a whole request. */

/** What Node's parser reports. */
interface ClientError extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer;
  /** How much of the packet the parser took. */
  readonly bytesParsed?: number;
}

type Listener = (error: ClientError, socket: Socket) => void;

/** What Node's codes mean for the client; every other code means `NOT_HTTP`. */
const REFUSALS: Readonly<Record<string, 'REQUEST_TIMEOUT' | 'HEADERS_TOO_LARGE' | 'BODY_ENDED'>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 'REQUEST_TIMEOUT',
  HPE_HEADER_OVERFLOW: 'HEADERS_TOO_LARGE',
  HPE_INVALID_EOF_STATE: 'BODY_ENDED',
};

/**
 * Creates the listener for `clientError`. It answers in the error shape and closes the connection, after the requests
 * before the malformed one have their own answers.
 */
export function createMalformedHandler(connections: Connections): Listener {
  const refused = new WeakSet<Socket>();
  return (error, socket) => {
    if (error.code === 'ECONNRESET') return void socket.destroy();
    if (refused.has(socket)) return;
    refused.add(socket);
    // A request of the same packet is only beginning: its handlers set the headers that the answer needs.
    setImmediate(() => {
      const exchanges = connections.exchangesOn(socket);
      const last = exchanges.at(-1);
      const broken = last?.req.complete ? undefined : last;
      const earlier = broken ? exchanges.at(-2) : last;
      afterAnswer(earlier, () => answer(error, socket, broken?.res));
    });
  };
}

/** @param res the answer to the request whose body is malformed, if it is a body */
function answer(error: ClientError, socket: Socket, res: ServerResponse | undefined): void {
  if (socket.writable && !res?.headersSent) sendRawError(socket, toServiceError(error), res?.getHeaders());
  else socket.destroySoon();
}

/** Calls `then` when an exchange is over, or at once when there is none. */
export function afterAnswer(exchange: Exchange | undefined, then: () => void): void {
  if (exchange) exchange.res.once('close', then);
  else then();
}

function toServiceError(error: ClientError): ServiceError {
  const method = error.code === 'HPE_INVALID_METHOD' && unknownMethod(error);
  if (method) return serviceError('METHOD_UNKNOWN', method);
  return serviceError(REFUSALS[error.code ?? ''] ?? 'NOT_HTTP');
}

/** Returns the method of a request line that is well-formed, which RFC 9110, section 9.1 has answered with 501. */
function unknownMethod({ rawPacket, bytesParsed = 0 }: ClientError): string | undefined {
  const packet = rawPacket?.toString('latin1') ?? '';
  const line = packet.slice(packet.lastIndexOf('\n', bytesParsed - 1) + 1);
  return /^([\w!#$%&'*+.^`|~-]{1,32}) \S+ HTTP\/1\.\d\r?\n/.exec(line)?.[1];
}
