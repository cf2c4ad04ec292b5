/**
 * @module The request queue: a few requests run concurrently, the others wait in order, and none
 * starts during a backoff: after the rate limit, while the server is busy or cannot be reached, or
 * while it needs an API key.
 */
import { effect, signal } from '@preact/signals';
import { ImagemillError } from '../../client/library/error.ts';
import { obstacleOf } from '../../client/library/retry.ts';
import { apiKey, ConnectionError, isAlive } from './api.ts';

/** Maximum concurrent requests. Browsers open six per server; the others stay free for the page. */
const MAX_CONCURRENT = 3;

let free = MAX_CONCURRENT;
const waiting: (() => void)[] = [];

/**
 * Runs a task when a slot is free. Retries a task that failed because of a backoff, before other
 * waiting tasks.
 *
 * @param first whether to run it before all waiting tasks
 * @throws the task's error, or the signal's reason if it aborts
 */
export async function queued<T>(
  task: (signal: AbortSignal) => Promise<T>,
  signal: AbortSignal,
  first = false,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    await acquireSlot(signal, first || attempt > 1);
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

/** Waits for a free slot, at the front of the queue if `first`. */
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

/**
 * Why requests wait: the rate limit is reached (`limit`), the server is busy (`busy`) or cannot be
 * reached (`away`), it needs an API key (`key`), or does not accept this one (`wrong-key`).
 * `seconds` is the remaining time as an integer.
 */
export type Backoff =
  | { readonly why: 'limit' | 'busy'; readonly seconds: number }
  | { readonly why: 'away' | 'key' | 'wrong-key' };

/** The current backoff; undefined while requests can be sent. */
export const backoff = signal<Backoff | undefined>(undefined);

/** Interval of checks whether the server can be reached again, in ms. */
const LIVENESS_POLL_MS = 1_000;
const UNAUTHORIZED = 401;
const BAD_GATEWAY = 502;
/**
 * Maximum Retry-After of a 503 that is retried, in s. A full or restarting server sends less; a
 * larger value means that a retry would fail again.
 */
const MAX_BACKOFF_S = 10;

/** Returns whether to retry a failed request after this many attempts, and starts the backoff. */
async function shouldRetry(error: unknown, attempt: number): Promise<boolean> {
  if (error instanceof ImagemillError) {
    const { status, retryAfter = 0 } = error;
    if (status === UNAUTHORIZED) return waitForKey();
    const obstacle = obstacleOf(status);
    if (obstacle === 'limit') return countDown(obstacle, Math.max(1, retryAfter));
    if (obstacle === 'busy' && retryAfter > 0 && retryAfter <= MAX_BACKOFF_S)
      return countDown(obstacle, retryAfter);
    if (!obstacle) return false;
  } else if (!(error instanceof ConnectionError)) return false;
  // If the server is alive, either the file has become unreadable, or the server has restarted or a
  // replica took over. A single retry distinguishes the two cases.
  const connectionLost = error instanceof ConnectionError || error.status === BAD_GATEWAY;
  if (await isAlive()) return connectionLost && attempt === 1;
  waitForServer();
  return true;
}

/** Starts a countdown. Requests that fail together share the first one's countdown. */
function countDown(why: 'limit' | 'busy', seconds: number): true {
  if (backoff.value) return true;
  const end = Date.now() + seconds * 1000;
  backoff.value = { why, seconds };
  const timer = setInterval(() => {
    const left = Math.ceil((end - Date.now()) / 1000);
    if (left <= 0) clearInterval(timer);
    backoff.value = left > 0 ? { why, seconds: left } : undefined;
  }, 250);
  return true;
}

/** Waits for {@link enterKey}. */
function waitForKey(): true {
  backoff.value ??= { why: apiKey.value ? 'wrong-key' : 'key' };
  return true;
}

/** Continues with an API key. */
export function enterKey(key: string): void {
  apiKey.value = key;
  backoff.value = undefined;
}

/** Polls the server until it responds. */
function waitForServer(): void {
  if (backoff.value) return;
  backoff.value = { why: 'away' };
  const poll = async (): Promise<void> => {
    if (await isAlive()) backoff.value = undefined;
    else setTimeout(poll, LIVENESS_POLL_MS);
  };
  setTimeout(poll, LIVENESS_POLL_MS);
}

effect(() => {
  if (!backoff.value) dequeue();
});
