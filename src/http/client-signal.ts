import type { ServerResponse } from 'node:http';

/** A signal that fires when the client goes away before its answer is complete. */
export function clientSignal(res: ServerResponse): AbortSignal {
  const controller = new AbortController();
  res.once('close', () => {
    if (!res.writableFinished) controller.abort();
  });
  return controller.signal;
}
