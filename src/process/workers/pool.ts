import { type Command, CommandError, type Output, type RunCommand } from '../command.ts';
import type { Worker } from './worker.ts';

/**
 * Processes that are started before there is work for them. Each serves one client only, so that a broken
 * codec never holds two clients' images; after some images, or anything strange, it makes way for a new one.
 */

export interface WorkerPool {
  /** Runs a command that names its client in a process of that client, and every other in one of its own. */
  readonly run: RunCommand;
  /** How many wait for a client, and how many for more of their client's images. */
  readonly spare: number;
  readonly idle: number;
  /** Ends them all, once what is under way has come to its end. */
  close(): Promise<void>;
}

/** How the repetition ended. `ok` means that the worker was at fault, `failed` mostly a damaged picture. */
export const FALLBACK_OUTCOMES = ['ok', 'failed'] as const;
export type FallbackOutcome = (typeof FALLBACK_OUTCOMES)[number];

export interface WorkerPoolOptions {
  readonly start: () => Promise<Worker>;
  /** The program that they run, by its path. */
  readonly executable: string;
  /** Runs a command in a process of its own. */
  readonly runInFreshProcess: RunCommand;
  /** How many may be at work at once: as many are ready, and as many wait for more of their client's images. */
  readonly size: number;
  /** Images that one process may do. */
  readonly maxJobs: number;
  /** Told what is wrong with a worker, and not with the picture. */
  readonly onError: (trouble: unknown) => void;
  /** Called when a job that failed in a worker was repeated in a process of its own. */
  readonly onFallback?: (outcome: FallbackOutcome, failure: unknown) => void;
  /** How long a process waits for its client's next image, in milliseconds; by default {@link IDLE_TIMEOUT_MS}. */
  readonly idleMs?: number;
}

/** Somebody who works through a folder comes again sooner. */
const IDLE_TIMEOUT_MS = 30_000;
/** Who could not start will not do better at once, in milliseconds. */
const RESTART_BACKOFF_MS = 5_000;
/** A photo of 12 megapixels leaves some 30 MiB behind; what has grown beyond this makes way for a new one. */
const MAX_RSS_BYTES = 192 * 1024 ** 2;

/** A worker with its client. */
interface AssignedWorker {
  readonly worker: Worker;
  readonly client: string;
  done: number;
  retire?: NodeJS.Timeout;
}

export function createWorkerPool(deps: WorkerPoolOptions): WorkerPool {
  const {
    start,
    executable: serves,
    runInFreshProcess: runAlone,
    size: slots,
    maxJobs: reuse,
    onError: report,
    idleMs = IDLE_TIMEOUT_MS,
    onFallback = () => {},
  } = deps;
  /** Started, and nobody's yet. */
  const ready: Worker[] = [];
  /** At rest, the one that has rested longest first. */
  const resting: AssignedWorker[] = [];
  const starting = new Set<Promise<unknown>>();
  const running = new Set<Promise<unknown>>();
  const ending = new Set<Promise<unknown>>();
  let closed = false;
  let pausedUntil = 0;

  function onStartFailure(trouble: unknown): void {
    pausedUntil = performance.now() + RESTART_BACKOFF_MS;
    report(trouble);
  }

  function refill(): void {
    if (performance.now() < pausedUntil) return;
    while (!closed && ready.length + starting.size < slots) {
      track(
        starting,
        start().then((worker) => (closed ? end(worker) : void ready.push(worker)), onStartFailure),
      );
    }
  }

  /** The client's own, or a new one; nothing when none is ready, since waiting would be slower than a process alone. */
  function acquire(client: string): AssignedWorker | undefined {
    const own = resting.findLast((kept) => kept.client === client && kept.worker.alive);
    if (own) {
      resting.splice(resting.indexOf(own), 1);
      clearTimeout(own.retire);
      return own;
    }
    let worker = ready.shift();
    while (worker && !worker.alive) {
      onStartFailure(new Error('a process has ended before there was work for it'));
      end(worker);
      worker = ready.shift();
    }
    refill();
    return worker && { worker, client, done: 0 };
  }

  function release(kept: AssignedWorker, { stderr }: Output): void {
    kept.done += 1;
    if (kept.done >= reuse || stderr !== '' || closed || isWorn(kept.worker)) {
      end(kept.worker);
      return;
    }
    kept.retire = setTimeout(() => evict(kept), idleMs).unref();
    resting.push(kept);
    if (resting.length > slots) evict(resting[0] as AssignedWorker);
  }

  function evict(kept: AssignedWorker): void {
    resting.splice(resting.indexOf(kept), 1);
    clearTimeout(kept.retire);
    end(kept.worker);
  }

  function end(worker: Worker): void {
    track(ending, worker.end().catch(report)); // a folder that cannot be removed is swept at the next start
  }

  async function run(command: Command): Promise<Output> {
    const { client, signal } = command;
    const kept =
      client !== undefined && command.file === serves && !signal?.aborted ? acquire(client) : undefined;
    if (!kept) return runAlone(command);
    const started = performance.now();
    try {
      const output = await kept.worker.run(command);
      release(kept, output);
      return output;
    } catch (error) {
      end(kept.worker);
      if (isNotRetryable(error)) throw error;
      if (!(error instanceof CommandError)) report(error);
      const left = Math.max(1, command.timeoutMs - Math.ceil(performance.now() - started));
      return repeatAlone({ ...command, timeoutMs: left }, error);
    }
  }

  async function repeatAlone(command: Command, failure: unknown): Promise<Output> {
    try {
      const output = await runAlone(command);
      onFallback('ok', failure);
      return output;
    } catch (error) {
      onFallback('failed', failure);
      throw error;
    }
  }

  refill();
  return {
    run: (command) => track(running, run(command)),
    get spare() {
      return ready.length;
    },
    get idle() {
      return resting.length;
    },
    async close() {
      closed = true;
      await Promise.allSettled([...starting, ...running]);
      for (const kept of [...resting]) evict(kept);
      for (const worker of ready.splice(0)) end(worker);
      await Promise.all(ending);
    },
  };
}

/** A worker that has grown, or in which a job has left a process. */
function isWorn(worker: Worker): boolean {
  const { memoryBytes, processes } = worker.usage();
  return memoryBytes > MAX_RSS_BYTES || processes > worker.processes;
}

/** Has a promise in the set until it is settled. */
function track<T>(set: Set<Promise<unknown>>, promise: Promise<T>): Promise<T> {
  const forget = (): void => void set.delete(promise);
  set.add(promise);
  promise.then(forget, forget);
  return promise;
}

/**
 * What fails is tried once more by a process of its own, so that no result depends on what the worker did before,
 * or on its folder. That one also says what was wrong: after an error between parentheses, a script dies of a
 * failed assertion (magick-cli.c, 7.1.1) and takes the message with it.
 */
function isNotRetryable(error: unknown): boolean {
  return error instanceof CommandError && ['timeout', 'cancelled'].includes(error.reason);
}
