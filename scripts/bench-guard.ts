/**
 * @module Compares the processor time of conversions with that of the commit in `bench/reference`,
 * in turns: `npm run bench:guard -- [--only PART] [--before FOLDER]`. Fails if a row takes
 * {@link MAX_RATIO} times as long, unless `bench/reference` says why.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempDisposableSync, readFileSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { makeImages } from './bench/images.ts';
import { type Job, type Measured, measure, nameOf } from './bench/load.ts';
import { MAX_RATIO, parseReference } from './bench/reference.ts';
import { NODE_FLAGS, type ServerProcess, startServerProcess } from './processes/start.ts';
import { median } from './statistics.ts';

const { values: flags } = parseArgs({
  options: {
    /** Regular expression that selects rows by name, such as "jpeg .* → jpg 300". */
    only: { type: 'string', default: '' },
    /** A built checkout to compare with, instead of the commit of `bench/reference`. */
    before: { type: 'string' },
  },
});

/**
 * The results of each image: the format, and the maximum side unless the result has the size of the
 * image.
 */
const RESULTS: Readonly<Record<string, readonly (readonly [format: string, side?: number])[]>> = {
  'jpeg 2048×1536': [['jpg', 300], ['webp', 1200], ['jpg'], ['webp']],
  'jpeg 3021×2013': [['jpg', 300], ['webp', 1200], ['jpg']],
  'jpeg 2044×1364': [
    ['jpg', 300],
    ['jpg', 1200],
  ],
  'jpeg P3 2048×1536': [['jpg', 300], ['jpg', 1200], ['webp']],
  'png photo': [['webp', 300], ['png']],
  'png alpha': [['png', 300], ['webp', 1200], ['png']],
  'png palette': [['png', 300], ['png', 1200], ['png']],
  'png 16 bits': [['png', 300], ['png']],
  'png one bit': [['png', 300], ['png', 1200], ['png']],
  'tiff one bit': [['jpg', 300], ['pdf']],
  webp: [['jpg', 300], ['jpg']],
  avif: [['webp', 300]],
  'gif animation': [['webp', 240], ['webp'], ['gif']],
  'svg text': [['png', 300], ['webp', 1200], ['png']],
};

const ROUNDS = 3;
/** Duration of a turn, in s. */
const TURN_SECONDS = 0.4;
const CLIENTS = 2;

type Version = 'before' | 'now';
type Servers = Readonly<Record<Version, ServerProcess>>;

const checkout = new URL('..', import.meta.url).pathname;
await guard();

async function guard(): Promise<void> {
  using temporary = mkdtempDisposableSync(join(tmpdir(), 'imagemill-guard-'));
  const jobs = (await makeImages('guarded')).flatMap((image) =>
    (RESULTS[image.name] ?? []).map(([format, side]): Job => ({ image, format, side })),
  );
  const { commit, accepted } = parseReference(
    readFileSync(join(checkout, 'bench/reference'), 'utf8'),
    jobs.map(nameOf),
  );
  const worktree = join(temporary.path, 'checkout');
  try {
    const before = flags.before ?? buildReference(commit, worktree);
    await using former = await start(before, temporary.path);
    await using current = await start(checkout, temporary.path);
    const servers: Servers = { before: former, now: current };
    console.log(`Processor time in ms, ${flags.before ?? commit.slice(0, 8)} → now`);
    const slower: string[] = [];
    for (const job of jobs) {
      const limit = accepted.get(nameOf(job)) ?? MAX_RATIO;
      if (!nameOf(job).match(flags.only)) continue;
      // A slow moment of the machine does not last for two measurements.
      if ((await compare(job, servers)) >= limit && (await compare(job, servers)) >= limit)
        slower.push(`${nameOf(job)} (at most ${limit})`);
    }
    if (slower.length > 0) {
      console.error(`Slower than before, without a line in bench/reference: ${slower.join('; ')}`);
      process.exitCode = 1;
    }
  } finally {
    if (existsSync(worktree)) run('git', ['worktree', 'remove', '--force', worktree], checkout);
  }
}

/**
 * Builds a commit in a worktree.
 *
 * @throws {Error} if this clone does not have the commit
 */
function buildReference(commit: string, worktree: string): string {
  try {
    run('git', ['worktree', 'add', '--quiet', '--detach', worktree, commit], checkout);
  } catch (error) {
    throw new Error(
      `This clone does not have the commit ${commit} of bench/reference. If it is shallow: git fetch --unshallow`,
      { cause: error },
    );
  }
  const locks = [checkout, worktree].map((folder) => readFileSync(join(folder, 'package-lock.json'), 'utf8'));
  if (locks[0] === locks[1]) symlinkSync(join(checkout, 'node_modules'), join(worktree, 'node_modules'));
  else run('npm', ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error'], worktree);
  run('sh', ['scripts/bootstrap.sh', 'build'], worktree);
  return worktree;
}

function run(program: string, args: readonly string[], cwd: string): void {
  execFileSync(program, args, { cwd, stdio: ['ignore', 'ignore', 'inherit'] });
}

function start(folder: string, temporary: string): Promise<ServerProcess> {
  const command = [process.execPath, ...NODE_FLAGS, join(folder, 'dist/main.js')];
  return startServerProcess({ TEMP_DIR: temporary }, command);
}

/**
 * Measures a conversion by both versions in turns, and prints it. Returns the ratio of the medians.
 */
async function compare(job: Job, servers: Servers): Promise<number> {
  const measured: Record<Version, Measured[]> = { before: [], now: [] };
  for (let round = 0; round < ROUNDS; round += 1)
    for (const version of round % 2 ? (['now', 'before'] as const) : (['before', 'now'] as const)) {
      const measurement = await measure(servers[version], job, CLIENTS, TURN_SECONDS);
      if (!measurement) throw new Error(`${version}: ${nameOf(job)} failed`);
      measured[version].push(measurement);
    }
  const pair = (of: (one: Measured) => number): number[] =>
    [measured.before, measured.now].map((all) => median(all.map(of)));
  const [tools, server, all] = [
    pair(({ toolsMs }) => toolsMs),
    pair(({ serverMs }) => serverMs),
    pair(({ toolsMs, serverMs }) => toolsMs + serverMs),
  ];
  const [before = 0, now = 0] = all;
  const format = (values: readonly number[]): string =>
    values.map((ms) => ms.toFixed(1).padStart(6)).join(' → ');
  const ratio = now / before;
  console.log(
    `${nameOf(job).padEnd(30)} tools ${format(tools)}  Node.js ${format(server)}  ${ratio.toFixed(2)}`,
  );
  return ratio;
}
