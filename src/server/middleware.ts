/**
 * @module What each request passes before its handler: checks of its head, the headers of API responses, and routes with exactly one
 * method.
 */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import cors from 'cors';
import type { Express, Request, RequestHandler, Router } from 'express';
import { type ServiceError, serviceError } from '../errors.ts';

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

/** Path for a target that has none. */
const NO_PATH = '/*';

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

/** Checks the request line and headers of a request, on every path. */
type Check = (req: Request) => ServiceError | undefined;

/** A valid `Host` value by RFC 9112, section 3.2: characters of RFC 3986, or nothing. */
const HOST = /^[\w.~!$&'()*+,;=%:[\]-]*$/;

const CHECKS: readonly Check[] = [
  function host({ httpVersion, headersDistinct: { host: hosts = [] } }) {
    const valid =
      hosts.length === 1 ? HOST.test(hosts[0] as string) : hosts.length === 0 && httpVersion === '1.0';
    return valid ? undefined : serviceError('HOST_INVALID');
  },
  function transferCoding({ headers: { 'transfer-encoding': coding } }) {
    return coding === undefined || coding.toLowerCase() === 'chunked'
      ? undefined
      : serviceError('TRANSFER_CODING');
  },
  function target({ originalUrl }) {
    return parseTarget(originalUrl) === undefined ? serviceError('MALFORMED_REQUEST') : undefined;
  },
];

/** Rejects requests that violate HTTP, or whose body has an unsupported transfer coding. */
export const checkHead: RequestHandler = (req, _res, next) => {
  for (const check of CHECKS) {
    const error = check(req);
    if (error) return next(error);
  }
  next();
};

/** Connections that have a slot for probes only, because all regular slots were taken. */
export const probeConnections = new WeakSet<Socket>();

/** Rejects requests on connections that have a slot for probes only. */
export const rejectReserved: RequestHandler = (req, res, next) => {
  if (!probeConnections.has(req.socket)) return next();
  res.setHeader('Connection', 'close');
  next(serviceError('TOO_MANY_CONNECTIONS'));
};

/** Answers `OPTIONS *`, which asks about the server and not about a path (RFC 9110, section 9.3.7). */
export const serverOptions: RequestHandler = (req, res, next) => {
  if (req.method !== 'OPTIONS' || req.originalUrl !== '*') return next();
  res.setHeader('Allow', 'GET, HEAD, POST, OPTIONS');
  res.status(204).end();
};

/** Creates middleware that rejects requests after `draining` is aborted. */
export function rejectWhileDraining(draining: AbortSignal | undefined): RequestHandler {
  return (_req, res, next) => {
    if (!draining?.aborted) return next();
    res.setHeader('Connection', 'close');
    next(serviceError('SHUTTING_DOWN'));
  };
}

/** Express setting with the middleware that sets the headers of every API response. */
const API_HEADERS = 'api headers';

/** Resolves for each API response when its headers are set. The rate limit may have to wait for Redis. */
const headersSet = new WeakMap<ServerResponse, Promise<void>>();

/** Adds middleware that sets the headers of every API response, including those to requests that do not reach the app. */
export function useApiHeaders(app: Express, path: string, middleware: RequestHandler): void {
  app.use(path, (req, res, next) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    headersSet.set(res, promise);
    middleware(req, res, (error?: unknown) => {
      resolve();
      next(error);
    });
  });
  app.set(API_HEADERS, middleware);
}

/** Returns the middleware of {@link useApiHeaders}. */
export const apiHeadersOf = (app: Express): RequestHandler => app.get(API_HEADERS);

/** Resolves when the headers of an API response are set. */
export const whenHeadersSet = (res: ServerResponse): Promise<void> | undefined => headersSet.get(res);

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
