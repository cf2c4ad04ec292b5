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

/** Even, so that each version is as often the first: some machines slow down under load. */
const ROUNDS = 4;
/** Rounds after which a row that is too slow fails. */
const MAX_ROUNDS = 5 * ROUNDS;
/** Duration of a turn, in s. */
const TURN_SECONDS = 0.4;
const CLIENTS = 2;

type Version = 'before' | 'now';
type Servers = Readonly<Record<Version, ServerProcess>>;
type Measurements = Readonly<Record<Version, Measured[]>>;

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
      const measured: Measurements = { before: [], now: [] };
      let ratio = await compare(job, servers, measured);
      // A slow moment of the machine passes, and more rounds outweigh it.
      while (ratio >= limit && measured.now.length < MAX_ROUNDS)
        ratio = await compare(job, servers, measured);
      if (ratio >= limit) slower.push(`${nameOf(job)} (at most ${limit})`);
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
 * Measures a conversion by both versions in turns, adds that to earlier rounds, and prints it.
 * Returns the median of the ratios of all rounds.
 */
async function compare(job: Job, servers: Servers, measured: Measurements): Promise<number> {
  for (let round = 0; round < ROUNDS; round += 1)
    for (const version of round % 2 ? (['now', 'before'] as const) : (['before', 'now'] as const)) {
      const measurement = await measure(servers[version], job, CLIENTS, TURN_SECONDS);
      if (!measurement) throw new Error(`${version}: ${nameOf(job)} failed`);
      measured[version].push(measurement);
    }
  const total = ({ toolsMs, serverMs }: Measured): number => toolsMs + serverMs;
  // The turns of a round are neighbours, so that a change of the machine's speed counts for both.
  const ratio = median(measured.now.map((now, at) => total(now) / total(measured.before[at] as Measured)));
  const format = (of: (one: Measured) => number): string =>
    [measured.before, measured.now].map((all) => median(all.map(of)).toFixed(1).padStart(6)).join(' → ');
  const [tools, server] = [format(({ toolsMs }) => toolsMs), format(({ serverMs }) => serverMs)];
  console.log(`${nameOf(job).padEnd(30)} tools ${tools}  Node.js ${server}  ${ratio.toFixed(2)}`);
  return ratio;
}
