import pLimit from 'p-limit';
import { ClientGone, fail } from '../errors.ts';

/** How many conversions run at once, how many may wait, whose turn it is, and who is turned away. */

export interface Pool {
  /**
   * Runs `job` when a place is free. `waitedMs` tells it how long that took. Jobs of one
   * `group` belong together (a batch); a free place goes to the group that runs
   * the fewest, and of those to the one that has waited the longest.
   *
   * @throws ServiceError BUSY when the queue is full
   * @throws ClientGone when `signal` fires before the job starts; it then never does
   */
  run<T>(signal: AbortSignal, job: (waitedMs: number) => Promise<T>, group?: object): Promise<T>;
  /** How many jobs wait, and how many run. */
  load(): { readonly waiting: number; readonly running: number };
}

interface Waiting {
  readonly group: object;
  /** When it came, as a number that only grows. */
  readonly came: number;
  /** Runs the job to its end; what comes back tells its caller how it ended. */
  readonly run: () => Promise<() => void>;
}

export function createPool(limits: { readonly concurrency: number; readonly queueLimit: number }): Pool {
  const limit = pLimit(limits.concurrency);
  /** In the order they came. */
  const waiting: Waiting[] = [];
  const running = new Map<object, number>();
  /** When a group was last served, in the same numbers. */
  const served = new WeakMap<object, number>();
  let turn = 0;
  let started = 0;

  /** What a place that falls free does: the next job of whoever has the least, if anybody still waits. */
  async function serveNext(): Promise<void> {
    const next = fairest(waiting, running, served);
    if (!next) return;
    waiting.splice(waiting.indexOf(next), 1);
    running.set(next.group, (running.get(next.group) ?? 0) + 1);
    started += 1;
    const tellCaller = await next.run();
    started -= 1;
    turn += 1;
    served.set(next.group, turn);
    const left = (running.get(next.group) ?? 1) - 1;
    if (left > 0) running.set(next.group, left);
    else running.delete(next.group);
    // Only now, so that a caller who at once has another job finds the place free.
    tellCaller();
  }

  return {
    run<T>(signal: AbortSignal, job: (waitedMs: number) => Promise<T>, group: object = {}): Promise<T> {
      if (signal.aborted) return Promise.reject(new ClientGone());
      if (started + waiting.length >= limits.concurrency + limits.queueLimit)
        return Promise.reject(fail('BUSY'));

      const queuedAt = performance.now();
      const { promise, resolve, reject } = Promise.withResolvers<T>();
      turn += 1;
      const entry: Waiting = {
        group,
        came: turn,
        run() {
          signal.removeEventListener('abort', leave);
          return job(performance.now() - queuedAt).then(
            (value) => () => resolve(value),
            (error) => () => reject(error),
          );
        },
      };
      // A job whose client leaves gives up its place in the queue at once, not when its turn comes.
      const leave = (): void => {
        waiting.splice(waiting.indexOf(entry), 1);
        reject(new ClientGone());
      };
      signal.addEventListener('abort', leave, { once: true });
      waiting.push(entry);
      void limit(serveNext);
      return promise;
    },
    load: () => ({ waiting: waiting.length, running: started }),
  };
}

/** Of the groups that run the least, the one that has waited the longest: since it came, or since it was served. */
function fairest(
  waiting: readonly Waiting[],
  running: ReadonlyMap<object, number>,
  served: WeakMap<object, number>,
): Waiting | undefined {
  const load = ({ group }: Waiting): number => running.get(group) ?? 0;
  const since = ({ group, came }: Waiting): number => Math.max(came, served.get(group) ?? 0);
  return waiting.reduce<Waiting | undefined>((best, candidate) => {
    if (!best) return candidate;
    return (load(candidate) - load(best) || since(candidate) - since(best)) < 0 ? candidate : best;
  }, undefined);
}
