/**
 * @module Runs the attacks of `noisy-clients.ts`, and checks what another client notices of each.
 */
import { once } from 'node:events';
import { request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { ONE_PIXEL } from '../../src/process/policy.ts';
import { formWith, readBody, sendFrom } from '../../test/helpers/from-address.ts';
import { memoryOf, slowness } from '../processes/usage.ts';
import { median, percentile } from '../statistics.ts';
import { count, emptyTally } from './clients.ts';
import { type Fault, type FaultParts, finish, type Outcome, turnProblems } from './fault.ts';
import { NOISY_CLIENTS, type NoisyClient, SLOW_CLIENTS } from './noisy-clients.ts';
import { scratch, startServer } from './server.ts';

/**
 * Goal for the time of another client's request at the 99th percentile on two idle processors, in
 * ms. A slower one is marked SLOW.
 */
const GOAL_MS = { livez: 50, conversion: 250 };
/** The same on a busy machine, relative to the time before the attack. */
const MAX_SLOWDOWN = 4;
/**
 * Time in ms that a conversion may take in addition at the median, besides {@link MAX_SLOWDOWN},
 * while requests must not block others.
 */
const MAX_ADDED_MS = 500;
/**
 * Requests of each kind before the attack: some until the tools are in the cache, then those to
 * time.
 */
const [WARM_UPS, TIMED] = [5, 30];
/**
 * Maximum growth of the server's resident memory that is left {@link FREE_MS} after the attack, in
 * bytes.
 */
const MAX_KEPT_BYTES = 60e6;
const FREE_MS = 60_000;
/** Minimum time of an attack, in seconds. */
const MIN_SECONDS = 5;
/**
 * Conversions of other clients during an attack of {@link NOISY_CLIENTS}, so that their 99th
 * percentile is not simply the longest one, and maximum time for them in seconds.
 */
const [MIN_CONVERSIONS, MAX_SECONDS] = [400, 60];
/** Time between the end of a request of another client and the next one, in ms. */
const PAUSE_MS = { livez: 10, conversion: 20 };
/** Requests before an address is no longer used, so that none reaches the rate limit. */
const REQUESTS_PER_ADDRESS = 30;

const KINDS = ['livez', 'conversion'] as const;
type Kind = (typeof KINDS)[number];

const faultsOf = (
  clients: Readonly<Record<string, NoisyClient>>,
  minConversions: number,
): Readonly<Record<string, Fault>> =>
  Object.fromEntries(
    Object.entries(clients).map(([name, client]) => [
      name,
      (parts) => runAttack(name, client, parts, client.isSaturating ? 0 : minConversions),
    ]),
  );

/** {@link SLOW_CLIENTS} as faults of the stress test. */
export const SLOW_CLIENT_FAULTS = faultsOf(SLOW_CLIENTS, 0);
/** {@link NOISY_CLIENTS} as faults of the stress test. */
export const NOISY_CLIENT_FAULTS = faultsOf(NOISY_CLIENTS, MIN_CONVERSIONS);

async function runAttack(
  name: string,
  client: NoisyClient,
  parts: FaultParts,
  minConversions: number,
): Promise<Outcome> {
  const server = await startServer(client.settings?.(parts.magick, scratch));
  const tally = emptyTally();
  let [requests, longestQueueMs] = [0, 0];
  const nextAddress = (): string => {
    const at = Math.floor(requests / REQUESTS_PER_ADDRESS);
    requests += 1;
    return `127.1.${Math.floor(at / 250)}.${1 + (at % 250)}`;
  };
  const others = {
    async livez() {
      const get = request(new URL('/livez', server.base), { localAddress: nextAddress(), agent: false });
      const [response] = await once(get.end(), 'response');
      await readBody(response);
      return response.statusCode;
    },
    async conversion() {
      const { status, response } = await sendFrom(
        nextAddress(),
        `${server.base}/convert`,
        formWith(client.otherImage ?? ONE_PIXEL),
      );
      await readBody(response);
      const [, queued] = /queue;dur=([\d.]+)/.exec(String(response.headers['server-timing'])) ?? [];
      longestQueueMs = Math.max(longestQueueMs, Number(queued ?? 0));
      return status;
    },
  };
  const timed = async (kind: Kind): Promise<number> => {
    const began = performance.now();
    const answer = await others[kind]().catch(String);
    tally.requests += 1;
    count(tally, answer);
    if (answer !== 200) tally.wrong.push(`${kind} of another client: ${answer}`);
    return performance.now() - began;
  };
  const timesBefore = { livez: [] as number[], conversion: [] as number[] };
  for (let round = 0; round < WARM_UPS + TIMED; round += 1)
    for (const kind of KINDS) {
      const ms = await timed(kind);
      if (round >= WARM_UPS) timesBefore[kind].push(ms);
    }
  await server.measure();
  const before = memoryOf(server.pid).resident;
  const grownBytes = (): number => memoryOf(server.pid).resident - before;

  const attack = new Worker(new URL('./noisy-clients.ts', import.meta.url), {
    workerData: { name, base: server.base },
  });
  await once(attack, 'message'); // it has loaded its code
  const hasEnded = createEnd(Math.max(MIN_SECONDS, parts.seconds), minConversions);
  const times: Readonly<Record<Kind, number[]>> = { livez: [], conversion: [] };
  let mostBytes = 0;
  const measureUntilEnd = async (kind: Kind): Promise<string> => {
    const during = times[kind];
    while (!hasEnded(times.conversion.length)) {
      during.push(await timed(kind));
      mostBytes = Math.max(mostBytes, grownBytes());
      await pause(PAUSE_MS[kind]);
    }
    const maxMedianMs = MAX_SLOWDOWN * median(timesBefore[kind]) + MAX_ADDED_MS * slowness();
    if (client.mustNotBlock && kind === 'conversion' && median(during) > maxMedianMs)
      tally.wrong.push(`another client waited for ${median(during).toFixed(0)} ms`);
    return describeTimes(kind, during, timesBefore[kind], client);
  };
  const measured = await Promise.all(KINDS.map(measureUntilEnd));
  attack.postMessage('stop');
  const [answers] = (await once(attack, 'message')) as [Readonly<Record<string, number>>];
  await attack.terminate();
  const { expected } = client;
  for (const answer of Object.keys(answers))
    if (expected && !expected.map(String).includes(answer)) tally.wrong.push(`the attacker got ${answer}`);

  const { maxQueueMs = Number.POSITIVE_INFINITY, mustNotBlock } = client;
  if (longestQueueMs > maxQueueMs)
    tally.wrong.push(`another client waited for ${longestQueueMs.toFixed(0)} ms in the queue`);
  const { longestTurnMs } = await server.measure();
  if (mustNotBlock) tally.wrong.push(...turnProblems(longestTurnMs));
  const ended = performance.now();
  while (grownBytes() > MAX_KEPT_BYTES && performance.now() - ended < FREE_MS) {
    await pause(500);
    await server.measure(); // collects garbage
  }
  const mb = (bytes: number): string => `${(bytes / 1e6).toFixed(0)} MB`;
  if (grownBytes() > MAX_KEPT_BYTES) tally.wrong.push(`${mb(grownBytes())} were not freed`);
  const got = Object.entries(answers).map(([answer, number]) => `${answer} ${number}`);
  const figures = `${measured.join('; ')}; in the queue at most ${longestQueueMs.toFixed(0)} ms; longest turn ${longestTurnMs.toFixed(1)} ms of CPU time; memory ${mb(mostBytes)} above before, ${mb(grownBytes())} afterwards; the attacker got ${got.join(', ')}`;
  return { ...(await finish(parts, server, tally)), figures };
}

/**
 * Returns a function that returns whether an attack has lasted long enough, with this number of
 * conversions of other clients.
 */
function createEnd(minSeconds: number, minConversions: number): (conversions: number) => boolean {
  const began = performance.now();
  return (conversions) => {
    const seconds = (performance.now() - began) / 1000;
    return seconds >= minSeconds && (conversions >= minConversions || seconds >= MAX_SECONDS);
  };
}

/** Describes the times of other clients' requests during an attack, in ms. */
function describeTimes(
  kind: Kind,
  during: readonly number[],
  before: readonly number[],
  { isSaturating = false }: NoisyClient,
): string {
  const [ms, msBefore] = [percentile(during, 0.99), percentile(before, 0.99)];
  // The goal is stated, and does not fail the run: other programs of the machine can delay
  // requests, too.
  const isSlow = !isSaturating && ms > Math.max(GOAL_MS[kind] * slowness(), MAX_SLOWDOWN * msBefore);
  return `${kind}: 50% of ${during.length} within ${median(during).toFixed(1)} ms, 99% within ${ms.toFixed(1)} ms${isSlow ? ' (SLOW)' : ''} (${msBefore.toFixed(1)} ms before), all within ${Math.max(...during).toFixed(1)} ms`;
}
