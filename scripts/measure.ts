/**
 * @module Measurements that the documents state, apart from the comparison of `scripts/bench.ts`: `npm run build && node
 * scripts/measure.ts NAME [arguments]`. Without a name, lists them. Processor times include those of other programs.
 */
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempDisposableSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import sharp from 'sharp';
import { type Image, makeImages, photo } from './bench/images.ts';
import { type Job, measure, nameOf } from './bench/load.ts';
import { measureQuality } from './bench/quality.ts';
import { BUILT_PROGRAM, type ServerProcess, startServerProcess } from './processes/start.ts';
import { cpuMsOf, memoryOf, peakResidentBytes } from './processes/usage.ts';
import { formatSpread, markdownTable, spread } from './statistics.ts';

const MIB = 1024 ** 2;
const toMib = (bytes: number): string => `${(bytes / MIB).toFixed(0)} MiB`;

/** Arguments of Node.js that start `imagemill convert`. */
const CONVERT = ['--optimize-for-size', BUILT_PROGRAM, 'convert'];

/** A measurement. Its result is printed. */
interface Measurement {
  readonly usage: string;
  readonly does: string;
  readonly run: (...args: string[]) => Promise<string>;
}

/** Folder for all files of the measurement. */
using temporary = mkdtempDisposableSync(join(tmpdir(), 'imagemill-measure-'));
const folder = temporary.path;

const MEASUREMENTS: Readonly<Record<string, Measurement>> = {
  bodies: {
    usage: '[ROUNDS]',
    does: 'uploads as forms and images as bodies, in turns: conversions per second at 8 clients',
    run: measureBodies,
  },
  bulk: {
    usage: '[FILES] [options of imagemill convert]',
    does: 'the memory of `imagemill convert --update` with many small files, and the time of a second run',
    run: measureBulk,
  },
  memory: {
    usage: '[REQUESTS]',
    does: 'the memory of the server at each tenth of many conversions of a small photo with 8 clients',
    run: measureMemory,
  },
  quality: {
    usage: '[FOLDER]',
    does: 'the PSNR of thumbnails by the service and by sharp, compared with a Lanczos filter',
    run: measureQuality,
  },
  threads: {
    usage: '[ROUNDS]',
    does: 'large images one at a time, with one thread and a thread per processor, in turns: milliseconds',
    run: measureThreads,
  },
  verify: {
    usage: 'FOLDER [options of imagemill convert]',
    does: 'a folder without and with `--verify visual`, in turns: seconds',
    run: measureVerify,
  },
};

/** Arguments that are numbers. */
const NUMBERS = ['[ROUNDS]', '[REQUESTS]', '[FILES]'];

const [name = '', ...args] = process.argv.slice(2);
const chosen = MEASUREMENTS[name];
const words = chosen?.usage.split(' ') ?? [];
const wrong = args.find((value, at) => NUMBERS.includes(words[at] ?? '') && !/^[1-9]\d*$/.test(value));
if (wrong !== undefined) {
  console.error(`${name} ${chosen?.usage}: expected a whole number from 1, not "${wrong}"`);
  process.exitCode = 2;
} else if (chosen) console.log(await chosen.run(...args));
else {
  for (const [each, { usage, does }] of Object.entries(MEASUREMENTS))
    console.log(`node scripts/measure.ts ${each} ${usage}\n    ${does}`);
  process.exitCode = name ? 2 : 0;
}

/** Starts a service, which ends with the block of its variable. */
function startService(settings: Readonly<Record<string, string>> = {}): Promise<ServerProcess> {
  return startServerProcess({ TEMP_DIR: mkdtempSync(join(folder, 'service-')), ...settings });
}

/** Does each work once per round, and returns the results of each. */
async function inTurns(rounds: number, works: readonly (() => Promise<number>)[]): Promise<number[][]> {
  const results = works.map((): number[] => []);
  for (let round = 0; round < rounds; round += 1)
    for (const [at, work] of works.entries()) results[at]?.push(await work());
  return results;
}

/** Returns the cells of a row: the values of two works, and the ratios of those of a round. */
function compared([first = [], second = []]: readonly (readonly number[])[], digits: number): string[] {
  const ratios = first.map((value, round) => (second[round] as number) / value);
  return [
    ...[first, second].map((values) => formatSpread(spread(values), digits)),
    formatSpread(spread(ratios)),
  ];
}

async function benchImages(): Promise<(name: string) => Image> {
  const images = await makeImages();
  return (wanted) => images.find((image) => image.name === wanted) as Image;
}

async function measureBodies(rounds = '3'): Promise<string> {
  const imageOf = await benchImages();
  const jobs: readonly Job[] = [
    { image: imageOf('photo 320×240'), format: 'jpg' },
    { image: imageOf('photo 0.75 MP'), format: 'webp' },
    { image: imageOf('photo 3 MP'), format: 'jpg', side: 300 },
  ];
  await using server = await startService();
  const rows: string[][] = [];
  for (const job of jobs) {
    const works = [false, true].map((asBody) => async () => {
      const measured = await measure(server, { ...job, asBody }, 8, { seconds: 1 });
      return measured?.perSecond ?? Number.NaN;
    });
    rows.push([nameOf(job), ...compared(await inTurns(Number(rounds), works), 1)]);
  }
  return markdownTable(['Conversion', 'Form', 'Body', 'Body, relative to form'], rows);
}

