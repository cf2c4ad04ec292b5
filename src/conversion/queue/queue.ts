/** @module Queue of conversions: limits preparations and running ones, fairly between clients. */
import { ClientDisconnectedError, serviceError } from '../../tables/errors.ts';
import { createUsages, leastServed, type Moment, NEGLIGIBLE_MS, type Usages } from './usage.ts';

/**
 * Kinds of preparations, which have separate slots, so that a slow kind delays no other: SVGs take
 * turns in threads, and PDFs wait for a tool.
 */
export type PreparationKind = 'main' | 'svg' | 'pdf';

export interface QueueOptions {
  /** Maximum number of running jobs, without those in reserved slots. */
  readonly concurrency: number;
  /** Maximum number of waiting jobs, of all clients together. */
  readonly queueLimit: number;
  /** Number of additional slots for clients without a running job. Default: 0. */
  readonly reservedSlots?: number;
  /** Maximum number of jobs of a kind prepared at once, besides reserved slots. Default: any. */
  readonly maxPreparations?: Readonly<Partial<Record<PreparationKind, number>>>;
  /** Returns the current time in ms. Default: `performance.now`. */
  readonly now?: () => number;
}

/** Client and request that a job belongs to. */
export interface JobOwner {
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
  /** Key of the client. All jobs without a key belong to one client. */
  readonly client?: string | undefined;
  /** Request that the job belongs to, if the request can have several jobs. */
  readonly group?: object | undefined;
  /** Default: `main`. */
  readonly kind?: PreparationKind;
}

/** The right to run. Disposing it gives the slot to the next job. */
export interface Slot extends Disposable {
  /** Time that the job has waited for its slots, in ms. */
  readonly waitedMs: number;
  /** Number of slots that are idle, and that no other job waits for. */
  readonly idleSlots: number;
}

/** A place in the queue. Disposing it leaves the queue. */
export interface Place extends Disposable {
  /**
   * Waits for a slot for preparations, and runs `work` in it. The job keeps its place meanwhile.
   *
   * @throws {ServiceError} QUEUE_FULL if a job of another client has taken the place, after `work`
   *   has ended if it has started
   * @throws {ClientDisconnectedError} if the client has disconnected, likewise
   */
  prepare<T>(work: () => Promise<T>): Promise<T>;
  /**
   * Waits for a slot. The job leaves the queue when it gets one.
   *
   * @throws {ServiceError} QUEUE_FULL if a job of another client has taken the place
   * @throws {ClientDisconnectedError} if the client disconnects
   */
  start(): Promise<Slot>;
}

/** Slots of one kind: for preparations of one kind, or for running jobs. */
interface Stage {
  active: number;
  readonly slots: number;
  readonly reserved: number;
  readonly maxPerClient: number;
  readonly usageOf: Usages;
}

interface QueueClient {
  readonly key: string | undefined;
  /** Jobs with a place in the queue, in the order of arrival. */
  readonly jobs: QueuedJob[];
}

/** A job that waits or is prepared. */
interface QueuedJob {
  readonly arrival: Moment;
  readonly client: QueueClient;
  readonly group: object;
  /** The stage with whose slot the job leaves the queue. */
  readonly last: Stage;
  /** The slot that the job waits for. */
  wanted?: Wanted | undefined;
  waitedMs: number;
  /** Why the job has left the queue without its slot. */
  dropped?: Error;
  /** Ends the wait for the end of the connection. */
  readonly leave: () => void;
}

interface Wanted {
  readonly stage: Stage;
  /** Start of the wait, in ms. */
  readonly since: number;
  readonly resolve: (slot: Slot) => void;
  readonly reject: (error: Error) => void;
}

/** Interval for forgetting clients without jobs, in ms. */
const SWEEP_INTERVAL_MS = 15_000;

/**
 * Runs jobs, a limited number at once, and schedules them fairly between clients.
 *
 * A free slot goes to the client with the fewest running jobs. Among these clients, it goes to the
 * one that has waited longest since it arrived or was last served, minus the slot time that it used
 * recently. Within a client, the same rule selects a group. Within a group, jobs run in the order
 * of their arrival. A reserved slot goes only to clients without a running job.
 *
 * When the queue is full, a new job replaces the newest waiting job of the client with the most
 * waiting jobs, if the new job's client has fewer. So the queue rejects jobs only of clients that
 * have filled their own share.
 */
