/** @module Rewrites the texts of SVGs in two threads. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { serviceErrorFrom } from '../../errors.ts';

/** Number of threads: with the second one, the SVG of another client does not wait for a text that takes long. */
const THREADS = 2;

/** Rewrites the text of the SVG `label`. */
type Rewrite = (text: string, label: string) => Promise<string>;

/**
 * Creates a function that rewrites texts in {@link THREADS} threads, each in the one with the fewest texts. The callers decide on the
 * order: each thread takes its texts in the order of the calls.
 *
 * @param createRewrite creates the function of one thread
 */
export function shareThreads(createRewrite: () => Rewrite): Rewrite {
  const threads = Array.from({ length: THREADS }, () => ({ rewrite: createRewrite(), texts: 0 }));
  return (text, label) => {
    const thread = threads.reduce((least, each) => (each.texts < least.texts ? each : least));
    thread.texts += 1;
    return thread.rewrite(text, label).finally(() => {
      thread.texts -= 1;
    });
  };
}

/**
 * Creates a function that rewrites the text of the SVG `label` in a thread, one text after another. The thread starts with the
 * first text, and ends some time after the last one, since it keeps memory of large texts. The process can end while the thread waits.
 *
 * @param program program of the thread, which responds to each text with the rewritten one, or with an error
 * @param idleMs time after the last text until the thread ends
 * @returns a function that throws ServiceErrors: CONVERSION_TIMEOUT if a text takes longer than the limit, and OVERLOADED if the
 *   thread cannot start, or ends, because files or memory are exhausted
 */
export function createThreadRewriter(program: URL, timeoutMs: number, idleMs = 20_000): Rewrite {
  let thread: Worker | undefined;
  let idleTimer: NodeJS.Timeout | undefined;
  let turn: Promise<unknown> = Promise.resolve();

  async function rewrite(text: string, label: string): Promise<string> {
    clearTimeout(idleTimer);
    thread ??= new Worker(program, { execArgv: [] });
    const worker = thread;
    const end = (): void => {
      thread = undefined;
      void worker.terminate();
    };
    worker.ref();
    const limit = AbortSignal.timeout(timeoutMs);
    const done = new AbortController();
    const signal = AbortSignal.any([limit, done.signal]);
    const ended = once(worker, 'exit', { signal }).then(([status]) => {
      throw new Error(`The thread for SVGs ended with status ${status}.`);
    });
    worker.postMessage(text);
    const [answer] = await Promise.race([once(worker, 'message', { signal }), ended])
      .catch((error) => {
        end();
        throw limit.aborted
          ? serviceErrorFrom(error, 'CONVERSION_TIMEOUT', label, { ms: timeoutMs, work: 'SVGs' })
          : serviceErrorFrom(error, 'OVERLOADED');
      })
      .finally(() => done.abort());
    worker.unref();
    idleTimer = setTimeout(end, idleMs).unref();
    if (typeof answer === 'string') return answer;
    throw answer;
  }

  return (text, label) => {
    const result = turn.then(() => rewrite(text, label));
    turn = result.catch(() => {});
    return result;
  };
}
