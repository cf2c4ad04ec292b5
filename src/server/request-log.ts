import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Request, RequestHandler, Response } from 'express';
import type { Logger } from 'pino';
import type { ErrorCode } from '../errors.ts';

/** A request id from elsewhere is taken over when it can do no harm in a log or a header. */
export const REQUEST_ID_PATTERN = /^[\w.:-]{1,128}$/;

/** What every response has: its `X-Request-Id`, and that its type is not to be guessed. */
export function baseHeaders(givenId = ''): Readonly<Record<string, string>> {
  return {
    'X-Request-Id': REQUEST_ID_PATTERN.test(givenId) ? givenId : randomUUID(),
    'X-Content-Type-Options': 'nosniff',
  };
}

/** Gives every response its {@link baseHeaders}. */
export const commonHeaders: RequestHandler = (req, res, next) => {
  res.set(baseHeaders(req.get('x-request-id')));
  next();
};

/** How a request ended: well, by a row of the error table, or because the client left. */
type RequestOutcome = 'OK' | 'CLIENT_GONE' | ErrorCode;

/** What only the handlers of a request know about it; no name of a file is among it. */
interface LogFields {
  outcome?: RequestOutcome;
  /** Types of the images, each once, and how many there were. */
  input?: string;
  output?: string;
  files?: number;
  uploadMs?: number;
  queueMs?: number;
  convertMs?: number;
}

export interface FinishedRequest {
  /** A path of ours, or {@link OTHER_ROUTE}. */
  readonly route: string;
  readonly status: number;
  readonly outcome: RequestOutcome;
  readonly seconds: number;
  /** Of the connection, headers included. */
  readonly bytesIn: number;
  readonly bytesOut: number;
}

export interface RequestRecording {
  readonly log: Logger;
  /** The paths that are told apart; one with a slash at its end, but for the root, is for all that lies below it. */
  readonly routes: readonly string[];
  /** Those that somebody asks for all the time, whose lines are of level debug. */
  readonly debugRoutes: readonly string[];
  readonly onFinished: (request: FinishedRequest) => void;
}

/** Where a request went that is for no path of ours: what a client writes there is no label. */
const OTHER_ROUTE = 'other';
/** nginx's number for a client that left before there was an answer. */
const CLIENT_LEFT = 499;

/** Notes what a handler knows for the line of its request. */
export function setLogFields(res: Response, facts: LogFields): void {
  Object.assign(res.locals, facts);
}

/** One line and one event a request, when it is over. */
export function recordRequests({
  log,
  routes,
  debugRoutes: quiet,
  onFinished,
}: RequestRecording): RequestHandler {
  const routeOf = ({ path }: Request): string => {
    return routes.find((route) => path === route || below(route, path)) ?? OTHER_ROUTE;
  };
  return (req, res, next) => {
    const started = performance.now();
    const { socket } = req;
    const route = routeOf(req);
    res.once('close', () => {
      const ms = performance.now() - started;
      const status = res.headersSent ? res.statusCode : CLIENT_LEFT;
      const { outcome = outcomeOf(res), ...facts } = res.locals as LogFields;
      const bytes = bytesSince(socket);
      log[quiet.includes(route) ? 'debug' : 'info'](
        {
          requestId: res.getHeader('X-Request-Id'),
          ...{ method: req.method, route, status, outcome },
          ...facts,
          ...bytes,
          ms: Math.round(ms),
        },
        'request',
      );
      onFinished({ route, status, outcome, seconds: ms / 1000, ...bytes });
    });
    next();
  };
}

const below = (route: string, path: string): boolean =>
  route.length > 1 && route.endsWith('/') && path.startsWith(route);

/** An answer that was begun and not finished has lost its reader, unless an error said otherwise. */
function outcomeOf(res: ServerResponse): RequestOutcome {
  return res.writableFinished ? 'OK' : 'CLIENT_GONE';
}

interface Bytes {
  readonly bytesIn: number;
  readonly bytesOut: number;
}

/** What each connection had moved when its last request was over. */
const byteCounters = new WeakMap<Socket, Bytes>();

/** What the connection has moved since then. */
function bytesSince(socket: Socket): Bytes {
  const before = byteCounters.get(socket) ?? { bytesIn: 0, bytesOut: 0 };
  const now = { bytesIn: socket.bytesRead, bytesOut: socket.bytesWritten };
  byteCounters.set(socket, now);
  return { bytesIn: now.bytesIn - before.bytesIn, bytesOut: now.bytesOut - before.bytesOut };
}
