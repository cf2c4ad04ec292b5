import pLimit from 'p-limit';
import { ClientGone, fail } from '../errors.ts';

/** How many conversions run at once, how many may wait, and who is turned away. */

export interface Pool {
  /**
   * Runs `job` when a place is free. `waitedMs` tells it how long that took.
   *
   * @throws ServiceError BUSY when the queue is full
   * @throws ClientGone when `signal` fires before the job starts; it then never does
   */
  run<T>(signal: AbortSignal, job: (waitedMs: number) => Promise<T>): Promise<T>;
}

export function createPool(limits: { readonly concurrency: number; readonly queueLimit: number }): Pool {
  const limit = pLimit(limits.concurrency);
  let waiting = 0;
  let running = 0;

  return {
    run(signal, job) {
      if (signal.aborted) return Promise.reject(new ClientGone());
      if (running + waiting >= limits.concurrency + limits.queueLimit) return Promise.reject(fail('BUSY'));

      const queuedAt = performance.now();
      const { promise, resolve, reject } = Promise.withResolvers<Awaited<ReturnType<typeof job>>>();
      waiting += 1;

      // A job whose client leaves gives up its place in the queue at once, not when its turn comes.
      const leave = () => {
        waiting -= 1;
        reject(new ClientGone());
      };
      signal.addEventListener('abort', leave, { once: true });

      void limit(async () => {
        if (signal.aborted) return;
        signal.removeEventListener('abort', leave);
        waiting -= 1;
        running += 1;
        try {
          resolve(await job(performance.now() - queuedAt));
        } catch (error) {
          reject(error);
        } finally {
          running -= 1;
        }
      });
      return promise;
    },
  };
}
