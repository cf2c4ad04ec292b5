import type { ErrorRequestHandler } from 'express';
import type { Logger } from 'pino';
import { ClientDisconnectedError, ServiceError, serviceError, serviceErrorFrom } from '../errors.ts';
import { sendRefusal } from './rejection.ts';
import { setLogFields } from './request-log.ts';

/** The one place where errors become answers: the public sentence to the client, the cause to the log. */
export function errorHandler(log: Logger, supportEmail: string): ErrorRequestHandler {
  return (error: unknown, req, res, _next) => {
    const requestId = String(res.getHeader('X-Request-Id'));
    if (error instanceof ClientDisconnectedError) {
      setLogFields(res, { outcome: 'CLIENT_GONE' });
      log.debug({ requestId }, 'client gone');
      res.destroy();
      return;
    }
    const answer = toServiceError(error) ?? serviceErrorFrom(error, 'INTERNAL', supportEmail, requestId);
    setLogFields(res, { outcome: answer.code });
    // The message may name a file, and what a client did wrong is in the line of its request.
    const about = { requestId, code: answer.code, err: answer.cause };
    if (answer.status >= 500) log.error(about, 'a request failed');
    else log.debug({ ...about, message: answer.message }, 'a request was refused');
    if (res.headersSent) {
      // Part of a file is out: cutting the connection is the only way left to say that it is not whole.
      res.destroy();
      return;
    }
    if (answer.retryAfter !== undefined) res.setHeader('Retry-After', answer.retryAfter);
    for (const name of RESULT_HEADERS) res.removeHeader(name);
    sendRefusal(req, res, answer.status, errorBody(answer.status, answer.message));
  };
}

/** Headers of a result that did not come to be. */
const RESULT_HEADERS = [
  'Cache-Control',
  'Content-Disposition',
  'Content-Length',
  'Server-Timing',
  'X-Conversion-Notes',
];

/** The shape of every error response. */
export function errorBody(code: number, message: string): { error: { code: number; message: string } } {
  return { error: { code, message } };
}

/** Our own errors, and those that Node gives for a machine in need. */
function toServiceError(error: unknown): ServiceError | undefined {
  if (error instanceof ServiceError) return error;
  const { code } = error as { code?: unknown };
  if (code === 'ENOSPC' || code === 'EDQUOT') return serviceErrorFrom(error, 'DISK_FULL');
  if (code === 'EMFILE' || code === 'ENFILE') return serviceErrorFrom(error, 'BUSY');
  return undefined;
}

/** For paths that lead nowhere. */
export function notFound(): never {
  throw serviceError('NOT_FOUND');
}
