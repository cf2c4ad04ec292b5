/**
 * @module Pool of workers: ImageMagick processes that start before there is work for them. Each worker serves only one
 * client, so that a compromised codec never holds the images of two clients, unless the operator lets all clients share
 * the workers. A worker is replaced after a number of jobs, and after any warning or error.
 */

import { type Command, CommandError, type Output, type RunCommand } from '../command.ts';
import type { Worker } from './worker.ts';

/** Pool of workers. */
export interface WorkerPool {
  /** Runs a command that names its client in a worker of that client, and any other command in a new process. */
  readonly run: RunCommand;
  /** Number of workers that no client has used yet. */
  readonly spare: number;
  /** Number of workers that wait for the next image of their client. */
  readonly idle: number;
  /** Ends all workers after the running jobs have completed. */
  close(): Promise<void>;
}

/** Outcomes of repeating a failed job in a new process. `ok`: the worker was faulty. `failed`: usually a damaged image. */
export const FALLBACK_OUTCOMES = ['ok', 'failed'] as const;
/** Outcome of repeating a failed job in a new process. */
export type FallbackOutcome = (typeof FALLBACK_OUTCOMES)[number];

/** Options of {@link createWorkerPool}. */
export interface WorkerPoolOptions {
  /** Starts a worker. */
  readonly start: () => Promise<Worker>;
  /** Absolute path of the program that the workers run. */
  readonly executable: string;
  /** Runs a command in a new process. */
  readonly runInFreshProcess: RunCommand;
  /** Maximum number of commands that run at once. Also the number of spare workers, and the maximum number of idle ones. */
  readonly size: number;
  /** Number of jobs after which a worker is replaced. */
  readonly maxJobs: number;
  /** Whether a worker serves all clients instead of one. */
  readonly shared?: boolean;
  /** Receives errors of workers that are not caused by an image. */
  readonly onError: (error: unknown) => void;
  /** Called after a job that failed in a worker was repeated in a new process. */
  readonly onFallback?: (outcome: FallbackOutcome, failure: unknown) => void;
  /** Time that a worker waits for the next image of its client, in ms. Defaults to {@link IDLE_TIMEOUT_MS}. */
  readonly idleMs?: number;
}

/** Default time that a worker waits for the next image of its client, in ms. Clients with many images send them faster. */
const IDLE_TIMEOUT_MS = 30_000;
/** Backoff before starting another worker after a failed start, in ms. */
const RESTART_BACKOFF_MS = 5_000;
/** Resident memory above which a worker is replaced. A photo of 12 megapixels leaves some 30 MiB allocated. */
const MAX_RSS_BYTES = 192 * 1024 ** 2;

/** Key of a worker that serves all clients. */
const ALL_CLIENTS = '';

/** A worker that is assigned to a client. */
interface AssignedWorker {
  readonly worker: Worker;
  readonly client: string;
  completedJobs: number;
  idleTimer?: NodeJS.Timeout;
}

/** Creates a pool, and starts its spare workers. */
export function createWorkerPool(options: WorkerPoolOptions): WorkerPool {
  const {
    start,
    executable,
    runInFreshProcess,
    size,
    maxJobs,
    shared = false,
    onError,
    idleMs = IDLE_TIMEOUT_MS,
    onFallback = () => {},
  } = options;
  /** Workers without a client. */
  const spare: Worker[] = [];
  /** Workers that wait for their client, the longest waiting first. */
  const idle: AssignedWorker[] = [];
  const starting = new Set<Promise<unknown>>();
  const running = new Set<Promise<unknown>>();
  const ending = new Set<Promise<unknown>>();
  let closed = false;
  let backoffUntil = 0;

  function onStartFailure(error: unknown): void {
    backoffUntil = performance.now() + RESTART_BACKOFF_MS;
    onError(error);
  }

  function refill(): void {
    if (performance.now() < backoffUntil) return;
    while (!closed && spare.length + starting.size < size) {
      track(
        starting,
        start().then((worker) => (closed ? end(worker) : void spare.push(worker)), onStartFailure),
      );
    }
  }

  /** Returns the client's idle worker, or a spare one. Without a spare worker, a new process is faster than waiting. */
  function acquire(client: string): AssignedWorker | undefined {
    const previous = idle.findLast((assigned) => assigned.client === client && assigned.worker.alive);
    if (previous) {
      idle.splice(idle.indexOf(previous), 1);
      clearTimeout(previous.idleTimer);
      return previous;
    }
    let worker = spare.shift();
    while (worker && !worker.alive) {
      onStartFailure(new Error('a worker exited before its first job'));
      end(worker);
      worker = spare.shift();
    }
    refill();
    return worker && { worker, client, completedJobs: 0 };
  }

  function release(assigned: AssignedWorker, { stderr }: Output): void {
    assigned.completedJobs += 1;
    if (assigned.completedJobs >= maxJobs || stderr !== '' || closed || isWorn(assigned.worker)) {
      end(assigned.worker);
      return;
    }
    assigned.idleTimer = setTimeout(() => evict(assigned), idleMs).unref();
    idle.push(assigned);
    if (idle.length > size) evict(idle[0] as AssignedWorker);
  }

  function evict(assigned: AssignedWorker): void {
    idle.splice(idle.indexOf(assigned), 1);
    clearTimeout(assigned.idleTimer);
    end(assigned.worker);
  }

  function end(worker: Worker): void {
    track(ending, worker.end().catch(onError)); // the next start of the service removes the folder
  }

  async function run(command: Command): Promise<Output> {
    const { client, signal } = command;
    const assigned =
      client !== undefined && command.file === executable && !signal?.aborted
        ? acquire(shared ? ALL_CLIENTS : client)
        : undefined;
    if (!assigned) return runInFreshProcess(command);
    const started = performance.now();
    try {
      const output = await assigned.worker.run(command);
      release(assigned, output);
      return output;
    } catch (error) {
      end(assigned.worker);
      if (isNotRetryable(error)) throw error;
      if (!(error instanceof CommandError)) onError(error);
      const left = Math.max(1, command.timeoutMs - Math.ceil(performance.now() - started));
      return retryInFreshProcess({ ...command, timeoutMs: left }, error);
    }
  }

  async function retryInFreshProcess(command: Command, failure: unknown): Promise<Output> {
    try {
      const output = await runInFreshProcess(command);
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
      return spare.length;
    },
    get idle() {
      return idle.length;
    },
    async close() {
      closed = true;
      await Promise.allSettled([...starting, ...running]);
      for (const assigned of [...idle]) evict(assigned);
      for (const worker of spare.splice(0)) end(worker);
      await Promise.all(ending);
    },
  };
}

/** Returns true if a worker uses too much memory, or if a job has left a process in it. */
function isWorn(worker: Worker): boolean {
  const { memoryBytes, processes } = worker.usage();
  return memoryBytes > MAX_RSS_BYTES || processes > worker.processes;
}

/** Keeps a promise in the set until it is settled. */
function track<T>(set: Set<Promise<unknown>>, promise: Promise<T>): Promise<T> {
  const forget = (): void => void set.delete(promise);
  set.add(promise);
  promise.then(forget, forget);
  return promise;
}

/**
 * Returns true for a job that must not be repeated, because it timed out or was cancelled.
 *
 * Every other failed job runs again in a new process, so that no result depends on earlier jobs of the worker, or on its
 * folder. The new process also reports the error: after an error between parentheses, a script of ImageMagick fails an
 * assertion (magick-cli.c, 7.1.1) and loses the message.
 */
function isNotRetryable(error: unknown): boolean {
  return error instanceof CommandError && ['timeout', 'cancelled'].includes(error.reason);
}