async function measureBulk(files = '100000', ...options: string[]): Promise<string> {
  const [source, results, count] = [join(folder, 'source'), join(folder, 'results'), Number(files)];
  const background = { r: 200, g: 80, b: 20 };
  const create = { width: 16, height: 16, channels: 3, background } as const;
  const image = await sharp({ create }).png().toBuffer();
  for (let at = 0; at < count; at += 1) {
    const parent = join(source, `folder-${Math.floor(at / 1000)}`);
    mkdirSync(parent, { recursive: true });
    writeFileSync(join(parent, `image-${at}.png`), image);
  }
  const lines: string[] = [];
  for (const run of ['first run', 'second run']) {
    let [peak, tail] = [0, ''];
    const started = performance.now();
    const command = [...CONVERT, source, '-o', results, '--update', '--json', ...options];
    const child = spawn(process.execPath, command, { stdio: ['ignore', 'pipe', 'inherit'] });
    // The kernel keeps the peak, so a late sample loses nothing.
    const timer = setInterval(() => {
      peak = Math.max(peak, peakResidentBytes(child.pid ?? 0));
    }, 200);
    for await (const chunk of child.stdout) tail = `${tail}${chunk}`.slice(-1000);
    clearInterval(timer);
    const seconds = (performance.now() - started) / 1000;
    const found = readdirSync(results, { recursive: true }).filter((each) => String(each).endsWith('.webp'));
    if (found.length !== count) throw new Error(`${found.length} of ${count} results exist`);
    lines.push(
      `${run}: ${seconds.toFixed(1)} s, peak resident memory ${toMib(peak)}, ${tail.trim().split('\n').at(-1)}`,
    );
  }
  return lines.join('\n');
}

async function measureMemory(requests = '10000'): Promise<string> {
  const image = (await benchImages())('photo 320×240');
  await using server = await startService();
  const samples: string[] = [];
  let done = 0;
  const before = cpuMsOf(server.pid);
  while (done < Number(requests)) {
    const measured = await measure(server, { image, format: 'jpg' }, 8, { count: Number(requests) / 10 });
    done += measured?.count ?? Number.NaN;
    const memory = memoryOf(server.pid);
    samples.push(`${toMib(memory.resident)} (${toMib(memory.private)})`);
  }
  const cpuMs = (cpuMsOf(server.pid) - before) / done;
  return `The Node.js process: ${cpuMs.toFixed(2)} ms of CPU time per conversion. Resident memory, and its private part in parentheses, at each tenth of ${done} conversions: ${samples.join(', ')}.`;
}

async function measureThreads(rounds = '3'): Promise<string> {
  const imageOf = await benchImages();
  const bytes = await (await photo(4000, 3000)).png().toBuffer();
  const png: Image = { name: 'png 12 MP', type: 'png', bytes, pixels: 4000 * 3000 };
  const jobs: readonly Job[] = [
    { image: imageOf('photo 3 MP'), format: 'webp' },
    ...['webp', 'jpg'].map((format) => ({ image: png, format, side: 2000 })),
    ...['webp', 'png'].map((format) => ({ image: imageOf('svg'), format, side: 4000 })),
  ];
  // CONCURRENCY limits the threads of a conversion. The PNG has more than MAX_FILE_BYTES by default.
  const start = (threads: number) =>
    startService({ CONCURRENCY: String(threads), MAX_FILE_BYTES: '100000000' });
  await using one = await start(1);
  await using all = await start(availableParallelism());
  const rows: string[][] = [];
  for (const job of jobs) {
    const works = [one, all].map((server) => async () => {
      const measured = await measure(server, job, 1, { count: 1 });
      return measured?.medianMs ?? Number.NaN;
    });
    rows.push([nameOf(job), ...compared(await inTurns(Number(rounds), works), 0)]);
  }
  return markdownTable(['Conversion', '1 thread', `${availableParallelism()} threads`, 'Ratio'], rows);
}

async function measureVerify(from?: string, ...options: string[]): Promise<string> {
  if (!from) throw new Error('the folder is missing');
  const command = [...CONVERT, from, '-o', join(folder, 'out/'), '--force', ...options];
  const works = [[], ['--verify', 'visual']].map((more) => async () => {
    const started = performance.now();
    execFileSync(process.execPath, [...command, ...more], { stdio: ['ignore', 'ignore', 'inherit'] });
    return (performance.now() - started) / 1000;
  });
  const row = [from, ...compared(await inTurns(5, works), 1)];
  return markdownTable(['Folder', 'Without', 'With --verify visual', 'Ratio'], [row]);
}
