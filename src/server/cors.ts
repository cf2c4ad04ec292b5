import cors from 'cors';
import type { RequestHandler } from 'express';

/** What scripts of other sites may read of an answer. */
export const EXPOSED_HEADERS = [
  'Content-Disposition',
  'Retry-After',
  'Server-Timing',
  'X-Conversion-Notes',
  'X-Conversion-Quality',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'X-Request-Id',
];

/**
 * Lets pages of other sites use the API. `preflightContinue`, so that a preflight is counted and answered like any
 * other request.
 */
export function corsHeaders(origin: '*' | string[]): RequestHandler {
  return cors({ origin, exposedHeaders: EXPOSED_HEADERS, preflightContinue: true, maxAge: 86400 });
}
