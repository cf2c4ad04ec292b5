/**
 * @module Benchmarks the service beside a plain sharp server, the bare command line and an echo
 * server: `npm run bench -- [OPTIONS]`, see below. Alternates between them in one run. Writes
 * `bench/NAME.md`, and the chart `bench/NAME.svg`.
 */

import { mkdirSync, mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, release, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import sharpModule from 'sharp';
import { chart } from './bench/chart.ts';
import { commandLineMs, type Tools } from './bench/command-line.ts';
import { compareFolder } from './bench/folder.ts';
import { type Image, makeImages } from './bench/images.ts';
import { compareLikeness } from './bench/likeness.ts';
import { type Job, type Measured, measure, nameOf } from './bench/load.ts';
import { type Row, table } from './bench/report.ts';
import { SHARP_OPTIONS } from './bench/settings.ts';
import { summary } from './bench/summary.ts';
import { sweep } from './bench/sweep.ts';
import { startEngine } from './engine.ts';
import { type ServerProcess, startServerProcess } from './processes/start.ts';

const { values: flags } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    /**
     * Regular expression that selects the pairs to run by name, such as "photo 0.75 MP → webp 300".
     */
    only: { type: 'string', default: '' },
    clients: { type: 'string' },
    seconds: { type: 'string' },
    rounds: { type: 'string' },
    /**
     * Measures only the rows of {@link CROWD}, each with one address and with an address per
     * request.
     */
    crowd: { type: 'boolean', default: false },
    /** Measures only results of {@link THUMBNAILS}, of sources in the sizes that people send. */
    thumbnails: { type: 'boolean', default: false },
    /**
     * Measures only the conversion of a folder with this number of photos, beside mogrify, convert
     * and vipsthumbnail.
     */
    folder: { type: 'string' },
    /**
     * Compares only the processor time of conversions of the images in this folder with that of
     * sharp, and prints it.
     */
    sweep: { type: 'string' },
    /**
     * Compares only `quality=auto` with the default quality and with sharp for the images in this
     * folder, and prints it.
     */
    likeness: { type: 'string' },
    out: { type: 'string', default: 'report' },
  },
});

const FORMATS = ['webp', 'jpg', 'png', 'gif', 'bmp', 'pdf'];
const SMALL = 300;
/** Results of `--thumbnails`. */
const THUMBNAILS = [
  { format: 'jpg', side: SMALL },
  { format: 'webp', side: 1200 },
];
const WHOLE = { format: 'webp' };
/** Other results of single sources of `--thumbnails`, by a part of their names. */
const OTHER_RESULTS: Readonly<Record<string, Omit<Job, 'image'>[]>> = {
  P3: [...THUMBNAILS, WHOLE],
  'jpeg 2000×1333': [...THUMBNAILS, WHOLE, { format: 'jpg' }],
  'png photo': [...THUMBNAILS, WHOLE],
  gif: [WHOLE, { format: 'webp', side: 240 }],
};
const QUICK_IMAGES = ['photo 3 MP', 'photo 0.75 MP', 'photo 320×240', 'png screen'];
const QUICK_FORMATS = ['webp', 'jpg', 'png'];
/** Conversions that are also measured with an address per request, at 8 requests at a time. */
const CROWD = ['photo 320×240 → jpg', 'photo 320×240 → webp', 'photo 0.75 MP → webp', 'photo 3 MP → jpg 300'];
const CROWD_CLIENTS = 8;
/** The photo of `--folder`. */
const FOLDER_PHOTO = 'photo 0.75 MP';

const clients = (flags.clients ?? (flags.quick ? '1,8' : '1,2,8,32')).split(',').map(Number);
const seconds = Number(flags.seconds ?? (flags.quick ? 0.5 : 1));
const rounds = Number(flags.rounds ?? (flags.quick ? 2 : 3));
using temporary = mkdtempDisposableSync(join(tmpdir(), 'imagemill-bench-'));
const folder = temporary.path;
const outFolder = new URL('../bench', import.meta.url).pathname;

