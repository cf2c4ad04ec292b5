/** @module Adds routes with exactly one method. */
import type { RequestHandler, Router } from 'express';
import { serviceError } from '../errors.ts';

/** A method that a route can have. */
export type Method = 'GET' | 'POST';

/** Value of the `Allow` header for a route's method. */
export const ALLOWED: Readonly<Record<Method, string>> = { GET: 'GET, HEAD, OPTIONS', POST: 'POST, OPTIONS' };

/**
 * Adds a route with one method to the router. Responses to OPTIONS, and 405 responses to other methods, name the method
 * in `Allow`.
 */
export function endpoint(router: Router, method: Method, path: string, ...handlers: RequestHandler[]): void {
  const allowed = ALLOWED[method];
  const route = router.route(path);
  if (method === 'GET') route.get(...handlers);
  else route.post(...handlers);
  route.all((req, res) => {
    res.setHeader('Allow', allowed);
    if (req.method !== 'OPTIONS') throw serviceError('METHOD_NOT_ALLOWED', req.method, allowed);
    res.status(204).end();
  });
}
