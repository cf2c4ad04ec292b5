import pLimit from 'p-limit';
import { ClientDisconnectedError, serviceError } from '../errors.ts';

/** Runs jobs, a limited number at once, and shares places and queue fairly between clients. */

export interface ConversionQueue {
  /**
   * Runs `job` when a place is free.
   *
   * A free place goes to the client that runs the fewest jobs, and of those to the one that was not served for the
   * longest. Within one client it goes to a group by the same rule, and within a group to the job that came first.
   *
   * When the queue is full, a new job takes the place of the newest waiting job of the client that has the most
   * waiting, as long as its own client has fewer. So only a client that has filled its own share is refused.
   *
   * @param job receives how long it waited, in milliseconds
   * @throws ServiceError BUSY when there is no place in the queue, or when another client takes the place of the job
   * @throws ClientGone when the signal fires before the job starts; the job then never starts
   */
  run<T>(job: (waitedMs: number) => Promise<T>, owner: JobOwner): Promise<T>;
  /** How many jobs wait, and how many run. */
  stats(): { readonly waiting: number; readonly running: number };
}

/** Whose job it is. */
interface JobOwner {
  readonly signal: AbortSignal;
  /** The key of the client. All jobs without one belong to the same client. */
  readonly client?: string | undefined;
  /** The request that the job belongs to, when it may have several. */
  readonly group?: object | undefined;
}

interface WaitingJob {
  /** Increases with each job. */
  readonly arrival: number;
  readonly group: object;
  /** Runs the job to its end. Returns the function that settles the promise of the caller. */
  readonly run: () => Promise<() => void>;
  readonly refuse: () => void;
}

/** What a client, or a group, has of the places. `lastServed` compares with {@link WaitingJob.arrival}. */
interface Usage {
  running: number;
  lastServed: number;
}

interface Client extends Usage {
  readonly key: string | undefined;
  /** In the order they came. */
  readonly waiting: WaitingJob[];
}

/** @param limits.queueLimit how many jobs of all clients together may wait */
export function createQueue(limits: {
  readonly concurrency: number;
  readonly queueLimit: number;
}): ConversionQueue {
  const limit = pLimit(limits.concurrency);
  /** Those that have jobs. */
  const clients = new Map<string | undefined, Client>();
  const groups = new WeakMap<object, Usage>();
  let clock = 0;
  let waiting = 0;
  let running = 0;

  /** The client with this key, which is remembered while it has jobs. */
  function clientOf(key: string | undefined): Client {
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

  /** Makes room in a full queue at the cost of the client that has the most in it, when `newcomer` has less. */
  function makeRoom(newcomer: Client): boolean {
    const longest = [...clients.values()].reduce((most, client) =>
      client.waiting.length > most.waiting.length ? client : most,
    );
    if (newcomer.waiting.length >= longest.waiting.length) return false;
    const dropped = longest.waiting.at(-1) as WaitingJob;
    leaveQueue(longest, dropped);
    dropped.refuse();
    return true;
  }

  /** Runs the next job in a place that has become free. There is none when a job has left the queue meanwhile. */
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
    // Last, so that a caller who brings another job at once finds the place free.
    settleCaller();
  }

  return {
    run<T>(job: (waitedMs: number) => Promise<T>, { signal, client: key, group = {} }: JobOwner): Promise<T> {
      if (signal.aborted) return Promise.reject(new ClientDisconnectedError());
      const client = clientOf(key);
      const isFull = running + waiting >= limits.concurrency + limits.queueLimit;
      if (isFull && !makeRoom(client)) {
        forgetIfIdle(client);
        return Promise.reject(serviceError('BUSY'));
      }

      const queuedAt = performance.now();
      const { promise, resolve, reject } = Promise.withResolvers<T>();
      clock += 1;
      const entry: WaitingJob = {
        group,
        arrival: clock,
        run() {
          signal.removeEventListener('abort', leave);
          return job(performance.now() - queuedAt).then(
            (value) => () => resolve(value),
            (error) => () => reject(error),
          );
        },
        refuse() {
          signal.removeEventListener('abort', leave);
          reject(serviceError('BUSY'));
        },
      };
      // The job gives up its place in the queue at once, not when its turn comes.
      const leave = (): void => {
        leaveQueue(client, entry);
        reject(new ClientDisconnectedError());
      };
      signal.addEventListener('abort', leave, { once: true });
      client.waiting.push(entry);
      waiting += 1;
      // A job that left the queue has left its turn to this one.
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
 * The candidate that runs the fewest jobs; of those, the one that has waited the longest since it came or since it was
 * served.
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
