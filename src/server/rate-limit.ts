/** @module Limits each client's requests per minute. Its window starts with its first request. */
import type { Request, RequestHandler } from 'express';
import { rateLimit, type Store } from 'express-rate-limit';
import { serviceError } from '../tables/errors.ts';
import { clientOf } from './clients.ts';

/** Length of the window, in milliseconds. */
export const WINDOW_MS = 60_000;

/** Options of both limits. */
const PER_CLIENT = {
  windowMs: WINDOW_MS,
  keyGenerator: (req: Request) => clientOf(req).key,
  standardHeaders: false,
  validate: false, // its warnings concern settings that config.ts validates at startup
} as const;

/**
 * Creates the rate-limit middleware. Each client has its own limit.
 *
 * @param now monotonic clock in milliseconds
 * @param withFallback returns a shared store that falls back to the local store
 */
export function rateLimiter(
  now: () => number = () => performance.now(),
  withFallback: (local: Store) => Store = (local) => local,
): RequestHandler {
  return rateLimit({
    ...PER_CLIENT,
    limit: (req) => clientOf(req).perMinute,
    skip: (req) => clientOf(req).perMinute === 0,
    store: withFallback(createFixedWindowStore(now)),
    legacyHeaders: true, // X-RateLimit-Limit, -Remaining, -Reset (Unix seconds) and Retry-After
    handler(req, res, next) {
      const wait = Number(res.getHeader('Retry-After'));
      const { perMinute, limitedBy } = clientOf(req);
      if (!isPreflight(req)) return next(serviceError('RATE_LIMITED', perMinute, wait, limitedBy));
      res.removeHeader('Retry-After');
      next();
    },
  });
}

/**
 * Returns whether the request is a CORS preflight. A preflight is counted but never rejected:
 * otherwise, the page could not read the error of its actual request.
 */
function isPreflight({ method, headers }: Request): boolean {
  return method === 'OPTIONS' && 'origin' in headers && 'access-control-request-method' in headers;
}

/** Requests per minute and client outside the API: ten loads of the page and more. */
const OUTSIDE_PER_MINUTE = 600;

/**
 * Creates the middleware that limits requests outside the API, which the API's limit does not
 * count. It has counters of its own, and no headers. A client without a limit in the API has none
 * here, either.
 *
 * @param isCounted returns whether a path counts
 * @param now monotonic clock in milliseconds
 */
export function outsideLimiter(
  isCounted: (path: string) => boolean,
  now: () => number = () => performance.now(),
): RequestHandler {
  return rateLimit({
    ...PER_CLIENT,
    limit: OUTSIDE_PER_MINUTE,
    skip: (req) => clientOf(req).perMinute === 0 || !isCounted(req.path),
    store: createFixedWindowStore(now),
    legacyHeaders: false,
    requestPropertyName: 'outsideLimit',
    handler(req, _res, next) {
      const { resetTime } = (req as Request & { outsideLimit: { resetTime: Date } }).outsideLimit;
      const wait = Math.max(1, Math.ceil((resetTime.getTime() - Date.now()) / 1000));
      next(serviceError('RATE_LIMITED', OUTSIDE_PER_MINUTE, wait, 'RATE_LIMIT_PER_MINUTE'));
    },
  });
}

/** Creates an in-memory store. Windows have equal lengths: the first in the map ends first. */
function createFixedWindowStore(now: () => number): Store {
  const windows = new Map<string, { hits: number; readonly endsAt: number; readonly resetTime: Date }>();

  const removeEnded = (): void => {
    for (const [key, { endsAt }] of windows) {
      if (endsAt > now()) return;
      windows.delete(key);
    }
  };
  return {
    localKeys: true,
    increment(key) {
      removeEnded();
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
