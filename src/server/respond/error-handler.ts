/**
 * @module Converts errors to error responses, and sends them while the request's body may still be
 * arriving. This is the only place that does so for requests that reach the app.
 */
import type { IncomingMessage } from 'node:http';
import type { ErrorRequestHandler, Request, Response } from 'express';
import type { Logger } from 'pino';
import {
  ClientDisconnectedError,
  isDiskFull,
  type PublicError,
  ServiceError,
  serviceError,
  serviceErrorFrom,
  toPublicError,
} from '../../tables/errors.ts';
import { setLogFields } from '../middleware.ts';
import { RESULT_HEADERS } from './result-headers.ts';

const { STATUS_CODES } = process.getBuiltinModule('node:http'); // not imported: see http-server.ts

/** A response's payload has been sent. It may end later, after the request's body is discarded. */
export const RESPONSE_SENT = Symbol('response sent');

/** Event of the response to a request that its client sends more often than it can need to. */
export const TOO_OFTEN = Symbol('too often');

/** Returns the media type and the body of an error response. */
export type DescribeError = (error: ServiceError, req: Request, res: Response) => readonly [string, object];

/** Creates the error handler, which sends the public message to the client and logs the cause. */
export function errorHandler(
  log: Logger,
  supportEmail: string,
  describe: DescribeError = describeError,
): ErrorRequestHandler {
  return (error: unknown, req, res, _next) => {
    const requestId = String(res.getHeader('X-Request-Id'));
    if (error instanceof ClientDisconnectedError) {
      setLogFields(res, { outcome: 'CLIENT_GONE' });
      log.debug({ requestId }, 'client disconnected');
      res.destroy();
      return;
    }
    const serviceFailure =
      fromSystemError(error) ?? serviceErrorFrom(error, 'INTERNAL', supportEmail, requestId);
    setLogFields(res, { outcome: serviceFailure.code });
    // The message may contain a file name: only at level debug. The request's line has the code.
    const fields = { requestId, code: serviceFailure.code, err: serviceFailure.cause };
    if (serviceFailure.status >= 500) log.error(fields, 'request failed');
    else log.debug({ ...fields, message: serviceFailure.message }, 'request rejected');
    if (res.headersSent) {
      // Only a closed connection signals that the body, of which a part was sent, is incomplete.
      res.destroy();
      return;
    }
    if (serviceFailure.code === 'NOT_ACCEPTABLE') res.vary('Accept');
    if (serviceFailure.retryAfter !== undefined) res.setHeader('Retry-After', serviceFailure.retryAfter);
    for (const name of REMOVED_HEADERS) res.removeHeader(name);
    sendRejection(req, res, serviceFailure.status, describe(serviceFailure, req, res));
  };
}

/** Headers that an error response must not have. */
const REMOVED_HEADERS = [
  ...Object.keys(RESULT_HEADERS),
  'Cache-Control',
  'Content-Length',
  'Image-Height',
  'Image-Width',
];

/** Media type of problem details (RFC 9457), for clients whose `Accept` prefers it. */
const PROBLEM_TYPE = 'application/problem+json';

/** Returns the body of an error response. */
export function errorBody(error: ServiceError): { readonly error: PublicError } {
  return { error: toPublicError(error) };
}

/** Returns an error response as problem details (RFC 9457, 3.1). The status names the type. */
function problemBody(error: ServiceError): Readonly<Record<string, unknown>> {
  const { code: status, message: detail, ...others } = toPublicError(error);
  return { type: 'about:blank', title: STATUS_CODES[status], status, detail, ...others };
}

/** Describes an error as the API does. */
export const describeError: DescribeError = (error, req, res) => {
  if (req.accepts(['json', PROBLEM_TYPE]) !== PROBLEM_TYPE) return ['json', errorBody(error)];
  res.vary('Accept');
  return [PROBLEM_TYPE, problemBody(error)];
};

/** Converts errors about disk or descriptors to service errors; others to undefined. */
function fromSystemError(error: unknown): ServiceError | undefined {
  if (error instanceof ServiceError) return error;
  if (isDiskFull(error)) return serviceErrorFrom(error, 'DISK_FULL');
  const { code } = error as NodeJS.ErrnoException;
  // After an error of the disk, Linux makes a file system read-only.
  if (code === 'EROFS') return serviceErrorFrom(error, 'TEMP_DIR_UNWRITABLE');
  if (code === 'EMFILE' || code === 'ENFILE') return serviceErrorFrom(error, 'OVERLOADED');
  return undefined;
}

/**
 * Handles requests for unknown paths.
 *
 * @throws {ServiceError} NOT_FOUND
 */
export function notFound(): never {
  throw serviceError('NOT_FOUND');
}

/**
 * Maximum time to discard the rest of a rejected request, in milliseconds. Many clients and proxies
 * read the response only after they have sent the entire request, so a limit on bytes would deprive
 * them of the response.
 */
export const MAX_DISCARD_MS = 5_000;

/**
 * Sends an error response, also while the request's body is still arriving. The rest of the body is
 * discarded. If that takes longer than {@link MAX_DISCARD_MS}, the connection is closed. After 408,
 * it is closed at once.
 */
function sendRejection(
  req: Request,
  res: Response,
  status: number,
  [type, body]: readonly [string, object],
): void {
  const payload = JSON.stringify(body);
  res.status(status).type(type).setHeader('Content-Length', Buffer.byteLength(payload));
  if (status === 408) res.setHeader('Connection', 'close');
  if (req.complete || req.method === 'HEAD' || status === 408) {
    res.end(payload);
    return;
  }
  const closes = !res.shouldKeepAlive || res.getHeader('Connection') === 'close';
  req.resume();
  if (!closes) {
    res.once('finish', () => limitDiscarding(req));
    res.end(payload);
    return;
  }
  // Ending a response with Connection: close would close the connection at once.
  req.once('close', () => res.end());
  res.write(payload, () => {
    res.emit(RESPONSE_SENT);
    limitDiscarding(req);
  });
}

function limitDiscarding(req: IncomingMessage): void {
  if (req.complete) return;
  const deadline = setTimeout(() => req.socket.destroySoon(), MAX_DISCARD_MS);
  req.once('close', () => clearTimeout(deadline));
}
