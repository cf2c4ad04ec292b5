/** @module Routes for the state and the capabilities of the service. */
import type { Request, RequestHandler } from 'express';
import type { Metrics } from '../metrics.ts';
import { TOO_OFTEN } from '../respond/error-handler.ts';

/** Handles `GET /health`: status, version and current time. */
export function healthRoute(version: string): RequestHandler {
  return (_req, res) => {
    res.setHeader('Cache-Control', 'no-store');
    res.json({ status: 'ok', version, timestamp: new Date().toISOString() });
  };
}

/** Handles `GET /openapi.json`. In the document, `origin` stands for this server's address. */
export function openApiRoute(document: Readonly<Record<string, unknown>>, origin: string): RequestHandler {
  // Serialized once: a copy per request would be memory that unread pipelined requests hold.
  let parts: readonly Buffer[] | undefined;
  return (req, res) => {
    parts ??= JSON.stringify(document, req.app.get('json replacer'))
      .split(origin)
      .map((part) => Buffer.from(part));
    const own = Buffer.from(originOf(req) ?? origin);
    const body = parts.flatMap((part, at) => (at === 0 ? [part] : [own, part]));
    res.setHeader('Cache-Control', 'no-cache');
    res.type('json').setHeader(
      'Content-Length',
      body.reduce((sum, { length }) => sum + length, 0),
    );
    for (const part of body) res.write(part);
    res.end();
  };
}

/** Returns the address by which the client reaches this server, if the request states it. */
function originOf({ protocol, host }: Request): string | undefined {
  const origin = `${protocol}://${host}`;
  return host && /^https?:\/\/[\w.:[\]-]+$/.test(origin) ? origin : undefined;
}

/** Handles `GET /livez`: liveness. The response does not depend on the load. */
export const liveRoute: RequestHandler = (_req, res) => {
  res.setHeader('Cache-Control', 'no-store');
  res.json({ status: 'ok' });
};

/** Time in ms for which rendered metrics are sent again. Rendering takes several milliseconds. */
const METRICS_TTL_MS = 1000;

/** Handles `GET /metrics`, in Prometheus format. `now` is a monotonic clock in milliseconds. */
export function metricsRoute(
  render: Metrics['render'],
  now: () => number = () => performance.now(),
): RequestHandler {
  let rendered: ReturnType<Metrics['render']> | undefined;
  let renderedAt = 0;
  return async (_req, res) => {
    if (rendered && now() - renderedAt < METRICS_TTL_MS) {
      res.emit(TOO_OFTEN);
    } else {
      rendered = render();
      renderedAt = now();
    }
    const { type, text } = await rendered;
    res.set({ 'Cache-Control': 'no-store', 'Content-Type': type }).end(text);
  };
}

/** Handles `GET /readyz`: the sandbox layers, with 503 during shutdown or if conversions fail. */
export function readyRoute(
  isHealthy: () => Promise<boolean>,
  draining: AbortSignal | undefined,
  sandbox: Readonly<Record<string, string>>,
): RequestHandler {
  return async (_req, res) => {
    const status = draining?.aborted ? 'draining' : (await isHealthy()) ? 'ok' : 'failing';
    res.setHeader('Cache-Control', 'no-store');
    res.status(status === 'ok' ? 200 : 503).json({ status, sandbox });
  };
}
