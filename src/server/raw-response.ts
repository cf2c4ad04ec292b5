/** @module Sends error responses without Express. */
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { ServiceError } from '../errors.ts';
import { errorBody } from './error-handler.ts';
import { MAX_DISCARD_MS } from './rejection.ts';
import { baseHeaders } from './request-log.ts';

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
