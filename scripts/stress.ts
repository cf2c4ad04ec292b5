/**
 * @module Stress test: load and faults on a real server. `npm run test:stress -- [--seconds 600] [--seed 1] [--only TEXT]`.
 *
 * One server handles good, bad and hostile clients for the whole run, while other servers go through one fault after
 * another. With `--only`, runs only the faults whose name contains TEXT, without those clients. Prints a table. Exits with 1 if a response was wrong, files or processes were left behind, or memory grew.
 */
import { parseArgs } from 'node:util';
import { NO_POLICY_FOLDER } from '../src/process/policy.ts';
import { createRunner } from '../src/process/runner.ts';
import { findToolchain } from '../src/process/toolchain.ts';
import { add, emptyTally, runClients } from './stress/clients.ts';
import type { Outcome } from './stress/fault.ts';
import { FAULTS } from './stress/faults.ts';
import { seeded } from './stress/random.ts';
import { badRequests, goodRequests, hostileRequests } from './stress/requests.ts';
import { listLeftovers, memoryOf, startServer, tidyUp } from './stress/server.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '600' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string' },
  },
});
const seconds = Number(values.seconds);
const seed = Number(values.seed);
const faults = Object.entries(FAULTS).filter(([name]) => name.includes(values.only ?? ''));
if (faults.length === 0) throw new Error(`no fault has a name with "${values.only}"`);
const MIB = 1024 ** 2;
/**
 * Maximum growth in bytes of the median memory of the server process from the second to the last sixth of the run. The
 * margin allows for garbage that is not collected yet.
 */
const MAX_GROWTH = 40 * MIB;

const search = process.env.PATH ?? '';
const toolchain = await findToolchain(
  { path: search },
  createRunner({ searchPath: search, policyFolder: NO_POLICY_FOLDER }),
);
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
  const sampler = setInterval(() => samples.push(memoryOf(server.pid)), 500);
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

  const started = performance.now();
  const share = Math.floor(seconds / faults.length);
  for (const [at, [name, runFault]] of faults.entries()) {
    const parts = {
      seconds: Math.max(2, share - 2),
      random: seeded(seed + at + 1),
      good,
      others: quickOthers,
      magick,
    };
    rows.push({ name, ...(await runFault(parts)) });
  }
  const left = seconds * 1000 - (performance.now() - started);
  if (left > 0) await new Promise((resolve) => setTimeout(resolve, left));
  stop.abort();
  const tally = await baseLoad;
  clearInterval(sampler);
  const { code } = await server.end('SIGTERM');
  if (code !== 0) tally.wrong.push(`ended with status ${code}`);
  rows.unshift({ name: 'no fault, whole run', tally, left: listLeftovers(server) });

  report(samples, server.loopDelay());
} finally {
  tidyUp();
}
process.exitCode = problems.length > 0 ? 1 : 0;

function report(samples: readonly { own: number; tree: number }[], loopDelay: number | undefined): void {
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
  const sixth = Math.max(1, Math.floor(samples.length / 6));
  const growth = median(samples.slice(-sixth)) - median(samples.slice(sixth, 2 * sixth));
  if (growth > MAX_GROWTH) problems.push(`the server's memory grew by ${(growth / MIB).toFixed(0)} MiB`);
  console.log(
    `\n${total.requests} requests, ${total.right} valid images converted correctly, ${total.wrong.length} wrong or missing responses`,
  );
  console.log(
    `memory: server at most ${peak('own').toFixed(0)} MiB, with all its tools ${peak('tree').toFixed(0)} MiB; growth ${(growth / MIB).toFixed(1)} MiB`,
  );
  console.log(`event loop: 99% of delays below ${loopDelay?.toFixed(1) ?? 'unknown'} ms`);
  for (const problem of problems.slice(0, 50)) console.log(`WRONG  ${problem}`);
}

function median(samples: readonly { own: number }[]): number {
  const sorted = samples.map(({ own }) => own).sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
