/**
 * @module Stress test: load and faults on a real server.
 * `npm run test:stress -- [--seconds 600] [--seed 1] [--only TEXT]`.
 *
 * One server handles good, bad and hostile clients, while other servers go through one fault after
 * another. Attacks of noisy clients follow, unless `--without-noisy-clients` is set, without other
 * load on the machine, because their figures depend on it. With `--only`, runs only the faults
 * whose name contains TEXT, without those clients. Prints a table, which marks times of other
 * clients beyond the goal as SLOW. Exits with 1 if a response was wrong, files or processes were
 * left behind, or memory grew.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { findToolchain } from '../src/process/toolchain.ts';
import type { Probe } from './processes/probe.ts';
import { memoryOf, memoryOfTree } from './processes/usage.ts';
import { median } from './statistics.ts';
import { add, emptyTally, runClients } from './stress/clients.ts';
import { endServer, type Fault, type FaultParts, type Outcome } from './stress/fault.ts';
import { FAULTS } from './stress/faults.ts';
import { NOISY_CLIENT_FAULTS } from './stress/noisy-client-faults.ts';
import { seeded } from './stress/random.ts';
import { badRequests, goodRequests, hostileRequests } from './stress/requests.ts';
import { type Server, startServer, tidyUp } from './stress/server.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '600' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string' },
    'without-noisy-clients': { type: 'boolean', default: false },
  },
});
const seconds = Number(values.seconds);
const seed = Number(values.seed);
const chosen = (faults: Readonly<Record<string, Fault>>) =>
  Object.entries(faults).filter(([name]) => name.includes(values.only ?? ''));
const faults = chosen(FAULTS);
const noisyClients = values['without-noisy-clients'] ? [] : chosen(NOISY_CLIENT_FAULTS);
if (faults.length + noisyClients.length === 0) throw new Error(`no fault has a name with "${values.only}"`);
const MIB = 1024 ** 2;
/**
 * Maximum growth in bytes of the median memory in use from the second to the last sixth of the run.
 */
const MAX_GROWTH = 10 * MIB;
/**
 * The same for the resident memory of the server process, which also has what malloc keeps (see
 * scripts/processes/probe.ts).
 */
const MAX_RESIDENT_GROWTH = 100 * MIB;
/** Interval between the collections of garbage that measure the growth, in ms. */
const COLLECT_MS = 2000;

const toolchain = await findToolchain({ path: process.env.PATH ?? '' });
const magick = toolchain.magick?.path ?? '';
console.log(`ImageMagick ${toolchain.magick?.version}, Node ${process.version}, seed ${seed}, ${seconds} s`);

const rows: ({ readonly name: string } & Outcome)[] = [];
const problems: string[] = [];
try {
  const server = await startServer();
  const good = await goodRequests(server.base);
  const others = [...badRequests(), ...hostileRequests(true)];
  const quickOthers = [...badRequests(), ...hostileRequests(false)];

  const samples: { own: number; tree: number }[] = [];
  const sample = () => {
    const [own, tree] = [memoryOf(server.pid).resident, memoryOfTree(server.pid).resident];
    samples.push({ own, tree });
  };
  const sampler = setInterval(sample, 500);
  const probes: Probe[] = [];
  const stop = new AbortController();
  const baseLoad = runClients(
    {
      base: server.base,
      random: seeded(seed),
      clients: values.only === undefined ? 4 : 0,
      good,
      others,
      excused: [503],
    },
    stop.signal,
  );

  const measured = measureUntil(stop.signal, server, probes);

  const started = performance.now();
  const share = Math.floor(seconds / (faults.length + noisyClients.length));
  const partsOf = (at: number): FaultParts => ({
    seconds: Math.max(2, share - 2),
    random: seeded(seed + at + 1),
    good,
    others: quickOthers,
    magick,
  });
  for (const [at, [name, runFault]] of faults.entries())
    rows.push({ name, ...(await runFault(partsOf(at))) });
  await pause(Math.max(0, faults.length * share * 1000 - (performance.now() - started)));
  stop.abort();
  const tally = await baseLoad;
  await measured;
  clearInterval(sampler);
  rows.unshift({ name: 'no fault', tally, left: await endServer(server, tally.wrong) });
  for (const [at, [name, runFault]] of noisyClients.entries())
    rows.push({ name, ...(await runFault(partsOf(faults.length + at))) });

  report(samples, probes);
} finally {
  tidyUp();
}
process.exitCode = problems.length > 0 ? 1 : 0;

/** Measures a server again and again. */
async function measureUntil(until: AbortSignal, server: Server, probes: Probe[]): Promise<void> {
  await server.measure(); // the start does not count
  do {
    probes.push(await server.measure());
    await pause(COLLECT_MS, undefined, { signal: until }).catch(() => {});
  } while (!until.aborted);
}

function report(samples: readonly { own: number; tree: number }[], probes: readonly Probe[]): void {
  const total = emptyTally();
  console.log('\nrequests    right   wrong    left  fault and responses');
  for (const { name, tally, left, notRun, figures } of rows) {
    if (notRun) {
      console.log(`${' '.repeat(32)}  ${name}: NOT RUN, ${notRun}`);
      continue;
    }
    add(total, tally);
    const answers = Object.entries(tally.answers).sort(([a], [b]) => a.localeCompare(b));
    const cells = [tally.requests, tally.right, tally.wrong.length, left.length].map((cell) =>
      String(cell).padStart(8),
    );
    console.log(
      `${cells.join('')}  ${name}: ${answers.map(([answer, count]) => `${answer} ${count}`).join(', ')}`,
    );
    if (figures) console.log(`${' '.repeat(34)}${figures}`);
    problems.push(
      ...tally.wrong.map((what) => `${name}: ${what}`),
      ...left.map((what) => `${name}: left ${what}`),
    );
  }
  const peak = (of: 'own' | 'tree') => Math.max(...samples.map((sample) => sample[of])) / MIB;
  const used = growthOf(probes.map(({ usedBytes }) => usedBytes));
  const resident = growthOf(samples.map(({ own }) => own));
  if (used > MAX_GROWTH || resident > MAX_RESIDENT_GROWTH) problems.push("the server's memory grew");
  console.log(
    `\n${total.requests} requests, ${total.right} valid images converted correctly, ${total.wrong.length} wrong or missing responses`,
  );
  console.log(
    `memory: server at most ${peak('own').toFixed(0)} MiB, with all its tools ${peak('tree').toFixed(0)} MiB; growth ${(resident / MIB).toFixed(1)} MiB, in use ${(used / MIB).toFixed(1)} MiB`,
  );
  const turnMs = Math.max(...probes.map(({ longestTurnMs }) => longestTurnMs));
  console.log(`event loop: longest turn ${turnMs.toFixed(1)} ms of CPU time`);
  for (const problem of problems.slice(0, 50)) console.log(`WRONG  ${problem}`);
}

/** Returns how much the median grew from the second to the last sixth of these values. */
function growthOf(values: readonly number[]): number {
  const sixth = Math.max(1, Math.floor(values.length / 6));
  return median(values.slice(-sixth)) - median(values.slice(sixth, 2 * sixth));
}
