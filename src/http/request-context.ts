import { randomUUID } from 'node:crypto';
import type { RequestHandler } from 'express';
import type { Logger } from 'pino';

/** A request id from elsewhere is taken over when it can do no harm in a log or a header. */
export const SANE_ID = /^[\w.:-]{1,128}$/;

/** What every response has: its `X-Request-Id`, and that its type is not to be guessed. */
export function firstHeaders(givenId = ''): Readonly<Record<string, string>> {
  return {
    'X-Request-Id': SANE_ID.test(givenId) ? givenId : randomUUID(),
    'X-Content-Type-Options': 'nosniff',
  };
}

/** Gives every response its {@link firstHeaders}. */
export const commonHeaders: RequestHandler = (req, res, next) => {
  res.set(firstHeaders(req.get('x-request-id')));
  next();
};

/** One line a request, when it is over. */
export function requestLog(log: Logger): RequestHandler {
  return (req, res, next) => {
    const started = performance.now();
    res.once('close', () => {
      log.info(
        {
          requestId: res.getHeader('X-Request-Id'),
          method: req.method,
          path: req.baseUrl + req.path,
          status: res.statusCode,
          complete: res.writableFinished,
          ms: Math.round(performance.now() - started),
        },
        'request',
      );
    });
    next();
  };
}
