/**
 * @module A job of the queue: its states, and the promise of its caller. Counts the slots and the slot time that clients and groups
 * of jobs use, and selects who is next.
 */
import { ClientDisconnectedError } from '../../errors.ts';

/**
 * Runs a job. Receives the time that it waited for its preparation and for a slot, in ms, the number of slots that are idle
 * when it starts, and its slot.
 */
export type RunJob<T> = (waitedMs: number, idleSlots: number, slot: Slot) => Promise<T>;

/** The slot of a running job. */
export interface Slot {
  /** Aborts when another client needs the slot, at most once. Then the job should stop and call `returnToQueue`. */
  readonly stop: AbortSignal;
  /**
   * Gives the slot back, once at most. Resolves when the job has a slot again.
   *
   * @throws {ServiceError} QUEUE_FULL when a job of another client replaces this one
   * @throws {ClientDisconnectedError} if the client disconnects
   */
  returnToQueue(): Promise<void>;
}

/**
 * Kinds of preparations, which have separate places, so that a slow kind delays no other: SVGs take turns in threads, and PDFs wait
 * for a tool.
 */
export const PREPARATION_KINDS = ['main', 'svg', 'pdf'] as const;
export type PreparationKind = (typeof PREPARATION_KINDS)[number];

/** A client of the queue. */
export interface QueueClient {
  readonly key: string | undefined;
  /** Waiting jobs, in the order of arrival. */
  readonly waiting: QueuedJob[];
}

export interface QueuedJob {
  readonly arrival: Moment;
  readonly client: QueueClient;
  readonly group: object;
  readonly kind: PreparationKind;
  /** Whether the job consists of a preparation, and needs no slot for running jobs. */
  readonly isPreparation: boolean;
  state: 'unprepared' | 'preparing' | 'ready' | 'running' | 'stopping';
  /** Start of the current or last wait, in ms. */
  waitsSince: number;
  /** Asks the running job to stop. */
  readonly stop: AbortController;
  /**
   * Prepares or runs the job. Resolves when the job no longer needs its slot, to the function that settles the promise of the
   * caller, if it is to be settled.
   */
  readonly serve: () => Promise<() => void>;
  /** Rejects the promise of the caller. The job has left the queue. */
  readonly reject: (error: Error) => void;
}

/** A job that is added to the queue. */
export interface NewJob<T>
  extends Pick<QueuedJob, 'arrival' | 'client' | 'group' | 'kind' | 'isPreparation'> {
  /** The job, or undefined if it has to be prepared. */
  readonly prepared: RunJob<T> | undefined;
  readonly prepare: () => Promise<RunJob<T>>;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
}

/** Functions of the queue that a job calls. */
export interface QueueAccess {
  readonly now: () => number;
  readonly idleSlots: () => number;
  readonly enter: (job: QueuedJob) => void;
  readonly leave: (job: QueuedJob) => void;
}

/** Runs a part of a job that can be repeated. The signal aborts when the part should stop. */
export type RunPart = <T>(part: (signal: AbortSignal) => Promise<T>) => Promise<T>;

/**
 * Returns the function that runs the parts of a job. If another client needs the slot, the running part is stopped, and
 * repeated when the job has a slot again.
 *
 * @param signal aborts when the client disconnects
 * @param onRepeat called before a part is repeated, with the time since its first start, in ms
 */
export function createPartRunner(
  { stop, returnToQueue }: Slot,
  signal: AbortSignal,
  onRepeat: (lostMs: number) => void,
): RunPart {
  let hasReturned = false;
  return async (part) => {
    if (hasReturned) return part(signal);
    const started = performance.now();
    try {
      return await part(AbortSignal.any([signal, stop]));
    } catch (error) {
      if (!stop.aborted || signal.aborted) throw error;
    }
    hasReturned = true;
    await returnToQueue();
    onRepeat(performance.now() - started);
    return part(signal);
  };
}

