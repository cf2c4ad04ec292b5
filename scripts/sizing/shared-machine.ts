/**
 * @module Simulates instances that share the processors of one machine. If more conversions run than there are
 * processors, all of them get slower. `simulate.ts` gives each instance processors of its own instead.
 */
import { type SimulationResult, summarizeWaits } from './simulate.ts';

/** Options of {@link simulateSharedMachine}. */
export interface SharedMachineOptions {
  readonly instances: number;
  /** Conversions at the same time in each instance (`CONCURRENCY`). */
  readonly concurrency: number;
  /** Processors of the machine. */
  readonly processors: number;
  /** Conversions that may wait in each instance (`QUEUE_LIMIT`). */
  readonly queueLimit: number;
  /** Number of instances that the proxy tries, in turn, until it passes on a 503. */
  readonly tries: number;
  /** Requests in order. The work is the time that one processor needs. */
  readonly arrivals: readonly Arrival[];
}

/** A request. */
interface Arrival {
  readonly atMs: number;
  readonly workMs: number;
}

interface Instance {
  readonly waiting: Arrival[];
  /** Work that the running conversions still need, in ms. */
  readonly running: number[];
}

/** Runs the simulation. */
export function simulateSharedMachine(options: SharedMachineOptions): SimulationResult {
  const { concurrency, processors, queueLimit, tries, arrivals } = options;
  const instances = Array.from({ length: options.instances }, (): Instance => ({ waiting: [], running: [] }));
  const waits: number[] = [];
  let [now, turn, refused, worked] = [0, 0, 0, 0];

  /** Lets all conversions run until a time, and starts waiting ones where a conversion has ended. */
  const advance = (until: number): void => {
    for (;;) {
      const all = instances.flatMap(({ running }) => running);
      const speed = Math.min(1, processors / all.length);
      const end = now + Math.min(...all) / speed;
      const next = Math.min(end, until);
      const done = (next - now) * speed;
      now = next;
      worked += done * all.length;
      for (const { running } of instances) for (const at of running.keys()) (running[at] as number) -= done;
      if (end > until) return;
      for (const instance of instances) startWaiting(instance);
    }
  };
  const startWaiting = ({ running, waiting }: Instance): void => {
    const left = running.filter((work) => work > 1e-6);
    running.splice(0, running.length, ...left);
    while (running.length < concurrency) {
      const next = waiting.shift();
      if (!next) return;
      waits.push(now - next.atMs);
      running.push(next.workMs);
    }
  };

  for (const arrival of arrivals) {
    advance(arrival.atMs);
    let isAccepted = false;
    for (let attempt = 0; attempt < Math.min(tries, instances.length) && !isAccepted; attempt += 1) {
      const instance = instances[turn % instances.length] as Instance;
      turn += 1;
      isAccepted = instance.running.length < concurrency || instance.waiting.length < queueLimit;
      if (!isAccepted) continue;
      instance.waiting.push(arrival);
      startWaiting(instance);
    }
    if (!isAccepted) refused += 1;
  }
  const utilization = worked / (now * processors);
  while (instances.some(({ running }) => running.length > 0)) advance(now + 1000);
  return { wait: summarizeWaits(waits), refused: refused / arrivals.length, utilization };
}
