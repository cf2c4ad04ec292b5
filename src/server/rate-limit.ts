/**
 * @module Limits the requests per client and minute. A fixed window starts with the first request of a client. The limit on
 * connections and the queue identify clients by the same key.
 */

import { isIP, type Socket } from 'node:net';
import type { Express, Request, RequestHandler } from 'express';
import { ipKeyGenerator, rateLimit, type Store } from 'express-rate-limit';
import type { Config } from '../config.ts';
import { serviceError } from '../errors.ts';

/** Length of the window, in milliseconds. */
export const WINDOW_MS = 60_000;

/**
 * Creates the rate-limit middleware.
 *
 * @param perMinute maximum requests per client and minute
 * @param now monotonic clock in milliseconds
 * @param withFallback returns a shared store that falls back to the local store
 */
export function rateLimiter(
  perMinute: number,
  now: () => number,
  withFallback: (local: Store) => Store = (local) => local,
): RequestHandler {
  return rateLimit({
    windowMs: WINDOW_MS,
    limit: perMinute,
    store: withFallback(createFixedWindowStore(now)),
    keyGenerator: clientKey,
    legacyHeaders: true, // X-RateLimit-Limit, -Remaining, -Reset (Unix seconds) and Retry-After
    standardHeaders: false,
    validate: false, // its warnings concern settings that config.ts validates at startup
    handler(req, res, next) {
      const wait = Number(res.getHeader('Retry-After'));
      if (!isPreflight(req)) return next(serviceError('RATE_LIMITED', perMinute, wait));
      res.removeHeader('Retry-After');
      next();
    },
  });
}

/**
 * Returns whether the request is a CORS preflight. A preflight is counted but never rejected: otherwise, the page could
 * not read the error of its actual request.
 */
function isPreflight(req: Request): boolean {
  return (
    req.method === 'OPTIONS' &&
    req.get('origin') !== undefined &&
    'access-control-request-method' in req.headers
  );
}

/** Creates an in-memory store. All windows have the same length, so the first one in the map ends first. */
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

/** Prefix length by which IPv6 clients are identified: the smallest network that providers assign to a customer. */
const IPV6_SUBNET = 64;

/** Express setting with the function that returns whether the proxy at an address, `hop` hops away, is trusted. */
const TRUST_FUNCTION = 'trust proxy fn';
type TrustFunction = (address: string, hop: number) => boolean;

/**
 * Makes the app accept forwarded addresses from trusted proxies, including addresses with a port.
 *
 * @param setting the value of `TRUST_PROXY`
 */
export function trustProxies(app: Express, setting: Config['TRUST_PROXY']): void {
  app.set('trust proxy', setting);
  const trusts: TrustFunction = app.get(TRUST_FUNCTION);
  app.set('trust proxy', ((address, hop) =>
    trusts(parseAddress(address) ?? '', hop)) satisfies TrustFunction);
}

/**
 * Returns the key of a request's client: its IPv4 address, or the network of its IPv6 address. If a trusted proxy
 * forwards something that is not an address, the address of the connection is used.
 */
export function clientKey(req: Request): string {
  return addressKey(parseAddress(req.ip) ?? req.socket.remoteAddress);
}

/**
 * Returns the key of a connection's client, or undefined for a trusted proxy, whose connections belong to many clients.
 */
export function connectionKey(app: Express, { remoteAddress = '' }: Socket): string | undefined {
  const trusts: TrustFunction = app.get(TRUST_FUNCTION);
  return trusts(remoteAddress, 0) ? undefined : addressKey(remoteAddress);
}

function addressKey(address: string | undefined): string {
  return ipKeyGenerator(parseAddress(address) ?? 'unknown', IPV6_SUBNET);
}

/** Returns an IP address without brackets, port and zone, or undefined if the text is not an address. */
export function parseAddress(text = ''): string | undefined {
  const [, bracketed, v4] = /^\[([^\]]*)\](?::\d+)?$|^([\d.]+):\d+$/.exec(text) ?? [];
  const address = (bracketed ?? v4 ?? text).replace(/%.*$/s, '');
  return isIP(address) === 0 ? undefined : address;
}
