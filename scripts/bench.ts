/**
 * @module Benchmarks the service beside a plain sharp server, the bare command line and an echo server: `npm run bench
 * -- [--quick] [--crowd] [--thumbnails] [--only PART] [--out NAME]`. Alternates between them in one run. Writes `bench/NAME.md` and
 * `bench/NAME.svg`. `npm run bench -- --quality [FOLDER]` compares the quality of thumbnails, and writes
 * `bench/quality.md`. `--bodies`, `--identify`, `--threads`, `--soak` and `--photos` print other measurements.
 */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, release, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { pino } from 'pino';
import sharpModule from 'sharp';
import { loadConfig } from '../src/config.ts';
import { createConversionEngine } from '../src/conversion/engine.ts';
import { measureBodies } from './bench/bodies.ts';
import { chart } from './bench/chart.ts';
import { commandLineMs, type Tools, xargsPerSecond } from './bench/command-line.ts';
import { measureIdentify } from './bench/identify.ts';
import { type Image, makeImages } from './bench/images.ts';
import { type Job, type Measured, measure } from './bench/load.ts';
import { measureMemory, measurePhotos } from './bench/long-runs.ts';
import { type Comparison, compareThumbnails, formatProgress, formatQuality } from './bench/quality.ts';
import { generatePictures, readPictures } from './bench/quality-images.ts';
import { type Row, table } from './bench/report.ts';
import { startEcho, startService, startSharp } from './bench/servers.ts';
import { SHARP_OPTIONS } from './bench/settings.ts';
import { summary } from './bench/summary.ts';
import { measureThreads } from './bench/threads.ts';
import type { ServerProcess } from './processes/start.ts';

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: 'boolean', default: false },
    /** Regular expression that selects the pairs to run by name, such as "photo 0.75 MP → webp 300". */
    only: { type: 'string', default: '' },
    clients: { type: 'string' },
    seconds: { type: 'string' },
    rounds: { type: 'string' },
    /** Measures only the rows of {@link CROWD}, each with one address and with an address per request. */
    crowd: { type: 'boolean', default: false },
    /** Measures only results of {@link THUMBNAILS}, of sources in the sizes that people send. */
    thumbnails: { type: 'boolean', default: false },
    out: { type: 'string', default: 'report' },
    /** Runs only this: compares thumbnails of generated images, and of those in the folder that follows. */
    quality: { type: 'boolean', default: false },
    /** Runs only this: forms and images as bodies, in turns. */
    bodies: { type: 'boolean', default: false },
    /** Runs only this: `/identify` and `/convert`, in turns. */
    identify: { type: 'boolean', default: false },
    /** Runs only this: one request at a time, with one thread and with a thread per processor. */
    threads: { type: 'boolean', default: false },
    /** Runs only this: the given number of conversions of a small photo, while sampling memory. */
    soak: { type: 'string' },
    /** Runs only this: 1000 conversions of the images in the given folder. */
    photos: { type: 'string' },
  },
});

const FORMATS = ['webp', 'jpg', 'png', 'gif', 'bmp', 'pdf'];
const SMALL = 300;
/** Results of `--thumbnails`. */
const THUMBNAILS = [
  { format: 'jpg', side: SMALL },
  { format: 'webp', side: 1200 },
];
const WHOLE = { format: 'webp', side: undefined };
/** Other results of single sources of `--thumbnails`, by a part of their names. */
const OTHER_RESULTS: Readonly<Record<string, Omit<Job, 'image'>[]>> = {
  P3: [...THUMBNAILS, WHOLE],
  animation: [WHOLE, { format: 'webp', side: 240 }],
};
const QUICK_IMAGES = ['photo 3 MP', 'photo 0.75 MP', 'photo 320×240', 'png screen'];
const QUICK_FORMATS = ['webp', 'jpg', 'png'];
/** Conversions that are also measured with an address per request, at 8 requests at a time. */
const CROWD = ['photo 320×240 → jpg', 'photo 320×240 → webp', 'photo 0.75 MP → webp', 'photo 3 MP → jpg 300'];
const CROWD_CLIENTS = 8;

