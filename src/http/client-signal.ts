import type { ServerResponse } from 'node:http';
import { ClientDisconnectedError } from '../errors.ts';

/** A signal that fires when the client goes away before its answer is complete. */
export function disconnectSignal(res: ServerResponse): AbortSignal {
  const controller = new AbortController();
  res.once('close', () => {
    if (!res.writableFinished) controller.abort();
  });
  return controller.signal;
}

/** What Node says when the other end of a stream is not there any more. */
const DISCONNECT_CODES = [
  'ERR_STREAM_PREMATURE_CLOSE',
  'ERR_STREAM_UNABLE_TO_PIPE',
  'ERR_STREAM_DESTROYED',
  'ECONNRESET',
  'EPIPE',
];

/** Why an answer could not be sent: the client left, or something of ours that the log should tell. */
export function toSendError(cause: unknown): unknown {
  const { code } = cause as NodeJS.ErrnoException;
  return code !== undefined && DISCONNECT_CODES.includes(code) ? new ClientDisconnectedError({ cause }) : cause;
}
