import type { RequestHandler } from 'express';
import { INPUTS, type InputType, type OutputType } from '../formats.ts';

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
