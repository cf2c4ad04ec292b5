/** @module Request ids, and one log line per request. */
import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Request, RequestHandler, Response } from 'express';
import type { Logger } from 'pino';
import type { ErrorCode } from '../errors.ts';

/** Valid `X-Request-Id` of a request: safe in a log and in a header. */
export const REQUEST_ID_PATTERN = /^[\w.:-]{1,128}$/;

/** Returns the headers of every response: `X-Request-Id`, the client's if it is valid, and `nosniff`. */
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

/** A finished request, for metrics. */
export interface FinishedRequest {
  /** A known route, or {@link OTHER_ROUTE}. */
  readonly route: string;
  readonly status: number;
  readonly outcome: RequestOutcome;
  readonly seconds: number;
  /** Bytes received on the connection, including headers. */
  readonly bytesIn: number;
  /** Bytes sent on the connection, including headers. */
  readonly bytesOut: number;
}

/** Options of {@link recordRequests}. */
export interface RequestRecording {
  readonly log: Logger;
  /** Known routes. A route with a slash at its end, except the root, includes all paths below it. */
  readonly routes: readonly string[];
  /** Routes that are logged at level debug, such as probes. */
  readonly debugRoutes: readonly string[];
  readonly onFinished: (request: FinishedRequest) => void;
}

/** Route of a request for an unknown path. The path is not used, because a label must not contain a client's text. */
const OTHER_ROUTE = 'other';
/** Status in logs and metrics for a client that disconnected before the response, as in nginx. */
const CLIENT_CLOSED_REQUEST = 499;

/** Adds fields to the log line of the request. */
export function setLogFields(res: Response, fields: LogFields): void {
  Object.assign(res.locals, fields);
}

/** Creates middleware that logs one line and emits one event per finished request. */
export function recordRequests({ log, routes, debugRoutes, onFinished }: RequestRecording): RequestHandler {
  const matchRoute = ({ path }: Request): string => {
    return routes.find((route) => path === route || isBelow(route, path)) ?? OTHER_ROUTE;
  };
  return (req, res, next) => {
    const started = performance.now();
    const { socket } = req;
    const route = matchRoute(req);
    res.once('close', () => {
      const ms = performance.now() - started;
      const status = res.headersSent ? res.statusCode : CLIENT_CLOSED_REQUEST;
      const { outcome = defaultOutcome(res), ...fields } = res.locals as LogFields;
      const bytes = bytesSince(socket);
      log[debugRoutes.includes(route) ? 'debug' : 'info'](
        {
          requestId: res.getHeader('X-Request-Id'),
          method: req.method,
          route,
          status,
          outcome,
          ...fields,
          ...bytes,
          ms: Math.round(ms),
        },
        'request completed',
      );
      onFinished({ route, status, outcome, seconds: ms / 1000, ...bytes });
    });
    next();
  };
}

/** Returns whether the path is below a route that ends with a slash. */
const isBelow = (route: string, path: string): boolean =>
  route.length > 1 && route.endsWith('/') && path.startsWith(route);

/** Returns the outcome of a request that had no error. An unfinished response means that the client disconnected. */
function defaultOutcome(res: ServerResponse): RequestOutcome {
  return res.writableFinished ? 'OK' : 'CLIENT_GONE';
}

interface Bytes {
  readonly bytesIn: number;
  readonly bytesOut: number;
}

/** Bytes that each connection had transferred at the end of its previous request. */
const byteCounters = new WeakMap<Socket, Bytes>();

/** Returns the bytes that the connection has transferred since the previous call. */
function bytesSince(socket: Socket): Bytes {
  const before = byteCounters.get(socket) ?? { bytesIn: 0, bytesOut: 0 };
  const now = { bytesIn: socket.bytesRead, bytesOut: socket.bytesWritten };
  byteCounters.set(socket, now);
  return { bytesIn: now.bytesIn - before.bytesIn, bytesOut: now.bytesOut - before.bytesOut };
}
