/** @module What each request passes first: log line, checks of its head, headers, and routes. */
import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import cors from 'cors';
import type { RequestHandler, Response, Router } from 'express';
import type { Logger } from 'pino';
import { type ErrorCode, serviceError } from '../tables/errors.ts';
import { RESULT_HEADERS } from './respond/result-headers.ts';

/** Valid `X-Request-Id` of a request: safe in a log and in a header. */
export const REQUEST_ID_PATTERN = /^[\w.:-]{1,128}$/;

/** Returns every response's headers: `X-Request-Id`, the client's if valid, and `nosniff`. */
export function baseHeaders(givenId = ''): Readonly<Record<string, string>> {
  return {
    'X-Request-Id': REQUEST_ID_PATTERN.test(givenId) ? givenId : randomUUID(),
    'X-Content-Type-Options': 'nosniff',
  };
}

/** Sets the {@link baseHeaders} of every response. */
export const commonHeaders: RequestHandler = (req, res, next) => {
  res.set(baseHeaders(req.get('x-request-id')));
  next();
};

/** How a request ended: successfully, with an error, or because the client disconnected. */
type RequestOutcome = 'OK' | 'CLIENT_GONE' | ErrorCode;

/** Log fields that only the handlers of a request know. None contains a file name. */
interface LogFields {
  outcome?: RequestOutcome;
  /** Name of the client's API key. */
  client?: string;
  /** IP address of the client. */
  address?: string;
  /** Distinct types of the input files, comma-separated. */
  input?: string;
  output?: string;
  /** Number of input files. */
  files?: number;
  uploadMs?: number;
  queueMs?: number;
  prepareMs?: number;
  convertMs?: number;
}

/** Bytes that a connection has transferred, including headers. */
interface TransferredBytes {
  readonly bytesIn: number;
  readonly bytesOut: number;
}

export interface FinishedRequest extends TransferredBytes {
  /** A known route, or {@link OTHER_ROUTE}. */
  readonly route: string;
  readonly status: number;
  readonly outcome: RequestOutcome;
  readonly seconds: number;
}

export interface RequestRecording {
  readonly log: Logger;
  /** Known routes. One with a slash at its end, except the root, includes all paths below it. */
  readonly routes: readonly string[];
  /** Routes that are logged at level debug, such as probes. */
  readonly debugRoutes: readonly string[];
  readonly onFinished: (request: FinishedRequest) => void;
}

/** Route of requests for unknown paths: a label must not contain a client's text, like a path. */
const OTHER_ROUTE = 'other';
/** Status in logs and metrics for a client that disconnected before the response, as in nginx. */
const CLIENT_CLOSED_REQUEST = 499;

/** Adds fields to the log line of the request. */
export function setLogFields(res: Response, fields: LogFields): void {
  Object.assign(res.locals, fields);
}

/** Creates middleware that logs one line and emits one event per finished request. */
export function recordRequests({ log, routes, debugRoutes, onFinished }: RequestRecording): RequestHandler {
  return (req, res, next) => {
    const started = performance.now();
    const { socket, path, method } = req;
    const route = routes.find((known) => path === known || isBelow(known, path)) ?? OTHER_ROUTE;
    res.once('close', () => {
      const ms = performance.now() - started;
      const status = res.headersSent ? res.statusCode : CLIENT_CLOSED_REQUEST;
      // An unfinished response without an error means that the client disconnected.
      const { outcome = res.writableFinished ? 'OK' : 'CLIENT_GONE', ...fields } = res.locals as LogFields;
      const bytes = bytesSince(socket);
      const requestId = res.getHeader('X-Request-Id');
      log[debugRoutes.includes(route) ? 'debug' : 'info'](
        { requestId, method, route, status, outcome, ...fields, ...bytes, ms: Math.round(ms) },
        'request completed',
      );
      onFinished({ route, status, outcome, seconds: ms / 1000, ...bytes });
    });
    next();
  };
}

/** Returns whether the path is below a route that ends with a slash. */
export const isBelow = (route: string, path: string): boolean =>
  route.length > 1 && route.endsWith('/') && path.startsWith(route);

/** Bytes that each connection had transferred at the end of its previous request. */
const byteCounters = new WeakMap<Socket, TransferredBytes>();

/** Returns the bytes that the connection has transferred since the previous call. */
function bytesSince(socket: Socket): TransferredBytes {
  const { bytesRead, bytesWritten } = socket;
  const { bytesIn, bytesOut } = byteCounters.get(socket) ?? { bytesIn: 0, bytesOut: 0 };
  byteCounters.set(socket, { bytesIn: bytesRead, bytesOut: bytesWritten });
  return { bytesIn: bytesRead - bytesIn, bytesOut: bytesWritten - bytesOut };
}

export type Method = 'GET' | 'POST' | 'PUT';

/** Returns the value of the `Allow` header for a route with these methods. */
export const formatAllow = (methods: readonly Method[]): string =>
  [...methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : method)), 'OPTIONS'].join(', ');

/** Adds a route. Responses to OPTIONS, and 405 to other methods, name its methods in `Allow`. */
export function endpoint(
  router: Router,
  methods: Method | readonly Method[],
  path: string,
  ...handlers: RequestHandler[]
): void {
  const all = [methods].flat();
  const allowed = formatAllow(all);
  const route = router.route(path);
  for (const method of all) route[method.toLowerCase() as Lowercase<Method>](...handlers);
  route.all((req, res) => {
    res.setHeader('Allow', allowed);
    if (req.method !== 'OPTIONS') throw serviceError('METHOD_NOT_ALLOWED', req.method, allowed);
    res.status(204).end();
  });
}

/** Connections that have a slot for probes only, because all regular slots were taken. */
export const probeConnections = new WeakSet<Socket>();

/** Rejects requests on connections that have a slot for probes only. */
export const rejectReserved: RequestHandler = (req, res, next) => {
  if (!probeConnections.has(req.socket)) return next();
  res.setHeader('Connection', 'close');
  next(serviceError('TOO_MANY_CONNECTIONS'));
};

/** Answers `OPTIONS *`, which asks about the server, not a path (RFC 9110, section 9.3.7). */
export const serverOptions: RequestHandler = (req, res, next) => {
  if (req.method !== 'OPTIONS' || req.originalUrl !== '*') return next();
  res.setHeader('Allow', formatAllow(['GET', 'POST', 'PUT']));
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

/** Response headers that scripts of other sites may read. */
const EXPOSED_HEADERS = [
  ...Object.keys(RESULT_HEADERS),
  'Retry-After',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'X-Request-Id',
];

/** Lets other sites use the API. Due to `preflightContinue`, a preflight counts like others. */
export function corsHeaders(origin: '*' | string[]): RequestHandler {
  return cors({
    origin,
    methods: ['GET', 'HEAD', 'POST', 'PUT'], // OPTIONS needs no permission
    exposedHeaders: EXPOSED_HEADERS,
    preflightContinue: true,
    maxAge: 86_400, // a day, for which browsers can cache the response to a preflight
  });
}
