/**
 * @module Simulates instances behind a proxy. Each has processors and a queue like that of `src/conversion/queue/queue.ts`. Arrivals
 * are a Poisson process, with bursts. The simulation is pure: the same options give the same result.
 */
import { type Random, seeded } from '../stress/random.ts';

/** Options of {@link simulate}. */
export interface SimulationOptions {
  readonly instances: number;
  /** Processors of each instance, which is also its number of concurrent conversions. */
  readonly processors: number;
  /** Conversions that may wait in each instance (`QUEUE_LIMIT`). */
  readonly queueLimit: number;
  /** Number of instances that the proxy tries until it passes on a 503. */
  readonly tries: number;
  /** How the proxy selects an instance. */
  readonly balance: 'random' | 'least-connections';
  /** Mean arrivals per second. */
  readonly perSecond: number;
  /** Bursts: after every `everyS` seconds, the rate is `factor` times as high for `lengthS` seconds. */
  readonly bursts?:
    | { readonly factor: number; readonly everyS: number; readonly lengthS: number }
    | undefined;
  /** Service times to draw from, in ms. */
  readonly serviceMs: readonly number[];
  /** Number of requests. */
  readonly requests: number;
  readonly seed: number;
}

/** What the clients experience. */
export interface SimulationResult {
  /** Percentiles of the waiting time in queues, in ms. */
  readonly wait: { readonly mean: number; readonly p50: number; readonly p95: number; readonly p99: number };
  /** Share of the requests that got 503, from 0 to 1. */
  readonly refused: number;
  /** Share of the time in which processors worked, from 0 to 1. */
  readonly utilization: number;
}

/** An instance, which serves its requests in order of arrival. */
interface Instance {
  /** Times in ms at which the processors are free, the earliest first. */
  readonly free: number[];
  /** Start times in ms of the requests that wait, in order. */
  starts: number[];
}

/** Runs the simulation. */
export function simulate(options: SimulationOptions): SimulationResult {
  const { processors, queueLimit, tries, serviceMs, requests } = options;
  const random = seeded(options.seed);
  const createInstance = (): Instance => ({ free: Array(processors).fill(0), starts: [] });
  const instances = Array.from({ length: options.instances }, createInstance);
  const times = arrivals(options, random);
  const waits: number[] = [];
  let [refused, worked, now] = [0, 0, 0];

  for (let request = 0; request < requests; request += 1) {
    now = times.next().value;
    let accepted: Instance | undefined;
    for (let attempt = 0; attempt < Math.min(tries, instances.length) && !accepted; attempt += 1) {
      const instance = select(instances, options.balance, now, random);
      if (waitingIn(instance, now) < queueLimit || (instance.free[0] as number) <= now) accepted = instance;
    }
    if (!accepted) {
      refused += 1;
      continue;
    }
    const start = Math.max(now, accepted.free.shift() as number);
    const service = random.pick(serviceMs);
    insert(accepted.free, start + service);
    if (start > now) accepted.starts.push(start);
    waits.push(start - now);
    worked += service;
  }
  const last = Math.max(now, ...instances.map(({ free }) => Math.max(...free)));
  const sorted = waits.toSorted((a, b) => a - b);
  const mean = sorted.reduce((sum, wait) => sum + wait, 0) / Math.max(1, sorted.length);
  const [p50 = 0, p95 = 0, p99 = 0] = [0.5, 0.95, 0.99].map(
    (share) => sorted[Math.floor(sorted.length * share)],
  );
  return {
    wait: { mean, p50, p95, p99 },
    refused: refused / requests,
    utilization: worked / (last * instances.length * processors),
  };
}

/** Generates the times of arrivals, in ms. */
function* arrivals({ perSecond, bursts }: SimulationOptions, random: Random): Generator<number, never> {
  const { factor, everyS, lengthS } = bursts ?? { factor: 1, everyS: Infinity, lengthS: 0 };
  // The mean over bursts and the time between them is `perSecond`.
  const base = bursts ? (perSecond * (everyS + lengthS)) / (everyS + factor * lengthS) : perSecond;
  let [now, isBurst, phaseEnd] = [0, false, everyS * 1000];
  for (;;) {
    const next = now - (Math.log(1 - random.next()) * 1000) / (isBurst ? base * factor : base);
    if (next <= phaseEnd) {
      now = next;
      yield now;
    } else {
      now = phaseEnd; // the exponential distribution has no memory, so the draw may be repeated from here
      isBurst = !isBurst;
      phaseEnd = now + (isBurst ? lengthS : everyS) * 1000;
    }
  }
}

function select(
  instances: readonly Instance[],
  balance: SimulationOptions['balance'],
  now: number,
  random: Random,
): Instance {
  if (balance === 'random') return random.pick(instances);
  return instances.reduce((best, each) => (inProgress(each, now) < inProgress(best, now) ? each : best));
}

function waitingIn(instance: Instance, now: number): number {
  const first = instance.starts.findIndex((start) => start > now);
  if (first !== 0) instance.starts = first < 0 ? [] : instance.starts.slice(first);
  return instance.starts.length;
}

function inProgress(instance: Instance, now: number): number {
  return waitingIn(instance, now) + instance.free.filter((time) => time > now).length;
}

/** Inserts a value into a sorted list. */
function insert(sorted: number[], value: number): void {
  let at = sorted.length;
  while (at > 0 && (sorted[at - 1] as number) > value) at -= 1;
  sorted.splice(at, 0, value);
}
