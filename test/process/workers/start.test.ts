import { copyFile, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { pino } from 'pino';
import { seeded } from '../../../scripts/stress/random.ts';
import { type ConversionEngine, createConversionEngine } from '../../../src/conversion/engine.ts';
import { type ConvertOptions, FITS } from '../../../src/conversion/plan/types.ts';
import { hasBytesLimit, type InputType, OUTPUTS, type OutputType } from '../../../src/formats.ts';
import { detectType } from '../../../src/images/detect.ts';
import type { Magick } from '../../../src/process/toolchain.ts';
import { WORKER_PROTOCOLS } from '../../../src/process/workers/worker.ts';
import { ALL_EXTRAS } from '../../helpers/extra.ts';
import { makeTempDir } from '../../helpers/hooks.ts';
import { testConfig } from '../../helpers/service.ts';
import { eventually } from '../../helpers/util.ts';

const JOBS = 2000;
const SEED = 6;
const IMAGES = new URL('../../../fixtures/images/', import.meta.url).pathname;
const TRAPS = new URL('../../../fixtures/traps/', import.meta.url).pathname;
const EXTRA = new URL('../../../fixtures/extra/', import.meta.url).pathname;
/** Formats that contain their creation time, so that the bytes of two results differ. */
const WHEN = /\(D:\d{14}[^)]*\)/g;
const byRsvgAlone = ({ path, options }: Job): boolean => path.endsWith('.svg') && options.format === 'pdf';
const FORMATS = Object.keys(OUTPUTS) as OutputType[];
const { pick, below } = seeded(SEED);

interface Job {
  readonly path: string;
  readonly options: ConvertOptions;
}

describe('conversions by workers', () => {
  let engine: ConversionEngine;
  let started = 0;
  /** Number of repeated jobs, by outcome. */
  const fallbacks = { ok: 0, failed: 0 };
  before(async () => {
    engine = await createConversionEngine(testConfig(ALL_EXTRAS), pino({ level: 'silent' }), {
      events: {
        workerStarted() {
          started += 1;
        },
        workerFellBack(outcome) {
          fallbacks[outcome] += 1;
        },
      },
    });
  });
  after(() => engine.close());

  it('convert every fixture to every output without repeating a job in a new process', async function () {
    this.timeout(120_000);
    const pairs = (await filesIn(IMAGES)).flatMap((path) =>
      FORMATS.map((format) => ({
        path,
        options: { format, quality: 80, stripMetadata: true } as ConvertOptions,
      })),
    );
    const results = await inTwos(pairs, (job) => result(engine, job, 'one client'));
    expect(results.filter((what) => what.startsWith('Error'))).to.deep.equal([]);
    expect(fallbacks).to.deep.equal({ ok: 0, failed: 0 });
  });

  it('produce byte for byte the same results as new processes', async function () {
    this.timeout(300_000);
    const images = (await Promise.all([IMAGES, TRAPS, EXTRA].map(filesIn))).flat();
    const kinds = Array.from({ length: 400 }, () => ({ path: pick(images), options: someOptions() }));
    const fresh = await inTwos(kinds, (job) => result(engine, job));
    // A single-use worker cannot be affected by earlier jobs, so each job runs only once.
    const { singleUse: once } = WORKER_PROTOCOLS[(engine.toolchain.magick as Magick).major];
    const jobs = once ? [...kinds.keys()] : Array.from({ length: JOBS }, () => below(kinds.length));
    const before = started;
    const differing = await inTwos(jobs, async (at) => {
      const job = kinds[at] as Job;
      return byRsvgAlone(job) || (await result(engine, job, 'one client')) === fresh[at] ? [] : [job];
    });
    expect(differing.flat()).to.deep.equal([]);
    // Make sure that workers ran the jobs. Otherwise new processes would be compared with new processes.
    if (once) expect(started - before).to.be.greaterThan(0.8 * jobs.length);
    else expect(started - before).to.be.within(JOBS / 50, JOBS / 5);
    expect(fallbacks.ok, 'jobs that only a worker failed').to.equal(0);
    // Make sure that most of the compared results are not errors.
    expect(fresh.filter((what) => !what.startsWith('Error')).length).to.be.greaterThan(300);
  });
});