export class ConversionQueue {
  readonly #queueLimit: number;
  readonly #now: () => number;
  readonly #preparing: Readonly<Record<PreparationKind, Stage>>;
  readonly #running: Stage;
  readonly #stages: readonly Stage[];
  /** Clients with jobs, and those that used slots recently. */
  readonly #clients = new Map<string | undefined, QueueClient>();
  /** Number of jobs with a place. */
  #waiting = 0;
  #order = 0;
  #nextSweep = 0;

  constructor(options: QueueOptions) {
    const { reservedSlots: reserved = 0, maxPreparations = {} } = options;
    const createStage = (slots: number, maxPerClient: number): Stage => ({
      active: 0,
      slots,
      reserved,
      maxPerClient,
      usageOf: createUsages(),
    });
    const preparing = (slots = Number.POSITIVE_INFINITY) => createStage(slots, slots);
    this.#queueLimit = options.queueLimit;
    this.#now = options.now ?? (() => performance.now());
    this.#preparing = {
      main: preparing(maxPreparations.main),
      svg: preparing(maxPreparations.svg),
      pdf: preparing(maxPreparations.pdf),
    };
    this.#running = createStage(options.concurrency, Number.POSITIVE_INFINITY);
    this.#stages = [...Object.values(this.#preparing), this.#running];
  }

  /** Returns the numbers of waiting and running jobs. Jobs that are prepared count as waiting. */
  stats(): { readonly waiting: number; readonly running: number } {
    return { waiting: this.#waiting, running: this.#running.active };
  }

  /**
   * Takes a place for a job that is prepared before it runs.
   *
   * @throws {ServiceError} QUEUE_FULL
   * @throws {ClientDisconnectedError} if the signal has aborted
   */
  enter(owner: JobOwner): Place {
    return this.#enter(owner, this.#running);
  }

  /** Runs a job that is only a preparation. Throws as {@link enter} and {@link Place.prepare}. */
  async prepare<T>(work: () => Promise<T>, owner: JobOwner): Promise<T> {
    using place = this.#enter(owner, this.#preparing[owner.kind ?? 'main']);
    return await place.prepare(work);
  }

  #enter({ signal, client: key, group = {}, kind = 'main' }: JobOwner, last: Stage): Place {
    if (signal.aborted) throw new ClientDisconnectedError();
    const client = this.#clients.get(key) ?? { key, jobs: [] };
    this.#clients.set(key, client);
    if (this.#isFull(client, last) && !this.#freePlace(client)) throw serviceError('QUEUE_FULL');
    const disconnect = (): void => this.#drop(job, new ClientDisconnectedError());
    const leave = (): void => signal.removeEventListener('abort', disconnect);
    const job: QueuedJob = { arrival: this.#moment(), client, group, last, waitedMs: 0, leave };
    signal.addEventListener('abort', disconnect);
    client.jobs.push(job);
    this.#waiting += 1;
    return {
      prepare: async (work) => {
        using _slot = await this.#waitFor(job, this.#preparing[kind]);
        const prepared = await work().catch((error) => Promise.reject(job.dropped ?? error));
        if (job.dropped) throw job.dropped;
        return prepared;
      },
      start: () => this.#waitFor(job, this.#running),
      [Symbol.dispose]: () => this.#leave(job),
    };
  }

  /** Returns whether no place is free for a new job of this client that needs such a slot. */
  #isFull(client: QueueClient, { slots, reserved, active }: Stage): boolean {
    // Waiting jobs fill idle slots at once.
    return (
      this.#waiting >= this.#queueLimit + Math.max(0, slots + (this.#isIdle(client) ? reserved : 0) - active)
    );
  }

  /** Drops the newest job of the client with most; returns false if `newcomer` has as many. */
  #freePlace(newcomer: QueueClient): boolean {
    const longest = [...this.#clients.values()].reduce((most, client) =>
      client.jobs.length > most.jobs.length ? client : most,
    );
    if (newcomer.jobs.length >= longest.jobs.length) return false;
    this.#drop(longest.jobs.at(-1) as QueuedJob, serviceError('QUEUE_FULL'));
    return true;
  }

  /** Takes the place of a job, which then fails with `error`. */
  #drop(job: QueuedJob, error: Error): void {
    this.#leave(job);
    job.dropped = error;
    job.wanted?.reject(error);
    job.wanted = undefined;
  }

  /** Removes a job from the queue, unless it has left. */
  #leave(job: QueuedJob): void {
    const at = job.client.jobs.indexOf(job);
    if (at === -1) return;
    job.client.jobs.splice(at, 1);
    this.#waiting -= 1;
    job.leave();
  }

  #waitFor(job: QueuedJob, stage: Stage): Promise<Slot> {
    if (job.dropped) return Promise.reject(job.dropped);
    const { promise, ...settle } = Promise.withResolvers<Slot>();
    job.wanted = { stage, since: this.#now(), ...settle };
    queueMicrotask(() => this.#fillSlots());
    return promise;
  }

  #fillSlots(): void {
    for (const stage of this.#stages)
      for (let job = this.#selectNext(stage); job; job = this.#selectNext(stage)) this.#grant(job, stage);
  }

  /** Returns the job for the next free slot of a stage; undefined if there is no slot or no job. */
  #selectNext(stage: Stage): QueuedJob | undefined {
    const free = stage.slots - stage.active;
    if (free + stage.reserved <= 0) return undefined;
    const ms = this.#now();
    const wants = ({ wanted }: QueuedJob): boolean => wanted?.stage === stage;
    const candidates = [...this.#clients.values()].filter((client) => {
      if (client.jobs.length === 0) return false;
      const used = stage.usageOf(client, ms).running;
      return (free > 0 || used === 0) && used < stage.maxPerClient && client.jobs.some(wants);
    });
    const firstOf = ({ jobs }: QueueClient): Moment => (jobs.find(wants) as QueuedJob).arrival;
    const client = leastServed(candidates, stage.usageOf, firstOf, ms);
    const groupUsage = ({ group }: QueuedJob) => stage.usageOf(group, ms);
    return leastServed(client?.jobs.filter(wants) ?? [], groupUsage, ({ arrival }) => arrival, ms);
  }

  #grant(job: QueuedJob, stage: Stage): void {
    const { since, resolve } = job.wanted as Wanted;
    job.wanted = undefined;
    job.waitedMs += this.#now() - since;
    if (stage === job.last) this.#leave(job);
    stage.active += 1;
    for (const user of [job.client, job.group]) stage.usageOf(user, this.#now()).running += 1;
    const idleSlots = Math.max(0, this.#running.slots - this.#running.active - this.#waiting);
    resolve({ waitedMs: job.waitedMs, idleSlots, [Symbol.dispose]: () => this.#release(job, stage) });
  }

  #release({ client, group }: QueuedJob, stage: Stage): void {
    const lastServed = this.#moment();
    stage.active -= 1;
    for (const user of [client, group]) {
      const usage = stage.usageOf(user, this.#now());
      usage.running -= 1;
      usage.lastServed = lastServed;
    }
    this.#forgetIdleClients();
    queueMicrotask(() => this.#fillSlots());
  }

  /** Forgets clients without jobs whose slot time is negligible. */
  #forgetIdleClients(): void {
    if (this.#now() < this.#nextSweep) return;
    this.#nextSweep = this.#now() + SWEEP_INTERVAL_MS;
    for (const client of this.#clients.values()) {
      const isNegligible = this.#stages.every(
        (stage) => stage.usageOf(client, this.#now()).usedMs < NEGLIGIBLE_MS,
      );
      if (this.#isIdle(client) && isNegligible) this.#clients.delete(client.key);
    }
  }

  #isIdle(client: QueueClient): boolean {
    return (
      client.jobs.length === 0 &&
      this.#stages.every((stage) => stage.usageOf(client, this.#now()).running === 0)
    );
  }

  #moment(): Moment {
    this.#order += 1;
    return { ms: this.#now(), order: this.#order };
  }
}