const clients = (flags.clients ?? (flags.quick ? '1,8' : '1,2,8,32')).split(',').map(Number);
const seconds = Number(flags.seconds ?? (flags.quick ? 0.5 : 1));
const rounds = Number(flags.rounds ?? (flags.quick ? 2 : 3));
const folder = mkdtempSync(join(tmpdir(), 'imagemill-bench-'));
const outFolder = new URL('../bench', import.meta.url).pathname;

try {
  if (flags.photos) console.log(await measurePhotos(flags.photos, 1000));
  else if (flags.soak) console.log(await measureMemory(await smallPhoto(), Number(flags.soak)));
  else if (flags.bodies) console.log(await measureBodies(folder, rounds, seconds));
  else if (flags.identify) console.log(await measureIdentify(folder, rounds));
  else if (flags.threads) console.log(await measureThreads(folder, rounds));
  else if (flags.quality) await compareQuality(positionals[0]);
  else await compareAll();
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function smallPhoto(): Promise<Image> {
  return (await makeImages(folder)).find(({ name }) => name === 'photo 320×240') as Image;
}

async function compareQuality(pictures: string | undefined): Promise<void> {
  const config = loadConfig({ PATH: process.env.PATH, TEMP_DIR: folder });
  const engine = await createConversionEngine(config, pino({ level: 'error' }));
  const comparisons: Comparison[] = [];
  for (const picture of [...(await generatePictures()), ...(pictures ? await readPictures(pictures) : [])]) {
    const compared = await compareThumbnails(engine, picture);
    comparisons.push(...compared);
    console.log(formatProgress(compared));
  }
  await engine.close();
  const version = `ImageMagick ${engine.toolchain.magick?.version}, sharp ${sharpModule.versions.sharp}`;
  const text = ['# Quality of thumbnails', `${version}.`, formatQuality(comparisons)].join('\n\n');
  writeFileSync(join(outFolder, `${flags.out === 'report' ? 'quality' : flags.out}.md`), `${text}\n`);
  console.log(`\n${text}`);
}

async function compareAll(): Promise<void> {
  const tools = await findTools();
  const images = await makeImages(folder, flags.thumbnails ? 'sources' : 'all');
  const servers = {
    imagemill: await startService(),
    sharp: await startSharp(),
    echo: await startEcho(),
  };
  const rows: Row[] = [];
  for (const job of jobs(images)) {
    for (const count of job.crowd || flags.crowd ? [CROWD_CLIENTS] : clients) {
      const row = await compare(job, count, servers, tools);
      if (!row) continue;
      rows.push(row);
      console.log(table([row]).split('\n').at(-1));
    }
  }
  await Promise.all(Object.values(servers).map((server) => server.end()));
  report(rows, tools);
}

function jobs(images: readonly Image[]): Job[] {
  if (flags.thumbnails)
    return images.flatMap((image) => {
      const [, results] = Object.entries(OTHER_RESULTS).find(([part]) => image.name.includes(part)) ?? [];
      return (results ?? THUMBNAILS)
        .map((result) => ({ image, ...result }))
        .filter((job) => image.pixels > (job.side ?? 0) ** 2 && nameOf(job).match(flags.only));
    });
  const all = images.flatMap((image) =>
    FORMATS.flatMap((format) => [undefined, SMALL].map((side) => ({ image, format, side }))),
  );
  const selected = all.filter((job) => {
    const { image, format, side } = job;
    if (flags.quick && !(QUICK_IMAGES.includes(image.name) && QUICK_FORMATS.includes(format))) return false;
    if (side && image.pixels <= SMALL ** 2) return false;
    if (flags.crowd && !CROWD.includes(nameOf(job))) return false;
    return nameOf(job).match(flags.only) !== null;
  });
  return selected.flatMap((job) => (CROWD.includes(nameOf(job)) ? [job, { ...job, crowd: true }] : [job]));
}

function nameOf({ image, format, side }: Job): string {
  return `${image.name} → ${format}${side ? ` ${side}` : ''}`;
}

/**
 * Measures all servers and tools in turns, once per round, so that a slow moment of the machine affects all of them.
 */
async function compare(
  job: Job,
  count: number,
  servers: Readonly<Record<'imagemill' | 'sharp' | 'echo', ServerProcess>>,
  tools: Tools,
): Promise<Row | undefined> {
  const measured: Record<'imagemill' | 'sharp' | 'echo', Measured[]> = { imagemill: [], sharp: [], echo: [] };
  const commandLine: number[] = [];
  const xargs: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    for (const name of ['imagemill', 'sharp', 'echo'] as const) {
      if (name === 'sharp' && !(job.format in SHARP_OPTIONS)) continue;
      const length = { seconds: name === 'echo' ? seconds / 4 : seconds };
      const measurement = await measure(servers[name], job, count, length);
      if (measurement) measured[name].push(measurement);
    }
    if (job.crowd) continue; // the command line has no clients
    if (count === 1) push(commandLine, await commandLineMs(job, tools, seconds));
    if (count === 8) {
      const expected = measured.imagemill.at(-1)?.perSecond ?? 1;
      push(xargs, await xargsPerSecond(job, tools, availableParallelism(), seconds, expected));
    }
  }
  if (measured.imagemill.length === 0) return undefined;
  const { image, format, side, crowd } = job;
  return {
    image: image.name,
    pixels: image.pixels,
    format,
    side,
    crowd,
    clients: count,
    ...measured,
    commandLineMs: commandLine,
    xargsPerSecond: xargs,
  };
}

