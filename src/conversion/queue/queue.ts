/**
 * @module Queue of conversions. It limits how many are prepared and how many run at once, and shares slots and places
 * fairly between clients.
 */
import pLimit, { type LimitFunction } from 'p-limit';
import { ClientDisconnectedError, serviceError } from '../../errors.ts';
import {
  addJob,
  createUsages,
  leastServed,
  type Moment,
  NEGLIGIBLE_MS,
  PREPARATION_KINDS,
  type PreparationKind,
  type QueueClient,
  type QueuedJob,
  type RunJob,
  type Usages,
} from './queued-job.ts';

export { createPartRunner, type PreparationKind, type RunJob, type RunPart } from './queued-job.ts';

/** Runs jobs, a limited number at once, and schedules them fairly between clients. */
export interface ConversionQueue {
  /**
   * Runs `job` when a slot is free.
   *
   * A free slot goes to the client with the fewest running jobs. Among these clients, it goes to the one that has waited
   * longest since it arrived or was last served, minus the slot time that it used recently. Within a client, the same
   * rule selects a group. Within a group, jobs run in the order of their arrival. A reserved slot goes only to clients
   * without a running job.
   *
   * When a client without a running job has waited for {@link MAX_WAIT_MS} while others have several, the one of these that used
   * most slot time gives a slot back: that of the job that has run longest. Each job is stopped once at most. It continues
   * when no other job of its client runs, so that a client with several running jobs always has one that can be stopped.
   *
   * When the queue is full, a new job replaces the newest waiting job of the client with the most waiting jobs, if the
   * new job's client has fewer. So the queue rejects jobs only of clients that have filled their own share.
   *
   * @throws {ServiceError} QUEUE_FULL when the queue is full, or when a job of another client replaces this one
   * @throws {ClientDisconnectedError} if the signal aborts before the job starts; the job then never starts
   */
  run<T>(job: RunJob<T>, owner: JobOwner): Promise<T>;
  /**
   * Prepares a job when a place for that is free, and runs it like {@link run}. It counts as waiting from its arrival
   * until it starts. If it leaves the queue during its preparation, the promise rejects after the preparation.
   */
  prepareAndRun<T>(prepare: () => Promise<RunJob<T>>, owner: PreparationOwner): Promise<T>;
  /** Runs a job that consists of a preparation, when a place for that is free. It counts as waiting until it starts. */
  prepare<T>(job: RunJob<T>, owner: PreparationOwner): Promise<T>;
  /** Returns the numbers of waiting and running jobs. Jobs that are prepared count as waiting. */
  stats(): { readonly waiting: number; readonly running: number };
}

