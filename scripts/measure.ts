/**
 * @module Measurements that the documents state, apart from the comparison of `scripts/bench.ts`: `npm run build && node
 * scripts/measure.ts NAME [arguments]`. Without a name, lists them. Processor times include those of other programs.
 */
import { execFileSync, spawn } from 'node:child_process';
import {
  mkdirSync,
  mkdtempDisposableSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import sharp from 'sharp';
import { formWith } from '../test/helpers/from-address.ts';
import { type Image, makeImages, photo } from './bench/images.ts';
import { type Job, measure, nameOf } from './bench/load.ts';
import { measureQuality } from './bench/quality.ts';
import { BUILT_PROGRAM, type ServerProcess, startServerProcess } from './processes/start.ts';
import { cpuMsOf, listTree, memoryOf, othersCpuMs, peakResidentBytes } from './processes/usage.ts';
import { formatSpread, markdownTable, median, percentile, spread } from './statistics.ts';
import { noisyPhoto } from './stress/requests.ts';

const MIB = 1024 ** 2;
const FIXTURES = new URL('../fixtures/images', import.meta.url).pathname;
const toMib = (bytes: number): string => `${(bytes / MIB).toFixed(0)} MiB`;

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
  batch: {
    usage: '[FOLDER]',
    does: 'batches: the memory of the server, and the time relative to that of the conversions',
    run: measureBatch,
  },
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
  identify: {
    usage: '[ROUNDS]',
    does: '`/identify`, and `/convert` without its conversion, in turns: milliseconds',
    run: measureIdentify,
  },
  memory: {
    usage: '[REQUESTS]',
    does: 'the memory of the server at each tenth of many conversions of a small photo with 8 clients',
    run: measureMemory,
  },
  photos: {
    usage: '[FOLDER] [REQUESTS]',
    does: 'the time of conversions of the images of a folder to WebP, one after another',
    run: measurePhotos,
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
  variants: {
    usage: '[ROUNDS]',
    does: 'six conversions and six variants of a photo, in turns, and the memory of the largest tool',
    run: measureVariants,
  },
  verify: {
    usage: 'FOLDER [options of imagemill convert]',
    does: 'a folder without and with `--verify visual`, in turns: seconds',
    run: measureVerify,
  },
};

const [name = '', ...args] = process.argv.slice(2);
const chosen = MEASUREMENTS[name];
if (chosen) console.log(await chosen.run(...args));
else {
  for (const [each, { usage, does }] of Object.entries(MEASUREMENTS))
    console.log(`node scripts/measure.ts ${each} ${usage}\n    ${does}`);
  process.exitCode = name ? 2 : 0;
}

/** Starts a service for some work. */
async function withService<T>(
  settings: Readonly<Record<string, string>>,
  work: (server: ServerProcess) => Promise<T>,
): Promise<T> {
  const server = await startServerProcess({ TEMP_DIR: mkdtempSync(join(folder, 'service-')), ...settings });
  try {
    return await work(server);
  } finally {
    await server.end();
  }
}

/** Does each work once per round, and returns the results of each. */
async function inTurns(rounds: number, works: readonly (() => Promise<number>)[]): Promise<number[][]> {
  const results = works.map((): number[] => []);
  for (let round = 0; round < rounds; round += 1)
    for (const [at, work] of works.entries()) results[at]?.push(await work());
  return results;
}

/** Returns the cells of a row: the values of two works, and how those of a round relate. */
function compared(
  [first = [], second = []]: readonly (readonly number[])[],
  digits: number,
  relate = (one: number, other: number): number => other / one,
): string[] {
  const relations = first.map((value, round) => relate(value, second[round] as number));
  return [
    ...[first, second].map((values) => formatSpread(spread(values), digits)),
    formatSpread(spread(relations)),
  ];
}

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

/** Sends a request and reads the whole response. Returns its headers and its number of bytes. */
async function post({ base }: ServerProcess, path: string, body: FormData | Uint8Array<ArrayBuffer>) {
  const headers = body instanceof FormData ? {} : { 'content-type': 'application/octet-stream' };
  const response = await fetch(`${base}/${path}`, { method: 'POST', headers, body });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return { headers: response.headers, bytes: (await response.arrayBuffer()).byteLength };
}

async function benchImages(): Promise<(name: string) => Image> {
  const images = await makeImages(folder);
  return (wanted) => images.find((image) => image.name === wanted) as Image;
}

async function measureBatch(from = FIXTURES): Promise<string> {
  return withService({ CONCURRENCY: '2' }, async (server) => {
    const send = async (files: readonly Buffer[], format: string): Promise<number> =>
      (await post(server, 'batch', formWith(files, 'files', { format, on_error: 'skip' }))).bytes;
    // A JPEG of 3 megapixels of noise, with bytes after its end.
    const large = Buffer.concat([await noisyPhoto(2000, 1500, 50, 95), Buffer.alloc(10 * MIB)], 10 * MIB);
    await send(Array(20).fill(large), 'bmp');
    const lines = [`20 × 10 MiB JPEG to bmp: peak RSS of the server ${toMib(peakResidentBytes(server.pid))}`];
    const names = readdirSync(from).sort().slice(0, 20);
    const images = names.map((each) => readFileSync(join(from, each)));
    const ratios: number[] = [];
    for (let run = 0; run < 5; run += 1) {
      const [allBefore, ownBefore] = [othersCpuMs(), cpuMsOf(server.pid)];
      const wall = await timeOf(() => send(images, 'webp'));
      const own = cpuMsOf(server.pid) - ownBefore;
      const cpu = othersCpuMs() - allBefore - own;
      ratios.push(wall / (cpu / 2));
      const times = [wall, cpu, own].map((ms) => `${(ms / 1000).toFixed(2)} s`);
      lines.push(
        `${images.length} images to webp: wall ${times[0]}, conversions ${times[1]} of CPU time, the server ${times[2]}`,
      );
    }
    return [...lines, `wall / (CPU time of the conversions / 2): ${formatSpread(spread(ratios), 3)}`].join(
      '\n',
    );
  });
}

async function measureBodies(rounds = '3'): Promise<string> {
  const imageOf = await benchImages();
  const jobs: readonly Job[] = [
    { image: imageOf('photo 320×240'), format: 'jpg' },
    { image: imageOf('photo 0.75 MP'), format: 'webp' },
    { image: imageOf('photo 3 MP'), format: 'jpg', side: 300 },
  ];
  return withService({}, async (server) => {
    const rows: string[][] = [];
    for (const job of jobs) {
      const works = [false, true].map((asBody) => async () => {
        const measured = await measure(server, { ...job, asBody }, 8, { seconds: 1 });
        return measured?.perSecond ?? Number.NaN;
      });
      rows.push([nameOf(job), ...compared(await inTurns(Number(rounds), works), 1)]);
    }
    return markdownTable(['Conversion', 'Form', 'Body', 'Body, relative to form'], rows);
  });
}

async function measureBulk(files = '100000', ...options: string[]): Promise<string> {
  const [source, results, count] = [join(folder, 'source'), join(folder, 'results'), Number(files)];
  const background = { r: 200, g: 80, b: 20 };
  const image = await sharp({ create: { width: 16, height: 16, channels: 3, background } })
    .png()
    .toBuffer();
  for (let at = 0; at < count; at += 1) {
    const parent = join(source, `folder-${Math.floor(at / 1000)}`);
    mkdirSync(parent, { recursive: true });
    writeFileSync(join(parent, `image-${at}.png`), image);
  }
  const lines: string[] = [];
  for (const run of ['first run', 'second run']) {
    let [peak, tail] = [0, ''];
    const ms = await timeOf(async () => {
      const command = ['--optimize-for-size', BUILT_PROGRAM, 'convert', source, '-o', results];
      const child = spawn(process.execPath, [...command, '--update', '--json', ...options], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      // The kernel keeps the peak, so a late sample loses nothing.
      const timer = setInterval(() => {
        peak = Math.max(peak, peakResidentBytes(child.pid ?? 0));
      }, 200);
      for await (const chunk of child.stdout) tail = `${tail}${chunk}`.slice(-1000);
      clearInterval(timer);
    });
    const found = readdirSync(results, { recursive: true }).filter((each) => String(each).endsWith('.webp'));
    if (found.length !== count) throw new Error(`${found.length} of ${count} results exist`);
    lines.push(
      `${run}: ${(ms / 1000).toFixed(1)} s, peak resident memory ${toMib(peak)}, ${tail.trim().split('\n').at(-1)}`,
    );
  }
  return lines.join('\n');
}

async function measureIdentify(rounds = '3'): Promise<string> {
  const imageOf = await benchImages();
  return withService({}, async (server) => {
    const rows: string[][] = [];
    for (const each of ['photo 320×240', 'photo 0.75 MP', 'photo 3 MP', 'png screen']) {
      const { bytes } = imageOf(each);
      const works = ['convert', 'identify'].map((path) => async () => {
        const started = performance.now();
        const { headers } = await post(server, `${path}?output_format=webp&width=300`, new Uint8Array(bytes));
        const converted = /convert;dur=([\d.]+)/.exec(headers.get('server-timing') ?? '')?.[1] ?? 0;
        return performance.now() - started - Number(converted);
      });
      await inTurns(1, works); // warms up
      rows.push([each, ...compared(await inTurns(Number(rounds), works), 1, (one, other) => other - one)]);
    }
    return markdownTable(['Image', '`/convert` without the conversion', '`/identify`', 'Difference'], rows);
  });
}

async function measureMemory(requests = '10000'): Promise<string> {
  const image = (await benchImages())('photo 320×240');
  return withService({}, async (server) => {
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
  });
}

async function measurePhotos(from = FIXTURES, requests = '1000'): Promise<string> {
  const names = readdirSync(from).filter((each) => /\.(jpe?g|png|tiff?|webp|avif)$/i.test(each));
  const files = names.map((each) => readFileSync(join(from, each)));
  return withService({}, async (server) => {
    const times: number[] = [];
    for (let at = 0; at < Number(requests); at += 1) {
      const form = formWith(files[at % files.length] as Buffer, 'file', { format: 'webp' });
      const ms = await timeOf(() => post(server, 'convert', form)).catch(() => undefined);
      if (ms !== undefined) times.push(ms);
    }
    const fast = (times.filter((ms) => ms < 1000).length / times.length) * 100;
    const figures = [median(times), percentile(times, 0.99), Math.max(...times)].map(
      (ms) => `${ms.toFixed(0)} ms`,
    );
    return `${times.length} conversions of ${files.length} images (${Number(requests) - times.length} failed): ${fast.toFixed(1)}% under one second, median ${figures[0]}, p99 ${figures[1]}, longest ${figures[2]}`;
  });
}

async function measureThreads(rounds = '3'): Promise<string> {
  const imageOf = await benchImages();
  const bytes = await (await photo(4000, 3000)).png().toBuffer();
  const png: Image = { name: 'png 12 MP', file: 'photo-12.png', bytes, pixels: 4000 * 3000 };
  const jobs: readonly Job[] = [
    { image: imageOf('photo 3 MP'), format: 'webp' },
    ...['webp', 'jpg'].map((format) => ({ image: png, format, side: 2000 })),
    ...['webp', 'png'].map((format) => ({ image: imageOf('svg'), format, side: 4000 })),
  ];
  // CONCURRENCY limits the threads of a conversion. The PNG has more than MAX_FILE_BYTES by default.
  const settings = (threads: number) => ({ CONCURRENCY: String(threads), MAX_FILE_BYTES: '100000000' });
  return withService(settings(1), (one) =>
    withService(settings(availableParallelism()), async (all) => {
      const rows: string[][] = [];
      for (const job of jobs) {
        const works = [one, all].map((server) => async () => {
          const measured = await measure(server, job, 1, { count: 1 });
          return measured?.medianMs ?? Number.NaN;
        });
        rows.push([nameOf(job), ...compared(await inTurns(Number(rounds), works), 0)]);
      }
      return markdownTable(['Conversion', '1 thread', `${availableParallelism()} threads`, 'Ratio'], rows);
    }),
  );
}

async function measureVariants(rounds = '9'): Promise<string> {
  type Options = Readonly<Record<string, string>>;
  const six = ['160', '320', '640'].flatMap((width) => ['webp', 'jpg'].map((format) => ({ width, format })));
  const twelve = Array.from({ length: 12 }, (_, at) => ({ width: String(200 + 100 * at), format: 'jpg' }));
  // Of 74 megapixels together: MAX_TOTAL_PIXELS is 75 by default.
  const twelveLarge = twelve.map((_, at) => ({
    width: String(2240 + 100 * at),
    format: at % 2 ? 'jpg' : 'webp',
  }));
  const limits = { MAX_FILE_BYTES: '200000000', CONVERT_TIMEOUT_MS: '300000' };
  return withService({ CONCURRENCY: '2', ...limits }, async (server) => {
    const send = (file: Buffer, fields: Options) => post(server, 'convert', formWith(file, 'file', fields));
    const each = async (file: Buffer, all: readonly Options[]): Promise<void> => {
      for (const fields of all) await send(file, fields);
    };
    const together = (file: Buffer, all: readonly Options[]) =>
      send(file, { variants: JSON.stringify(all.map((options, at) => ({ name: `v${at}`, ...options }))) });
    /** Returns the peak memory of a process that the server has started. */
    const peakOf = async (work: () => Promise<unknown>): Promise<string> => {
      let peak = 0;
      const timer = setInterval(() => {
        const tools = listTree(server.pid).filter((pid) => pid !== server.pid);
        peak = Math.max(peak, ...tools.map(peakResidentBytes));
      }, 10);
      await work().finally(() => clearInterval(timer));
      return toMib(peak);
    };
    const medium = await (await photo(4000, 3000)).jpeg({ quality: 90 }).toBuffer();
    const works = [each, together].map((convert) => () => timeOf(async () => convert(medium, six)));
    const row = ['12 MP JPEG to 160, 320 and 640 px', ...compared(await inTurns(Number(rounds), works), 0)];
    const large = await (await photo(8000, 6250)).png({ compressionLevel: 1 }).toBuffer();
    const peaks = {
      'one result': await peakOf(() => each(large, twelve.slice(-1))),
      'twelve variants': await peakOf(() => together(large, twelve)),
      'JPEG of the same size': await peakOf(() => each(large, [{ format: 'jpg' }])),
      'WebP of the same size': await peakOf(() => each(large, [{ format: 'webp' }])),
      'twelve variants of 74 MP together': await peakOf(() => together(large, twelveLarge)),
    };
    return [
      markdownTable(['Conversion', 'Six conversions, ms', 'Six variants, ms', 'Ratio'], [row]),
      markdownTable(['50 MP PNG', 'Peak memory of the largest tool'], Object.entries(peaks)),
    ].join('\n\n');
  });
}

async function measureVerify(from?: string, ...options: string[]): Promise<string> {
  if (!from) throw new Error('the folder is missing');
  const works = [[], ['--verify', 'visual']].map((more) => async () => {
    const command = [
      '--optimize-for-size',
      BUILT_PROGRAM,
      'convert',
      from,
      '-o',
      join(folder, 'out/'),
      '--force',
    ];
    const ms = await timeOf(async () =>
      execFileSync(process.execPath, [...command, ...options, ...more], {
        stdio: ['ignore', 'ignore', 'inherit'],
      }),
    );
    return ms / 1000;
  });
  const row = [from, ...compared(await inTurns(5, works), 1)];
  return markdownTable(['Folder', 'Without', 'With --verify visual', 'Ratio'], [row]);
}
