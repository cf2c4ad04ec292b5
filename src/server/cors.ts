/** @module Cross-origin resource sharing. */
import cors from 'cors';
import type { RequestHandler } from 'express';

/** Response headers that scripts of other sites may read. */
export const EXPOSED_HEADERS = [
  'Content-Disposition',
  'Repr-Digest',
  'ETag',
  'Retry-After',
  'Server-Timing',
  'X-Conversion-Key',
  'X-Conversion-Notes',
  'X-Conversion-Quality',
  'X-Image-Height',
  'X-Image-Width',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'X-Request-Id',
];

/** Methods of the API; OPTIONS needs no permission. */
export const METHODS = ['GET', 'HEAD', 'POST'];

/** Time for which browsers can cache the response to a preflight, in seconds: a day. */
const PREFLIGHT_TTL_S = 86_400;

/**
 * Creates middleware that lets pages of other sites use the API. With `preflightContinue`, a preflight is counted and
 * answered like any other request.
 */
export function corsHeaders(origin: '*' | string[]): RequestHandler {
  return cors({
    origin,
    methods: METHODS,
    exposedHeaders: EXPOSED_HEADERS,
    preflightContinue: true,
    maxAge: PREFLIGHT_TTL_S,
  });
}
