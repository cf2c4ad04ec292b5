import type { ServerResponse } from 'node:http';
import type { Answer } from '../files/disk-room.ts';

/**
 * Bytes a second, on average over the time that nothing at all may leave: less holds disk for too long. The kernel hands
 * a slow reader's bytes on in pieces of up to 2 MiB, so that nothing finer can be measured.
 */
export const MIN_ANSWER_RATE = 4096;

export interface WatchedAnswer extends Answer {
  /** Ends the watch: the answer is out, or cannot be sent. */
  end(): void;
}

/**
 * Watches how fast an answer leaves this process, and hangs up when it stalls or is read too slowly: as long as it is
 * sent, its files take room on disk.
 *
 * @param windowMs how long nothing may leave, and how long the rate is averaged over, in milliseconds
 */
export function watchAnswer(res: ServerResponse, windowMs: number): WatchedAnswer {
  const started = performance.now();
  const sentBefore = sentBytes(res);
  const cutOff = (): void => void res.destroy();
  let sent = sentBefore;
  const watch = setInterval(() => {
    const before = sent;
    sent = sentBytes(res);
    if (sent - before < (MIN_ANSWER_RATE * windowMs) / 1000) cutOff();
  }, windowMs);
  res.setTimeout(windowMs, cutOff);
  return {
    cutOff,
    end: () => clearInterval(watch),
    bytesPerSecond: () => (sentBytes(res) - sentBefore) / Math.max(1, (performance.now() - started) / 1000),
  };
}

/** What the kernel has taken over. */
function sentBytes({ socket }: ServerResponse): number {
  return socket ? socket.bytesWritten - socket.writableLength : 0;
}
