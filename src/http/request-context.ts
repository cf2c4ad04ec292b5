import { randomUUID } from 'node:crypto';
import type { RequestHandler } from 'express';
import type { Logger } from 'pino';

/** A request id from elsewhere is taken over when it can do no harm in a log or a header. */
const SANE_ID = /^[\w.:-]{1,128}$/;

/** Gives every response its `X-Request-Id`, and says that its type is not to be guessed. */
export const commonHeaders: RequestHandler = (req, res, next) => {
  const given = req.get('x-request-id') ?? '';
  res.setHeader('X-Request-Id', SANE_ID.test(given) ? given : randomUUID());
  res.setHeader('X-Content-Type-Options', 'nosniff');
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
