// @full: all fixtures with random options
// @slow
// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import pLimit from 'p-limit';
import { pino } from 'pino';
import { seeded } from '../../../scripts/stress/random.ts';
import { type ConversionEngine, createConversionEngine } from '../../../src/conversion/engine.ts';
import type { ConvertOptions } from '../../../src/conversion/plan/types.ts';
import { hasBytesLimit, type InputType, OUTPUTS, type OutputType } from '../../../src/tables/formats.ts';
import { type Fit, OPTIONS } from '../../../src/tables/options.ts';
import { convertWith, typeOf } from '../../helpers/engine.ts';
import { ALL_EXTRAS } from '../../helpers/extra.ts';
import { testConfig } from '../../helpers/service.ts';

/** Number of conversions of each fixture, with random options. */
const JOBS_PER_IMAGE = 4;
const { pick } = seeded(6);
const FOLDERS = ['images', 'traps', 'extra'].map(
  (name) => new URL(`../../../fixtures/${name}/`, import.meta.url).pathname,
);
/** Times in a PDF: the bytes of two results differ. */
const WHEN = /\(D:\d{14}[^)]*\)/g;
/** librsvg writes its PDF itself, with the time in a compressed stream. */
const byRsvgAlone = ({ path, options }: Job): boolean => path.endsWith('.svg') && options.format === 'pdf';
const FORMATS = Object.keys(OUTPUTS) as OutputType[];

interface Job {
  readonly path: string;
  readonly options: ConvertOptions;
}

describe('conversions in fork servers', () => {
  const engines: ConversionEngine[] = [];
  let images: string[];
  before(async () => {
    images = (await Promise.all(FOLDERS.map(filesIn))).flat();
    for (const FORK_SERVER of ['on', 'off']) {
      const config = testConfig({ ...ALL_EXTRAS, FORK_SERVER });
      engines.push(await createConversionEngine(config, pino({ level: 'silent' })));
    }
  });
  after(() => Promise.all(engines.map((engine) => engine.close())));

  it('serve every tool that runs', () => {
    const [forked, started] = engines.map((engine) => engine.stats().forkServers);
    const { toolchain } = engines[0] as ConversionEngine;
    expect(forked).to.equal(Object.values(toolchain).filter((tool) => tool).length);
    expect(started).to.equal(0);
  });

  it('give the same keys, bytes, notes and errors as new starts of the tools, for every fixture', async function () {
    this.timeout(3_600_000);
    const jobs = images.flatMap((path) =>
      Array.from({ length: JOBS_PER_IMAGE }, () => ({ path, options: someOptions() })),
    );
    const different: Job[] = [];
    /** The bytes of the results by their conversion key, which must be the same for a key. */
    const bytesOf = new Map<string, string>();
    let converted = 0;
    await pLimit(2).map(jobs, async (job) => {
      const [forked = '', started] = await Promise.all(engines.map((engine) => result(engine, job)));
      const [key = '', bytes = ''] = forked.split('\n', 2);
      if (!forked.startsWith('Error')) converted += 1;
      if (byRsvgAlone(job)) return;
      if (forked !== started || (bytesOf.get(key) ?? bytes) !== bytes) different.push(job);
      if (!forked.startsWith('Error')) bytesOf.set(key, bytes);
    });
    expect(different).to.deep.equal([]);
    expect(converted).to.be.greaterThan(jobs.length / 2);
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
    metadata: pick(['none', 'none', 'copyright', 'all']),
    ...pick([
      {},
      {},
      { width: 20 },
      { width: 50 },
      ...(Object.keys(OPTIONS.fit.type.labels) as Fit[]).map((fit) => ({ fit, width: 40, height: 50 })),
    ]),
    enlarge: pick([false, true]),
    maxBytes: hasBytesLimit(format) ? pick([undefined, undefined, 1000]) : undefined,
    background: pick([undefined, undefined, '#123456']),
    frames: pick([undefined, 'first', 'all']),
  };
}

/** Returns the conversion key, the digest of the result without times, and the notes, or the error. */
async function result(engine: ConversionEngine, { path, options }: Job): Promise<string> {
  const bytes = await readFile(path);
  const source = { bytes, type: (await typeOf(bytes)) as InputType };
  return convertWith(engine, source, options, async (converted) => {
    const made = (await readFile(converted.path, 'latin1')).replace(WHEN, '');
    const digest = createHash('sha256').update(made).digest('hex');
    return [converted.key, digest, ...converted.notes].join('\n');
  }).catch((error: Error) => `Error: ${error.message}`);
}
