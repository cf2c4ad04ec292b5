/**
 * @module Measures docker/swarm.yaml with one, two and three instances, each with the same share of
 * a processor, and prints tables for docs/sizing.md. The shares are so small that the processors of
 * this machine limit neither the instances nor the clients.
 */
import { readFileSync } from 'node:fs';
import { type CpuInfo, cpus } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { fixture } from '../helpers/client.ts';
import { processesWhere } from '../helpers/util.ts';
import { type Conversion, convertPlain, makeConversions } from './load.ts';
import { PROXY, startStack } from './stack.ts';

/** Processors of an instance. */
const SHARE = '0.2';
/** Clients with addresses of their own. nginx accepts six concurrent uploads of each. */
const CLIENTS = 50;
const WARM_UP_S = 5;
const SECONDS = 25;
const ROUNDS = 3;
const LOADS = [0.5, 0.8, 1.2];
/**
 * Sizes of the uploads that measure what nginx needs, in bytes: a small image, a photo of 3
 * megapixels, and one of 10 MB.
 */
const UPLOAD_BYTES = [10_000, 660_000, 10_000_000];
/** Unit of the times in /proc/PID/stat, in milliseconds. */
const TICK_MS = 10;

const stack = await startStack(CLIENTS, 0, { REPLICAS: '1', CPUS: SHARE });
const conversions = await makeConversions();
const [proxy = ''] = await stack.containersOn(stack.manager, PROXY);

/** What became of the requests of a period. */
interface Outcome {
  /** End of the period, as a time of `performance.now()`. */
  readonly end: number;
  /** Times of the responses 200, in milliseconds. */
  readonly times: number[];
  readonly failures: string[];
  /** Number of responses 200 within the period. */
  inTime: number;
}

const newOutcome = (seconds: number): Outcome => ({
  end: performance.now() + seconds * 1000,
  times: [],
  failures: [],
  inTime: 0,
});

let sent = 0;
async function send(outcome: Outcome, among: readonly Conversion[] = conversions): Promise<void> {
  const url = stack.urls[sent % CLIENTS] as string;
  const conversion = among[sent % among.length] as Conversion;
  sent += 1;
  const started = performance.now();
  try {
    await convertPlain(url, 'clients', conversion);
    const now = performance.now();
    outcome.times.push(now - started);
    if (now <= outcome.end) outcome.inTime += 1;
  } catch (error) {
    outcome.failures.push((error as Error).message);
  }
}

/** Keeps a number of requests running for a time, and returns what became of them. */
async function saturate(running: number, seconds: number, among?: readonly Conversion[]): Promise<Outcome> {
  const outcome = newOutcome(seconds);
  const client = async (): Promise<void> => {
    while (performance.now() < outcome.end) await send(outcome, among);
  };
  await Promise.all(Array.from({ length: running }, client));
  return outcome;
}

/** Sends requests at random times with a mean rate, which do not depend on the responses. */
async function offer(perSecond: number): Promise<Outcome> {
  const outcome = newOutcome(SECONDS);
  const requests: Promise<void>[] = [];
  for (let at = performance.now(); ; ) {
    at -= (Math.log(1 - Math.random()) / perSecond) * 1000;
    if (at >= outcome.end) break;
    await sleep(Math.max(0, at - performance.now()));
    requests.push(send(outcome));
  }
  await Promise.all(requests);
  return outcome;
}

/** Returns the processor time of nginx in milliseconds. */
function proxyMs(): number {
  const pids = processesWhere('cgroup', (text) => text.includes(proxy));
  const ticks = pids.map((pid) => {
    // The fields after the name, which is in parentheses. The 14th and 15th of all are the times in
    // user and kernel mode.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /, '')
      .split(' ');
    return Number(fields[11]) + Number(fields[12]);
  });
  return ticks.reduce((sum, value) => sum + value, 0) * TICK_MS;
}

let earlier = cpus();
/**
 * Returns the share of time for which the processors of this machine were busy since the last call.
 */
function busy(): string {
  const now = cpus();
  const sum = (of: (times: CpuInfo['times']) => number): number =>
    now.reduce((total, { times }, at) => total + of(times) - of((earlier[at] as CpuInfo).times), 0);
  const idle = sum((times) => times.idle) / sum((times) => Object.values(times).reduce((a, b) => a + b, 0));
  earlier = now;
  return `${Math.round(100 * (1 - idle))}%`;
}

const percentile = (times: readonly number[], share: number): string => {
  const sorted = [...times].sort((a, b) => a - b);
  return ((sorted[Math.floor(share * sorted.length)] ?? 0) / 1000).toFixed(2);
};

console.log(
  '| Instances | Load | Responses per second | Median, s | 95th percentile, s | Rejected | This machine is busy |',
);
console.log('|--:|--:|--:|--:|--:|--:|--:|');
/**
 * Responses per second of each number of instances, in each round: the speed of a virtual machine
 * changes in the course of time.
 */
const maxima = new Map<number, number[]>([1, 2, 3].map((instances) => [instances, []]));
for (let round = 1; round <= ROUNDS; round += 1)
  for (const [instances, found] of maxima) {
    await startInstances(instances);
    const outcome = await saturate(12 * instances, SECONDS);
    found.push(outcome.inTime / SECONDS);
    print(instances, 'maximum', outcome);
  }
for (const [instances, found] of maxima) {
  await startInstances(instances);
  const capacity = found.sort((a, b) => a - b)[Math.floor(ROUNDS / 2)] as number;
  for (const load of LOADS) print(instances, `${load * 100}%`, await offer(load * capacity));
}

async function startInstances(count: number): Promise<void> {
  await stack.scale(String(count));
  await saturate(4 * count, WARM_UP_S);
  busy();
}

function print(instances: number, load: string, { times, failures, inTime }: Outcome): void {
  const rejected = ((100 * failures.length) / (times.length + failures.length)).toFixed(1);
  const kinds = [...new Set(failures)].join(', ');
  const cells = [
    instances,
    load,
    (inTime / SECONDS).toFixed(2),
    percentile(times, 0.5),
    percentile(times, 0.95),
  ];
  console.log(`| ${cells.join(' | ')} | ${rejected}%${kinds && ` (${kinds})`} | ${busy()} |`);
}

const photo = await fixture('scene.jpg');
console.log('\n| Upload | Processor time of nginx for a request, ms |\n|---|--:|');
for (const bytes of UPLOAD_BYTES) {
  // Data after the end of a JPEG does not change the picture.
  const image = Buffer.concat([photo, Buffer.alloc(bytes - photo.length)]);
  const before = proxyMs();
  const { times } = await saturate(6, SECONDS, [{ image, options: { format: 'jpg', width: 100 } }]);
  console.log(`| ${(bytes / 1e6).toFixed(2)} MB | ${((proxyMs() - before) / times.length).toFixed(2)} |`);
}
process.exit();
