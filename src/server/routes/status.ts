import type { RequestHandler } from 'express';
import { INPUTS, type InputType, type OutputType } from '../../formats.ts';
import type { Metrics } from '../metrics.ts';

/** `GET /formats`: what can be converted to what on this machine. */
export function formatsRoute(inputs: readonly InputType[], outputs: readonly OutputType[]): RequestHandler {
  const body = { input: inputs.flatMap((type) => INPUTS[type].names), output: outputs };
  return (_req, res) => {
    res.json(body);
  };
}

/** `GET /health`: that it is there, which version, and what time it has. */
export function healthRoute(version: string): RequestHandler {
  return (_req, res) => {
    res.setHeader('Cache-Control', 'no-store');
    res.json({ status: 'ok', version, timestamp: new Date().toISOString() });
  };
}

/** `GET /openapi.json`: what there is, for programs. */
export function openApiRoute(document: Readonly<Record<string, unknown>>): RequestHandler {
  return (_req, res) => {
    res.setHeader('Cache-Control', 'no-cache');
    res.json(document);
  };
}

/** `GET /livez`: the process answers. It never depends on load. */
export const liveRoute: RequestHandler = (_req, res) => {
  res.setHeader('Cache-Control', 'no-store');
  res.json({ status: 'ok' });
};

/** `GET /metrics`: what Prometheus asks for. */
export function metricsRoute(expose: Metrics['render']): RequestHandler {
  return async (_req, res) => {
    const { type, text } = await expose();
    res.set({ 'Cache-Control': 'no-store', 'Content-Type': type }).end(text);
  };
}

/**
 * `GET /readyz`: whether it should be sent requests, which it should not while it shuts down or when
 * conversions fail. It says how the tools are shut in, too.
 */
export function readyRoute(
  works: () => Promise<boolean>,
  draining: () => boolean,
  sandbox: Readonly<Record<string, string>>,
): RequestHandler {
  return async (_req, res) => {
    const status = draining() ? 'draining' : (await works()) ? 'ok' : 'failing';
    res.setHeader('Cache-Control', 'no-store');
    res.status(status === 'ok' ? 200 : 503).json({ status, sandbox });
  };
}