export interface QueueOptions {
  /** Maximum number of running jobs, without those in reserved slots. */
  readonly concurrency: number;
  /** Maximum number of waiting jobs, of all clients together. */
  readonly queueLimit: number;
  /** Number of additional slots for clients without a running job. Default: 0. */
  readonly reservedSlots?: number;
  /** Maximum number of running jobs of a client. Default: no limit. */
  readonly maxPerClient?: number;
  /** Maximum number of jobs of each kind that are prepared at once, each in addition to reserved slots. Default: no limit. */
  readonly maxPreparations?: Readonly<Partial<Record<PreparationKind, number>>>;
  /** Returns the current time in ms. Default: `performance.now`. */
  readonly now?: () => number;
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

interface PreparationOwner extends JobOwner {
  /** Default: `main`. */
  readonly kind?: PreparationKind;
}

/** Slots of one kind: for preparations of one kind, or for running jobs. */
interface Stage {
  /** The kind of preparations; undefined for running jobs. */
  readonly kind?: PreparationKind;
  readonly slots: number;
  readonly reserved: number;
  readonly maxPerClient: number;
  /** Enforces `slots` and `reserved`. */
  readonly limit: LimitFunction;
  /** State of the jobs that wait for these slots, and their state afterwards. */
  readonly serves: QueuedJob['state'];
  readonly becomes: QueuedJob['state'];
  active: number;
  readonly usageOf: Usages;
}

/** Maximum wait of a client without a running job while another client has several, in ms. Stopping a job takes longer. */
const MAX_WAIT_MS = 1500;

/** Interval for forgetting clients without jobs, in ms. */
const SWEEP_INTERVAL_MS = 15_000;

export function createQueue({
  concurrency,
  queueLimit,
  reservedSlots = 0,
  maxPerClient = Number.POSITIVE_INFINITY,
  maxPreparations = {},
  now = () => performance.now(),
}: QueueOptions): ConversionQueue {
  const preparing = PREPARATION_KINDS.map((kind): Stage => {
    const slots = maxPreparations[kind] ?? Number.POSITIVE_INFINITY;
    return {
      ...{ kind, serves: 'unprepared', becomes: 'preparing', active: 0, usageOf: createUsages() },
      ...{ slots, reserved: reservedSlots, maxPerClient: slots, limit: pLimit(slots + reservedSlots) },
    };
  });
  const total = concurrency + reservedSlots;
  const running: Stage = {
    ...{ serves: 'ready', becomes: 'running', active: 0, usageOf: createUsages() },
    ...{ slots: concurrency, reserved: reservedSlots, maxPerClient, limit: pLimit(total) },
  };
  const stages = [...preparing, running];
  /** Clients with jobs, and those that used slots recently. */
  const clients = new Map<string | undefined, QueueClient>();
  /** Running jobs, the one that has run longest first. */
  const runningJobs = new Set<QueuedJob>();
  let stopTimer: NodeJS.Timeout | undefined;
  let order = 0;
  let waiting = 0;
  let nextSweep = 0;

  function nextMoment(): Moment {
    order += 1;
    return { ms: now(), order };
  }

  /** Returns the client with this key, and adds it if it is unknown. */
  function getClient(key: string | undefined): QueueClient {
    const client = clients.get(key) ?? { key, waiting: [] };
    clients.set(key, client);
    return client;
  }

  const isIdle = (client: QueueClient): boolean =>
    client.waiting.length === 0 && stages.every((stage) => stage.usageOf(client, now()).running === 0);

  /** Forgets clients without jobs whose slot time is negligible. */
  function forgetIdleClients(): void {
    if (now() < nextSweep) return;
    nextSweep = now() + SWEEP_INTERVAL_MS;
    for (const client of clients.values()) {
      const isNegligible = stages.every((stage) => stage.usageOf(client, now()).usedMs < NEGLIGIBLE_MS);
      if (isIdle(client) && isNegligible) clients.delete(client.key);
    }
  }

  function enterQueue(job: QueuedJob): void {
    job.client.waiting.push(job);
    job.client.waiting.sort((a, b) => a.arrival.order - b.arrival.order);
    waiting += 1;
    queueMicrotask(fillSlots);
  }

  function leaveQueue(job: QueuedJob): void {
    job.client.waiting.splice(job.client.waiting.indexOf(job), 1);
    waiting -= 1;
  }

  /** Returns whether no place is free for a new job of this client that needs a slot of this stage. */
  function isFull(client: QueueClient, { slots, reserved, active }: Stage): boolean {
    // Waiting jobs fill idle slots at once.
    return waiting >= queueLimit + Math.max(0, slots + (isIdle(client) ? reserved : 0) - active);
  }

  /**
   * Drops the newest job of the client with the most waiting jobs, unless `newcomer` has as many. Returns whether it
   * did.
   */
  function freePlace(newcomer: QueueClient): boolean {
    const longest = [...clients.values()].reduce((most, client) =>
      client.waiting.length > most.waiting.length ? client : most,
    );
    if (newcomer.waiting.length >= longest.waiting.length) return false;
    const dropped = longest.waiting.at(-1) as QueuedJob;
    leaveQueue(dropped);
    dropped.reject(serviceError('QUEUE_FULL'));
    return true;
  }

  /** Returns the job that gets the next free slot of a stage, or undefined if no slot is free or no job can have it. */
  function selectNext(stage: Stage): QueuedJob | undefined {
    const free = stage.slots - stage.active;
    if (free + stage.reserved <= 0) return undefined;
    const ms = now();
    const candidates = [...clients.values()].filter((client) => {
      if (client.waiting.length === 0) return false;
      const used = stage.usageOf(client, ms).running;
      return (free > 0 || used === 0) && used < stage.maxPerClient && client.waiting.some(canRun);
    });
    const client = leastServed(
      candidates,
      stage.usageOf,
      (each) => (each.waiting.find(canRun) as QueuedJob).arrival,
      ms,
    );
    const jobs = client?.waiting.filter(canRun) ?? [];
    return leastServed(
      jobs,
      ({ group }) => stage.usageOf(group, ms),
      ({ arrival }) => arrival,
      ms,
    );

    function canRun({ state, kind, stop, client: owner }: QueuedJob): boolean {
      if (state !== stage.serves || (stage.kind && stage.kind !== kind)) return false;
      return !stop.signal.aborted || stage.usageOf(owner, ms).running === 0;
    }
  }

  /** Stops a job for each client that has waited too long, and sets a timer for the next client. */
  function stopJobs(): void {
    clearTimeout(stopTimer);
    const ms = now();
    const waitsMs = [...clients.values()].flatMap((client) => {
      const next = client.waiting.find(({ state }) => state === 'ready');
      return next && running.usageOf(client, ms).running === 0 ? ms - next.waitsSince : [];
    });
    const late = waitsMs.filter((waitMs) => waitMs >= MAX_WAIT_MS).length;
    const stopping = [...runningJobs].filter(({ state }) => state !== 'running').length;
    for (let count = stopping; count < late; count += 1) stopLongestJob(ms);
    const longest = Math.max(...waitsMs.filter((waitMs) => waitMs < MAX_WAIT_MS));
    if (longest >= 0) stopTimer = setTimeout(stopJobs, Math.ceil(MAX_WAIT_MS - longest)).unref();
  }

  function stopLongestJob(ms: number): void {
    const jobs = [...runningJobs].filter(({ state }) => state === 'running');
    const usedMs = ([job]: readonly QueuedJob[]): number =>
      job ? running.usageOf(job.client, ms).usedMs : 0;
    const [most] = [...Map.groupBy(jobs, ({ client }) => client).values()]
      .filter(({ length }) => length > 1)
      .sort((a, b) => usedMs(b) - usedMs(a));
    const longest = most?.find(({ stop }) => !stop.signal.aborted);
    if (!longest) return;
    longest.state = 'stopping';
    longest.stop.abort();
  }

  function fillSlots(): void {
    for (const stage of stages) {
      for (let job = selectNext(stage); job; job = selectNext(stage)) {
        job.state = stage.becomes;
        if (stage === running) runningJobs.add(job);
        if (stage === running || job.isPreparation) leaveQueue(job);
        stage.active += 1;
        for (const user of [job.client, job.group]) stage.usageOf(user, now()).running += 1;
        void stage.limit(serve, stage, job);
      }
    }
    stopJobs();
  }

  async function serve(stage: Stage, job: QueuedJob): Promise<void> {
    const settleCaller = await job.serve();
    runningJobs.delete(job);
    const lastServed = nextMoment();
    stage.active -= 1;
    for (const user of [job.client, job.group]) {
      const usage = stage.usageOf(user, now());
      usage.running -= 1;
      usage.lastServed = lastServed;
    }
    forgetIdleClients();
    // Settle last, so that the slot is free for a caller that immediately adds another job.
    settleCaller();
    queueMicrotask(fillSlots);
  }

  function add<T>(
    prepared: RunJob<T> | undefined,
    prepare: () => Promise<RunJob<T>>,
    { signal, client: key, group = {}, kind = 'main' }: PreparationOwner,
    isPreparation = false,
  ): Promise<T> {
    if (signal.aborted) return Promise.reject(new ClientDisconnectedError());
    const client = getClient(key);
    const last = isPreparation ? preparing.find((stage) => stage.kind === kind) : undefined;
    if (isFull(client, last ?? running) && !freePlace(client))
      return Promise.reject(serviceError('QUEUE_FULL'));

    const job = { prepared, prepare, isPreparation, kind, signal, arrival: nextMoment(), client, group };
    const idleSlots = (): number => Math.max(0, concurrency - running.active - waiting);
    return addJob(job, { now, idleSlots, enter: enterQueue, leave: leaveQueue });
  }

  return {
    run: (job, owner) => add(job, async () => job, owner),
    prepareAndRun: (prepare, owner) => add(undefined, prepare, owner),
    prepare: (job, owner) => add(job, async () => job, owner, true),
    stats: () => ({ waiting, running: running.active }),
  };
}
