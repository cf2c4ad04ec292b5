import { effect } from '@preact/signals';
import { backoff, shouldRetry } from './backoff.ts';

/** Which request goes when: a few side by side, the others in order, none while something holds them up. */

/** A browser opens six connections to a server; some stay free for the page itself. */
const MAX_CONCURRENT = 3;

let free = MAX_CONCURRENT;
const waiting: (() => void)[] = [];

effect(() => {
  if (!backoff.value) dequeue();
});

/**
 * Runs `task` when it is its turn. What fails because of a hold is tried again after it, before others.
 *
 * Rejects with the task's own error, or the signal's reason.
 */
export async function queued<T>(task: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    await acquireSlot(signal, attempt > 1);
    try {
      return await task(signal);
    } catch (error) {
      if (signal.aborted || !(await shouldRetry(error, attempt))) throw error;
    } finally {
      free += 1;
      dequeue();
    }
  }
}

function acquireSlot(signal: AbortSignal, first: boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const enter = (): void => {
      signal.removeEventListener('abort', leave);
      resolve();
    };
    const leave = (): void => {
      waiting.splice(waiting.indexOf(enter), 1);
      reject(signal.reason);
    };
    signal.addEventListener('abort', leave, { once: true });
    if (first) waiting.unshift(enter);
    else waiting.push(enter);
    dequeue();
  });
}

function dequeue(): void {
  while (free > 0 && !backoff.value) {
    const enter = waiting.shift();
    if (!enter) return;
    free -= 1;
    enter();
  }
}
