import type { Request, RequestHandler } from 'express';
import { rateLimit, type Store } from 'express-rate-limit';
import { serviceError } from '../errors.ts';
import { clientKey } from './client-key.ts';

/** Requests a minute from one client: a fixed window that starts with its first request. */

export const WINDOW_MS = 60_000;

/**
 * @param perMinute requests that one client may send
 * @param now milliseconds of a clock that never goes back
 * @param over puts shared counters in front of those of this process
 */
export function rateLimiter(
  perMinute: number,
  now: () => number,
  over: (own: Store) => Store = (own) => own,
): RequestHandler {
  return rateLimit({
    windowMs: WINDOW_MS,
    limit: perMinute,
    store: over(FixedWindowStore(now)),
    keyGenerator: clientKey,
    legacyHeaders: true, // X-RateLimit-Limit, -Remaining, -Reset (Unix seconds) and Retry-After
    standardHeaders: false,
    validate: false, // its warnings are about settings that ours check at start
    handler(req, res, next) {
      const wait = Number(res.getHeader('Retry-After'));
      if (!isPreflight(req)) return next(serviceError('RATE_LIMITED', perMinute, wait));
      res.removeHeader('Retry-After');
      next();
    },
  });
}

/**
 * Returns whether a browser asks for permission to send another request. Such a request counts, but is never refused:
 * after a refusal, the page could not read the error of the request that it wants to send.
 */
function isPreflight(req: Request): boolean {
  return (
    req.method === 'OPTIONS' &&
    req.get('origin') !== undefined &&
    'access-control-request-method' in req.headers
  );
}

/** Counts in memory. Windows all last the same, so the oldest is first in the map and first to end. */
function FixedWindowStore(now: () => number): Store {
  const windows = new Map<string, { hits: number; readonly endsAt: number; readonly resetTime: Date }>();

  const forgetEnded = (): void => {
    for (const [key, { endsAt }] of windows) {
      if (endsAt > now()) return;
      windows.delete(key);
    }
  };
  return {
    localKeys: true,
    increment(key) {
      forgetEnded();
      const window = windows.get(key) ?? {
        hits: 0,
        endsAt: now() + WINDOW_MS,
        resetTime: new Date(Date.now() + WINDOW_MS),
      };
      windows.set(key, window);
      window.hits += 1;
      return { totalHits: window.hits, resetTime: window.resetTime };
    },
    decrement(key) {
      const window = windows.get(key);
      if (window) window.hits = Math.max(0, window.hits - 1);
    },
    resetKey(key) {
      windows.delete(key);
    },
  };
}