function push(values: number[], value: number | undefined): void {
  if (value !== undefined) values.push(value);
}

/** Finds the tools that the service would use. */
async function findTools(): Promise<Tools & { readonly versions: string }> {
  const config = loadConfig({ PATH: process.env.PATH, TEMP_DIR: folder, SANDBOX: 'off', CONCURRENCY: '1' });
  const engine = await createConversionEngine(config, pino({ level: 'error' }));
  await engine.close();
  const { magick, rsvg } = engine.toolchain;
  if (!magick || !rsvg) throw new Error('ImageMagick or librsvg is missing');
  const versions = `ImageMagick ${magick.version}, librsvg ${rsvg.version}`;
  return { magick: { path: magick.path, major: magick.major }, rsvg: rsvg.path, versions };
}

function report(rows: readonly Row[], { versions }: { readonly versions: string }): void {
  mkdirSync(outFolder, { recursive: true });
  const machine = `${availableParallelism()} processors (${cpus()[0]?.model}), Linux ${release()}`;
  const libraries = `Node.js ${process.versions.node}, sharp ${sharpModule.versions.sharp} (libvips ${sharpModule.versions.vips})`;
  const text = [
    '# Benchmark results',
    `${new Date().toISOString().slice(0, 10)}, ${machine}, ${versions}, ${libraries}. Clients, servers and tools on the same machine.`,
    `${rounds} rounds of ${seconds} s each, in turns. Ratios are medians of the rounds, with minimum and maximum. CPU is the CPU time of the machine per conversion, without the clients. Memory is the peak private memory of the process tree.`,
    ...summary(rows),
    '## All results',
    table(rows),
  ];
  writeFileSync(join(outFolder, `${flags.out}.md`), `${text.join('\n\n')}\n`);
  const busiest = rows.filter((row) => row.clients === 8 && !row.crowd);
  writeFileSync(
    join(outFolder, `${flags.out}.svg`),
    chart(busiest, 'Conversions per second with 8 clients, relative to the sharp server'),
  );
  console.log(text.slice(2, -2).join('\n'));
}