/** Adds a job to the queue. Returns the promise of the caller. */
export function addJob<T>(
  { prepared, prepare, signal, arrival, client, group, kind, isPreparation }: NewJob<T>,
  { now, idleSlots, enter, leave }: QueueAccess,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const returned = Promise.withResolvers<() => void>();
  const regained = Promise.withResolvers<void>();
  let ready = prepared;
  let outcome: Promise<() => void> | undefined;
  let waitedMs = 0;
  let left: Error | undefined;
  const job: QueuedJob = {
    ...{ arrival, client, group, kind, isPreparation, waitsSince: arrival.ms, stop: new AbortController() },
    state: prepared && !isPreparation ? 'ready' : 'unprepared',
    async serve() {
      if (outcome) {
        regained.resolve();
        return outcome;
      }
      waitedMs += now() - job.waitsSince;
      if (ready) {
        outcome = run(ready);
        return Promise.race([outcome, returned.promise]);
      }
      try {
        ready = await prepare();
        if (left) throw left;
        job.state = 'ready';
        job.waitsSince = now();
        return () => {};
      } catch (error) {
        if (!left) leave(job);
        signal.removeEventListener('abort', disconnect);
        return () => reject(left ?? error);
      }
    },
    reject(error) {
      signal.removeEventListener('abort', disconnect);
      // A job that has started still uses the files of the caller.
      if (job.state === 'preparing') left = error;
      else if (outcome) {
        regained.reject(error);
        outcome.then((settle) => settle());
      } else reject(error);
    },
  };
  const run = async (start: RunJob<T>): Promise<() => void> => {
    try {
      const value = await start(waitedMs, idleSlots(), { stop: job.stop.signal, returnToQueue });
      return () => resolve(value);
    } catch (error) {
      return () => reject(error);
    } finally {
      signal.removeEventListener('abort', disconnect);
    }
  };
  const returnToQueue = (): Promise<void> => {
    job.state = 'ready';
    job.waitsSince = now();
    enter(job);
    returned.resolve(() => {});
    return regained.promise;
  };
  // Free the place in the queue immediately, not when the job would start.
  const disconnect = (): void => {
    if (!client.waiting.includes(job)) return;
    leave(job);
    job.reject(new ClientDisconnectedError());
  };
  signal.addEventListener('abort', disconnect);
  enter(job);
  return promise;
}

/** A point in time. Points with equal `ms` differ in `order`, which increases with each point. */
export interface Moment {
  readonly ms: number;
  readonly order: number;
}

/** Slots that a client, or a group, uses. */
interface Usage {
  /** Number of running jobs. */
  running: number;
  /** Time when a job of it last ended. */
  lastServed: Moment;
  /** Slot time until `countedAt`, in ms. */
  usedMs: number;
  countedAt: number;
}

/** Returns the usage of a client or group until `ms`. */
export type Usages = (user: object, ms: number) => Usage;

/** Time after which used slot time counts half, in ms: the window of the rate limit. */
const HALF_LIFE_MS = 60_000;
/** Slot time of a client that is too small to be remembered, in ms. */
export const NEGLIGIBLE_MS = 100;

/** Creates the usages of slots of one kind. They are forgotten with their client or group. */
export function createUsages(): Usages {
  const usages = new WeakMap<object, Usage>();
  return (user, ms) => {
    let usage = usages.get(user);
    if (!usage) {
      usage = {
        running: 0,
        lastServed: { ms: Number.NEGATIVE_INFINITY, order: 0 },
        usedMs: 0,
        countedAt: ms,
      };
      usages.set(user, usage);
    }
    const elapsed = ms - usage.countedAt;
    usage.usedMs = usage.usedMs * 2 ** (-elapsed / HALF_LIFE_MS) + usage.running * elapsed;
    usage.countedAt = ms;
    return usage;
  };
}

/**
 * Returns the candidate with the fewest running jobs. Among equals, returns the one that has waited longest since it
 * arrived or was last served, minus the slot time that it used. So a client with long jobs waits longer, but not forever.
 */
export function leastServed<T>(
  candidates: readonly T[],
  usageOf: (candidate: T, ms: number) => Usage,
  arrivalOf: (candidate: T) => Moment,
  ms: number,
): T | undefined {
  const ranked = candidates.map((candidate) => {
    const { running, lastServed, usedMs } = usageOf(candidate, ms);
    const arrival = arrivalOf(candidate);
    const since = lastServed.order > arrival.order ? lastServed : arrival;
    return { candidate, running, dueMs: since.ms + usedMs, order: since.order };
  });
  ranked.sort((a, b) => a.running - b.running || a.dueMs - b.dueMs || a.order - b.order);
  return ranked[0]?.candidate;
}