describe('worker sharing', () => {
  const cases = [
    { sharing: 'client', title: 'keeps a worker for each client', workers: 2, warnings: 0 },
    { sharing: 'all', title: 'keeps one worker for all clients and logs a warning', workers: 1, warnings: 1 },
  ];

  for (const { sharing, title, workers, warnings } of cases) {
    it(`${title} with WORKER_SHARING=${sharing} and ImageMagick 7`, async () => {
      const lines: string[] = [];
      const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
      const config = testConfig({ WORKER_SHARING: sharing, CONCURRENCY: '2' });
      const engine = await createConversionEngine(config, log);
      try {
        const path = join(IMAGES, 'scene.png');
        const job: Job = { path, options: { format: 'png', quality: 80, stripMetadata: true } };
        for (const client of ['a', 'b', 'a']) {
          await eventually(() => engine.stats().workersSpare > 0);
          expect(await result(engine, job, client)).not.to.match(/^Error/);
        }
        const { singleUse } = WORKER_PROTOCOLS[(engine.toolchain.magick as Magick).major];
        expect(engine.stats().workersIdle).to.equal(singleUse ? 0 : workers);
        const logged = lines.filter((line) => line.includes('WORKER_SHARING=all'));
        expect(logged).to.have.length(singleUse ? 0 : warnings);
      } finally {
        await engine.close();
      }
    });
  }
});

describe('a conversion engine without warm workers', () => {
  it('starts no worker, and converts an image to the same bytes as one with workers', async () => {
    const path = join(IMAGES, 'scene.png');
    const job: Job = { path, options: { format: 'webp', quality: 80, stripMetadata: true } };
    const outcomes = [true, false].map(async (warmWorkers) => {
      let started = 0;
      const workerStarted = (): void => {
        started += 1;
      };
      const engine = await createConversionEngine(testConfig(), pino({ level: 'silent' }), {
        events: { workerStarted },
        warmWorkers,
      });
      const bytes = await result(engine, job, 'one client').finally(() => engine.close());
      return { bytes, startsWorkers: started > 0 };
    });
    const [withWorkers, without] = await Promise.all(outcomes);
    expect(withWorkers?.startsWorkers).to.equal(true);
    expect(without).to.deep.equal({ bytes: withWorkers?.bytes, startsWorkers: false });
    expect(without?.bytes).not.to.match(/^Error/);
  });
});

async function filesIn(folder: string): Promise<string[]> {
  const names = await readdir(folder);
  return names.filter((name) => !/\.(json|txt|md)$/.test(name)).map((name) => join(folder, name));
}

function someOptions(): ConvertOptions {
  const format = pick(FORMATS);
  return {
    format,
    quality: pick([40, 80, 95]),
    stripMetadata: pick([true, true, false]),
    ...pick([{}, {}, { width: 20 }, { width: 50 }, ...FITS.map((fit) => ({ fit, width: 40, height: 50 }))]),
    enlarge: pick([false, true]),
    maxBytes: hasBytesLimit(format) ? pick([undefined, undefined, 1000]) : undefined,
    background: pick([undefined, undefined, '#123456']),
    frames: pick([undefined, 'first', 'all']),
  };
}

/** Returns the notes and the bytes of the result, or the error. */
async function result(
  { convert }: ConversionEngine,
  { path, options }: Job,
  client?: string,
): Promise<string> {
  const folder = await makeTempDir('warm');
  await copyFile(path, join(folder, 'in'));
  const type = (await detectType(await readFile(path), true)) as InputType;
  const source = { folder, type, label: 'It', ...(client && { client }) };
  try {
    const converted = await convert(source, options, new AbortController().signal);
    return [...converted.notes, (await readFile(converted.path, 'latin1')).replace(WHEN, '')].join('\n');
  } catch (error) {
    return `Error: ${(error as Error).message}`;
  }
}

/** Runs the work for all values, two at a time. */
async function inTwos<T, R>(values: readonly T[], work: (value: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let at = next++; at < values.length; at = next++) results[at] = await work(values[at] as T);
  };
  await Promise.all([worker(), worker()]);
  return results;
}
