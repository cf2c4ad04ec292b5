/** @module Threads that work for the event loop: each answers one request after another. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { serviceErrorFrom, type TimeLimit } from '../tables/errors.ts';

/** Number of threads: with two, work that takes long does not delay another client. */
const THREADS = 2;

/** Time after the last request until a thread ends, in ms. */
const IDLE_MS = 20_000;

/** Works for the file `label`. */
type Work<Q, A> = (request: Q, label: string) => Promise<A>;

/**
 * Creates a function that works in {@link THREADS} threads, each time in the one with the fewest
 * requests. The callers decide on the order: each thread takes its requests in the order of the
 * calls.
 *
 * @param createWork creates the function of one thread
 */
export function shareThreads<Q, A>(createWork: () => Work<Q, A>): Work<Q, A> {
  const threads = Array.from({ length: THREADS }, () => ({ work: createWork(), requests: 0 }));
  return (request, label) => {
    const thread = threads.reduce((least, each) => (each.requests < least.requests ? each : least));
    thread.requests += 1;
    return thread.work(request, label).finally(() => {
      thread.requests -= 1;
    });
  };
}

/**
 * Creates a function that sends requests to a thread, one after another. The thread starts with the
 * first request, and ends some time after the last one, since it keeps memory of large ones. The
 * process can end while the thread waits.
 *
 * @param program program of the thread, which responds to each request with the answer, or with an
 *   error
 * @returns a function that throws ServiceErrors: CONVERSION_TIMEOUT if a request takes longer than
 *   the limit, and OVERLOADED if the thread cannot start, or ends, because files or memory are
 *   exhausted
 */
export function createThread<Q, A>(program: URL, limit: TimeLimit): Work<Q, A> {
  let thread: Worker | undefined;
  let idleTimer: NodeJS.Timeout | undefined;
  let turn: Promise<unknown> = Promise.resolve();

  async function work(request: Q, label: string): Promise<A> {
    clearTimeout(idleTimer);
    thread ??= new Worker(program, { execArgv: [] });
    const worker = thread;
    const end = (): void => {
      thread = undefined;
      void worker.terminate();
    };
    worker.ref();
    const timeout = AbortSignal.timeout(limit.ms);
    const done = new AbortController();
    const signal = AbortSignal.any([timeout, done.signal]);
    const ended = once(worker, 'exit', { signal }).then(([status]) => {
      throw new Error(`A thread ended with status ${status}.`);
    });
    worker.postMessage(request);
    const [answer] = await Promise.race([once(worker, 'message', { signal }), ended])
      .catch((error) => {
        end();
        throw timeout.aborted
          ? serviceErrorFrom(error, 'CONVERSION_TIMEOUT', label, limit)
          : serviceErrorFrom(error, 'OVERLOADED');
      })
      .finally(() => done.abort());
    worker.unref();
    idleTimer = setTimeout(end, IDLE_MS).unref();
    if (answer instanceof Error) throw answer;
    return answer;
  }

  return (request, label) => {
    const result = turn.then(() => work(request, label));
    turn = result.catch(() => {});
    return result;
  };
}