if (flags.likeness) console.log(await compareLikeness(flags.likeness, flags.only));
else if (flags.sweep) console.log(await sweep(flags.sweep, rounds, flags.only));
else await (flags.folder ? compareFolders(Number(flags.folder)) : compareAll());

async function compareAll(): Promise<void> {
  const tools = await findTools();
  const images = await makeImages(flags.thumbnails ? 'sources' : 'all');
  const servers = {
    // With the defaults of the service, working files are in memory.
    imagemill: await startServerProcess(),
    sharp: await startOther('sharp'),
    echo: await startOther('echo'),
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

async function compareFolders(count: number): Promise<void> {
  const { magick } = await findTools();
  const photo = (await makeImages('all')).find(({ name }) => name === FOLDER_PHOTO) as Image;
  console.log(compareFolder(photo, count, rounds, folder, magick));
}

function jobs(images: readonly Image[]): Job[] {
  const sources = images.filter(({ name }) => !flags.quick || QUICK_IMAGES.includes(name));
  const all = sources.flatMap((image) => resultsOf(image).map((result) => ({ image, ...result })));
  const inCrowd = (job: Job): boolean => CROWD.includes(nameOf(job));
  const selected = all.filter((job) => {
    const isSmaller = job.image.pixels > (job.side ?? 0) ** 2;
    return isSmaller && (!flags.crowd || inCrowd(job)) && nameOf(job).match(flags.only);
  });
  return selected.flatMap((job) => (inCrowd(job) ? [job, { ...job, crowd: true }] : [job]));
}

/** Returns the results to make from an image. */
function resultsOf({ name }: Image): readonly Omit<Job, 'image'>[] {
  const formats = flags.quick ? QUICK_FORMATS : FORMATS;
  if (!flags.thumbnails) return formats.flatMap((format) => [{ format }, { format, side: SMALL }]);
  const [, results] = Object.entries(OTHER_RESULTS).find(([part]) => name.includes(part)) ?? [];
  return results ?? THUMBNAILS;
}

/** Starts the sharp or the echo server, with one libuv thread per processor. */
function startOther(name: 'sharp' | 'echo'): Promise<ServerProcess> {
  const program = new URL(`./bench/${name}-server.ts`, import.meta.url).pathname;
  const settings = { UV_THREADPOOL_SIZE: String(availableParallelism()) };
  return startServerProcess(settings, [process.execPath, program]);
}

/**
 * Measures all servers and tools in turns, once per round, so that a slow moment of the machine
 * affects all of them.
 */
async function compare(
  job: Job,
  count: number,
  servers: Readonly<Record<'imagemill' | 'sharp' | 'echo', ServerProcess>>,
  tools: Tools,
): Promise<Row | undefined> {
  const measured: Record<'imagemill' | 'sharp' | 'echo', Measured[]> = { imagemill: [], sharp: [], echo: [] };
  const commandLine: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    for (const name of ['imagemill', 'sharp', 'echo'] as const) {
      if (name === 'sharp' && !(job.format in SHARP_OPTIONS)) continue;
      const measurement = await measure(servers[name], job, count, name === 'echo' ? seconds / 4 : seconds);
      if (measurement) measured[name].push(measurement);
    }
    const ms = count === 1 ? await commandLineMs(job, tools, seconds) : undefined;
    if (ms !== undefined) commandLine.push(ms);
  }
  if (measured.imagemill.length === 0) return undefined;
  const { image, format, side, crowd } = job;
  const about = { image: image.name, pixels: image.pixels, format, side, crowd, clients: count };
  return { ...about, ...measured, commandLineMs: commandLine };
}

/** Finds the tools that the service would use. */
async function findTools(): Promise<Tools & { readonly versions: string }> {
  const settings = { PATH: process.env.PATH, TEMP_DIR: folder, SANDBOX: 'off', CONCURRENCY: '1' };
  await using engine = await startEngine('error', settings);
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
  const title = `Conversions per second beside sharp, 8 clients, ${versions}`;
  writeFileSync(join(outFolder, `${flags.out}.svg`), chart(rows, title));
  console.log(text.slice(2, -2).join('\n'));
}
