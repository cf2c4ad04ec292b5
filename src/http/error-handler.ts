import type { ErrorRequestHandler } from 'express';
import type { Logger } from 'pino';
import { ClientGone, fail, failBecause, ServiceError } from '../errors.ts';

/** The one place where errors become answers: the public sentence to the client, the cause to the log. */
export function errorHandler(log: Logger, supportEmail: string): ErrorRequestHandler {
  return (error: unknown, _req, res, _next) => {
    const requestId = String(res.getHeader('X-Request-Id'));
    if (error instanceof ClientGone) {
      log.debug({ requestId }, 'client gone');
      res.destroy();
      return;
    }
    const answer = toServiceError(error) ?? failBecause(error, 'INTERNAL', supportEmail, requestId);
    log[answer.status >= 500 ? 'error' : 'info'](
      { requestId, code: answer.code, err: answer.cause },
      answer.message,
    );
    if (res.headersSent) {
      // Part of a file is out: cutting the connection is the only way left to say that it is not whole.
      res.destroy();
      return;
    }
    if (answer.retryAfter !== undefined) res.setHeader('Retry-After', answer.retryAfter);
    // Whoever took this long to send would go on: the connection is not worth keeping.
    if (answer.status === 408) res.setHeader('Connection', 'close');
    for (const name of ['Content-Disposition', 'Content-Length', 'Server-Timing']) res.removeHeader(name);
    res.status(answer.status).json(errorBody(answer.status, answer.message));
  };
}

/** The shape of every error response. */
export function errorBody(code: number, message: string): { error: { code: number; message: string } } {
  return { error: { code, message } };
}

/** Our own errors, and those that Node gives for a machine in need. */
function toServiceError(error: unknown): ServiceError | undefined {
  if (error instanceof ServiceError) return error;
  const { code } = error as { code?: unknown };
  if (code === 'ENOSPC' || code === 'EDQUOT') return failBecause(error, 'DISK_FULL');
  if (code === 'EMFILE' || code === 'ENFILE') return failBecause(error, 'BUSY');
  return undefined;
}

/** For paths that lead nowhere. */
export function notFound(): never {
  throw fail('NOT_FOUND');
}
