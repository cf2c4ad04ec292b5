/**
 * @module The request queue: a few requests run concurrently, the others wait in order, and none starts during a
 * backoff.
 */

import { effect } from '@preact/signals';
import { backoff, shouldRetry } from './backoff.ts';

/**
 * Maximum number of concurrent requests. Browsers open six connections per server; the others stay free for the page.
 */
const MAX_CONCURRENT = 3;

let free = MAX_CONCURRENT;
const waiting: (() => void)[] = [];

effect(() => {
  if (!backoff.value) dequeue();
});

/**
 * Runs a task when a slot is free. Retries a task that failed because of a backoff, before other waiting tasks.
 *
 * @throws the task's error, or the signal's reason if it aborts
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

/**
 * Waits for a free slot.
 *
 * @param first whether to wait at the front of the queue
 */
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

/** Starts waiting tasks while slots are free and there is no backoff. */
function dequeue(): void {
  while (free > 0 && !backoff.value) {
    const enter = waiting.shift();
    if (!enter) return;
    free -= 1;
    enter();
  }
}
