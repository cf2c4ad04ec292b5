// @full: random damage to all fixtures
// @slow
import { closeSync, ftruncateSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import { seeded } from '../../scripts/stress/random.ts';
import { planJob } from '../../src/conversion/plan/index.ts';
import { createJob } from '../../src/conversion/plan/job.ts';
import { HeaderTooComplexError } from '../../src/images/containers/file.ts';
import type { ImageInfo } from '../../src/images/image-info.ts';
import { inspect } from '../../src/images/index.ts';
import { ALL_INPUT_TYPES, type InputType } from '../../src/tables/formats.ts';
import { damage, FIXTURES } from '../helpers/damage.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { HOSTILE_IMAGES } from '../helpers/hostile-files.ts';
import { invalidArguments } from '../helpers/plans.ts';

/**
 * @module For any input, the header readers terminate, do not throw, read a bounded number of
 * times, and result in a valid plan.
 */

/** CI sets FUZZ=thorough: it tries many more files, which takes minutes. */
const THOROUGH = process.env.FUZZ === 'thorough';
const MUTATIONS = THOROUGH ? 5_000 : 100;
/**
 * A file is truncated at every byte near its ends, where the headers are, and at some of the bytes
 * between.
 */
const EDGE_BYTES = 256;
const STEP_BYTES = THOROUGH ? 1 : 64;
const RANDOM_FILES = THOROUGH ? 300 : 100;
const MACHINE = { magick: 6 } as const;
const SEED = 20_261_121;

/** The file that contains the input. */
let [path, descriptor] = ['', 0];

/** Size of that file. Truncating it takes longer than writing it. */
let fileSize = 0;

/** Inspects the bytes as a file. A real file has the limits of read(2) and Node.js. */
function inspected(bytes: Uint8Array, type: InputType): Promise<ImageInfo> {
  if (bytes.length < fileSize) ftruncateSync(descriptor, bytes.length);
  writeSync(descriptor, bytes, 0, bytes.length, 0);
  fileSize = bytes.length;
  return inspect(path, type);
}

/**
 * The properties for which the plans were checked. Most changes of a file do not change its
 * properties.
 */
const planned = new Set<string>();

/**
 * Chai takes longer for an assertion than a reader for a header, so it is called only for a
 * failure.
 */
async function survives(bytes: Uint8Array, type: InputType): Promise<void> {
  const picture = await inspected(bytes, type);
  if (picture.type !== type) expect.fail(`the type ${picture.type}`);
  for (const size of [picture.width, picture.height]) {
    if (size !== undefined && !(size >= 0 && Number.isFinite(size))) expect.fail(`a side of ${size} pixels`);
  }
  const properties = JSON.stringify(picture);
  if (planned.has(properties)) return;
  planned.add(properties);
  for (const format of ['bmp', 'pdf', 'jxl', 'ico'] as const) {
    const invalid = invalidArguments(
      planJob(createJob(picture, { format, quality: 80, metadata: 'none' }, MACHINE)).plan,
    );
    if (invalid.length > 0) expect.fail(`${properties} is planned with ${invalid}`);
  }
}

describe('reading the header of arbitrary bytes', () => {
  before(async () => {
    path = join(await makeTempDir('fuzz'), 'in');
    descriptor = openSync(path, 'w+');
  });
  after(() => closeSync(descriptor));

  it('stops at a limit, and does not block the event loop meanwhile', async () => {
    const endless = HOSTILE_IMAGES['a TIFF of 4000 large directories with profiles']?.() as Buffer;
    let turns = 0;
    const clock = setInterval(() => {
      turns += 1;
    }, 0);
    const outcome = await inspected(endless, 'tiff').catch((error) => error);
    clearInterval(clock);
    expect(outcome).to.be.instanceOf(HeaderTooComplexError);
    expect(turns).to.be.above(3);
  });

  for (const type of ALL_INPUT_TYPES) {
    it(`terminates for bytes that start like ${type}`, async () => {
      const start =
        FIXTURES.find((fixture) => fixture.type === type)?.bytes.subarray(0, 40) ?? Buffer.alloc(0);
      await fc.assert(
        fc.asyncProperty(fc.uint8Array({ maxLength: 4096 }), (rest) =>
          survives(Buffer.concat([start, rest]), type),
        ),
        { numRuns: RANDOM_FILES, seed: SEED },
      );
    });
  }

  for (const { name, type, bytes } of FIXTURES) {
    it(`terminates for ${name} truncated anywhere`, async () => {
      for (let length = 0; length <= bytes.length; length += 1) {
        const atEdge = Math.min(length, bytes.length - length) <= EDGE_BYTES;
        if (atEdge || length % STEP_BYTES === 0) await survives(bytes.subarray(0, length), type);
      }
    });

    it(`terminates for ${MUTATIONS} mutations of ${name}`, async () => {
      const { next: random } = seeded(SEED + bytes.length);
      const whole = bytes.subarray(0, 16_384);
      for (let round = 0; round < MUTATIONS; round += 1) {
        const mutant = damage(whole, random);
        await survives(mutant, type);
      }
    });
  }
});
