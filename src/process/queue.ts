/** @module Queue of conversions. It limits how many run at once, and shares slots and queue fairly between clients. */

import pLimit from 'p-limit';
import { ClientDisconnectedError, serviceError } from '../errors.ts';

/** Runs jobs, a limited number at once, and schedules them fairly between clients. */
export interface ConversionQueue {
  /**
   * Runs `job` when a slot is free.
   *
   * A free slot goes to the client with the fewest running jobs. Among these clients, it goes to the one that has
   * waited longest since it was last served. Within a client, the same rule selects a group. Within a group, jobs run
   * in the order of their arrival.
   *
   * When the queue is full, a new job replaces the newest waiting job of the client with the most waiting jobs, if the
   * new job's client has fewer. So the queue rejects jobs only of clients that have filled their own share.
   *
   * @param job receives the time that it waited, in ms, and the number of slots that are idle when it starts
   * @throws {ServiceError} QUEUE_FULL when the queue is full, or when a job of another client replaces this one
   * @throws {ClientDisconnectedError} if the signal aborts before the job starts; the job then never starts
   */
  run<T>(job: (waitedMs: number, idleSlots: number) => Promise<T>, owner: JobOwner): Promise<T>;
  /** Returns the numbers of waiting and running jobs. */
  stats(): { readonly waiting: number; readonly running: number };
}

/** Client and request that a job belongs to. */
interface JobOwner {
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
  /** Key of the client. All jobs without a key belong to one client. */
  readonly client?: string | undefined;
  /** Request that the job belongs to, if the request can have several jobs. */
  readonly group?: object | undefined;
}

interface WaitingJob {
  /** Logical time of arrival. It increases with each job. */
  readonly arrival: number;
  readonly group: object;
  /** Runs the job. Resolves to the function that settles the promise of the caller. */
  readonly run: () => Promise<() => void>;
  /** Rejects the promise of the caller with `QUEUE_FULL`. */
  readonly reject: () => void;
}

/** Slots that a client, or a group, uses. */
interface Usage {
  running: number;
  /** Logical time when a job of it last ended, on the clock of {@link WaitingJob.arrival}. */
  lastServed: number;
}

interface Client extends Usage {
  readonly key: string | undefined;
  /** Waiting jobs, in the order of arrival. */
  readonly waiting: WaitingJob[];
}

/**
 * Creates a queue.
 *
 * @param limits.concurrency maximum number of running jobs
 * @param limits.queueLimit maximum number of waiting jobs, of all clients together
 */
export function createQueue(limits: {
  readonly concurrency: number;
  readonly queueLimit: number;
}): ConversionQueue {
  const limit = pLimit(limits.concurrency);
  /** Clients with waiting or running jobs. */
  const clients = new Map<string | undefined, Client>();
  const groups = new WeakMap<object, Usage>();
  let clock = 0;
  let waiting = 0;
  let running = 0;

  /** Returns the client with this key, and adds it if it has no jobs yet. */
  function getClient(key: string | undefined): Client {
    const client = clients.get(key) ?? { key, waiting: [], running: 0, lastServed: 0 };
    clients.set(key, client);
    return client;
  }

  function forgetIfIdle(client: Client): void {
    if (client.waiting.length === 0 && client.running === 0) clients.delete(client.key);
  }

  function groupOf({ group }: WaitingJob): Usage {
    const usage = groups.get(group) ?? { running: 0, lastServed: 0 };
    groups.set(group, usage);
    return usage;
  }

  function leaveQueue(client: Client, job: WaitingJob): void {
    client.waiting.splice(client.waiting.indexOf(job), 1);
    waiting -= 1;
    forgetIfIdle(client);
  }

  /**
   * Drops the newest job of the client with the most waiting jobs, unless `newcomer` has as many. Returns whether it
   * did.
   */
  function freePlace(newcomer: Client): boolean {
    const longest = [...clients.values()].reduce((most, client) =>
      client.waiting.length > most.waiting.length ? client : most,
    );
    if (newcomer.waiting.length >= longest.waiting.length) return false;
    const dropped = longest.waiting.at(-1) as WaitingJob;
    leaveQueue(longest, dropped);
    dropped.reject();
    return true;
  }

  /** Runs the next job in a free slot. The queue can be empty, since jobs can leave it while they wait. */
  async function serveNext(): Promise<void> {
    const candidates = [...clients.values()].filter((each) => each.waiting.length > 0);
    const client = leastServed(candidates, (each) => each, firstArrival);
    if (!client) return;
    const job = leastServed(client.waiting, groupOf, ({ arrival }) => arrival) as WaitingJob;
    const usages = [client, groupOf(job)];
    running += 1;
    for (const usage of usages) usage.running += 1;
    leaveQueue(client, job);
    const settleCaller = await job.run();
    clock += 1;
    running -= 1;
    for (const usage of usages) {
      usage.running -= 1;
      usage.lastServed = clock;
    }
    forgetIfIdle(client);
    // Settle last, so that the slot is free for a caller that immediately adds another job.
    settleCaller();
  }

  return {
    run<T>(
      job: (waitedMs: number, idleSlots: number) => Promise<T>,
      { signal, client: key, group = {} }: JobOwner,
    ): Promise<T> {
      if (signal.aborted) return Promise.reject(new ClientDisconnectedError());
      const client = getClient(key);
      const isFull = running + waiting >= limits.concurrency + limits.queueLimit;
      if (isFull && !freePlace(client)) {
        forgetIfIdle(client);
        return Promise.reject(serviceError('QUEUE_FULL'));
      }

      const queuedAt = performance.now();
      const { promise, resolve, reject } = Promise.withResolvers<T>();
      clock += 1;
      const entry: WaitingJob = {
        group,
        arrival: clock,
        run() {
          signal.removeEventListener('abort', leave);
          // Waiting jobs fill idle slots at once.
          const idleSlots = Math.max(0, limits.concurrency - running - waiting);
          return job(performance.now() - queuedAt, idleSlots).then(
            (value) => () => resolve(value),
            (error) => () => reject(error),
          );
        },
        reject() {
          signal.removeEventListener('abort', leave);
          reject(serviceError('QUEUE_FULL'));
        },
      };
      // Free the place in the queue immediately, not when the job would start.
      const leave = (): void => {
        leaveQueue(client, entry);
        reject(new ClientDisconnectedError());
      };
      signal.addEventListener('abort', leave, { once: true });
      client.waiting.push(entry);
      waiting += 1;
      // A job that left the queue leaves its pending call of serveNext, which serves this job.
      if (limit.pendingCount < waiting) void limit(serveNext);
      return promise;
    },
    stats: () => ({ waiting, running }),
  };
}

function firstArrival({ waiting }: Client): number {
  return (waiting[0] as WaitingJob).arrival;
}

/**
 * Returns the candidate with the fewest running jobs. Among equals, returns the one that has waited longest since it
 * arrived or was last served.
 */
function leastServed<T>(
  candidates: readonly T[],
  usageOf: (candidate: T) => Usage,
  arrivalOf: (candidate: T) => number,
): T | undefined {
  const waitingSince = (each: T): number => Math.max(arrivalOf(each), usageOf(each).lastServed);
  return candidates.reduce<T | undefined>((best, each) => {
    if (best === undefined) return each;
    const order = usageOf(each).running - usageOf(best).running || waitingSince(each) - waitingSince(best);
    return order < 0 ? each : best;
  }, undefined);
}
