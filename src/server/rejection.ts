/** @module Sends error responses while a request's body is still arriving. */
import type { IncomingMessage } from 'node:http';
import type { Request, Response } from 'express';
import { RESPONSE_SENT } from './connections.ts';

/**
 * Maximum time to discard the rest of a rejected request, in milliseconds. Many clients and proxies read the response
 * only after they have sent the entire request, so with a limit on bytes, they would not receive it.
 */
export const MAX_DISCARD_MS = 5_000;

/**
 * Sends an error response, also while the request's body is still arriving. The rest of the body is discarded. If that
 * takes longer than {@link MAX_DISCARD_MS}, the connection is closed. After 408, it is closed at once.
 */
export function sendRejection(req: Request, res: Response, status: number, body: object): void {
  const payload = JSON.stringify(body);
  res.status(status).type('json').setHeader('Content-Length', Buffer.byteLength(payload));
  if (status === 408) res.setHeader('Connection', 'close');
  if (req.complete || req.method === 'HEAD' || status === 408) {
    res.end(payload);
    return;
  }
  const closes = !res.shouldKeepAlive || res.getHeader('Connection') === 'close';
  req.resume();
  if (!closes) {
    res.once('finish', () => limitDiscarding(req));
    res.end(payload);
    return;
  }
  // Ending a response with Connection: close would close the connection at once.
  req.once('close', () => res.end());
  res.write(payload, () => {
    res.emit(RESPONSE_SENT);
    limitDiscarding(req);
  });
}

function limitDiscarding(req: IncomingMessage): void {
  if (req.complete) return;
  const deadline = setTimeout(() => req.socket.destroySoon(), MAX_DISCARD_MS);
  req.once('close', () => clearTimeout(deadline));
}
