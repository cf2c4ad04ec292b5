/**
 * @module Adds routes with exactly one method, and parses request targets. Express would use `url.parse` for these, which is
 * deprecated, and send a page of its own for some.
 */
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

/** Path below which all operations of the API are. */
export const API_PREFIX = '/api/v1';

/** Path for an invalid target. It is below the API, so that the rate limit counts the request. */
export const INVALID_PATH = `${API_PREFIX}/*`;

/** A target that is an absolute URL (RFC 9112, section 3.2.2): what precedes the path, and the rest. */
const ABSOLUTE_FORM = /^(https?:\/\/[^/?]*)(.*)$/i;

/**
 * Returns the path and query of a request target, with the spelling that the client sent. For `*`, returns a path that no
 * route has.
 *
 * @returns undefined if the target is invalid. RFC 9112, section 3.2 allows no fragment: proxies and this app might disagree
 *   about its path.
 */
export function parseTarget(target: string): string | undefined {
  if (target.includes('#')) return undefined;
  if (target.startsWith('/')) return target;
  if (target === '*') return NO_PATH;
  const [, origin = '', path = ''] = ABSOLUTE_FORM.exec(target) ?? [];
  if (!URL.canParse(origin)) return undefined;
  return path.startsWith('/') ? path : `/${path}`;
}

/** Path for a target that has none. */
const NO_PATH = '/*';
