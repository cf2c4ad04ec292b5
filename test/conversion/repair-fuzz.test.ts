// @full
// @slow
// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { seeded } from '../../scripts/stress/random.ts';
import { inspectInput, repairAfterError } from '../../src/conversion/input/inspect.ts';
import { completeInput } from '../../src/conversion/measure/decode-first.ts';
import { INPUT_FILE } from '../../src/conversion/plan/types.ts';
import type { ImageInfo } from '../../src/images/image-info.ts';
import { CommandError } from '../../src/process/command.ts';
import { loadConfig } from '../../src/tables/config.ts';
import { type ErrorCode, ServiceError } from '../../src/tables/errors.ts';
import { ALL_INPUT_TYPES, type InputType } from '../../src/tables/formats.ts';
import type { KeptMetadata } from '../../src/tables/options.ts';
import { damage, FIXTURES, type Fixture, findParts } from '../helpers/damage.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { METADATA_VALUES } from '../helpers/plans.ts';
import { repairContext } from '../helpers/repairs.ts';

/** @module Repairs of any input end, fail only with expected errors, and add few bytes. */

/** CI sets FUZZ=thorough: it tries many more files, which takes minutes. */
const MUTATIONS = process.env.FUZZ === 'thorough' ? 40 : 8;
const SEED = 20_261_124;
/** Maximum bytes that a repair adds: directories of a TIFF, each at most as long as 200 tags. */
const MAX_GROWTH = 16 * 1024;
/** Maximum bytes that are not counted: fields of a fixed length, even if the file ends in one. */
const MAX_UNCOUNTED = 138;
/** Maximum number of pixels to decode. The service rejects images beyond `MAX_PIXELS`. */
const MAX_DECODED_PIXELS = 100_000;
/** Errors that a damaged header can cause. */
const EXPECTED: readonly ErrorCode[] = ['RESOURCE_LIMIT_EXCEEDED', 'CORRUPT_IMAGE', 'FILE_TOO_LARGE'];
const PALETTE_ERROR = new Error('x', {
  cause: new CommandError('exit', 'x', {
    stderr: "convert: invalid colormap index `in' @ error/colormap-private.h/ConstrainColormapIndex/35.",
  }),
});

let folder: string;

/** Repairs a file with all that applies. Fails for an unexpected error, or for too many bytes. */
async function repairs(type: InputType, bytes: Buffer, metadata: KeptMetadata): Promise<void> {
  for (const name of readdirSync(folder)) rmSync(join(folder, name));
  const path = join(folder, INPUT_FILE);
  writeFileSync(path, bytes);
  const source = { folder, type, label: 'The file' };
  let size = bytes.length;
  const context = repairContext((more) => {
    size += more;
  });
  const ignoreExpected = (error: unknown): undefined => {
    if (!(error instanceof ServiceError && EXPECTED.includes(error.code))) throw error;
  };
  const options = { format: 'png', quality: 80, metadata } as const;
  const image = await inspectInput(source, [options], context).catch(ignoreExpected);
  if (image?.type === 'png') await repairAfterError(PALETTE_ERROR, { image }, folder, context);
  const uncounted = statSync(path).size - Math.max(size, bytes.length);
  if (uncounted > MAX_UNCOUNTED) expect.fail(`${uncounted} bytes that were not counted`);
  if (size > bytes.length + MAX_GROWTH) expect.fail(`${size - bytes.length} more bytes`);
  const others = readdirSync(folder).filter((name) => name !== INPUT_FILE && !name.endsWith('.icc'));
  if (others.length > 0) expect.fail(`leaves ${others}`);
  // If decoding fails, the folder is removed with what is left in it.
  if (image?.incomplete && pixels(image) <= MAX_DECODED_PIXELS)
    await completeInput({
      source,
      config: loadConfig({}),
      signal: new AbortController().signal,
      deadline: performance.now() + 60_000,
    }).catch(ignoreExpected);
}

const pixels = ({ width = 0, height = 0 }: ImageInfo): number => width * height;

/** Says which file failed, so that it can be made again. */
async function survives({ name, type, bytes }: Fixture, mutant: Buffer, round: number): Promise<void> {
  await repairs(type, mutant, METADATA_VALUES[round % METADATA_VALUES.length] as KeptMetadata).catch(
    (cause: Error) => {
      const changes = [...mutant.entries()].filter(([at, value]) => value !== bytes[at]);
      throw new Error(`${name} with ${JSON.stringify(changes)}: ${cause.message}`, { cause });
    },
  );
}

describe('repairing the header of arbitrary bytes', () => {
  before(async () => {
    folder = await makeTempDir('fuzz');
  });

  for (const type of ALL_INPUT_TYPES) {
    const fixtures = FIXTURES.filter((fixture) => fixture.type === type);

    it(`survives ${MUTATIONS} mutations of each ${type}`, async () => {
      for (const fixture of fixtures) {
        const { next: random } = seeded(SEED + fixture.bytes.length);
        const parts = findParts(fixture);
        for (let round = 0; round < MUTATIONS; round += 1)
          await survives(fixture, damage(fixture.bytes, random, parts), round);
      }
    });

    it(`survives each ${type} truncated in its header`, async () => {
      for (const fixture of fixtures) {
        const { next: random } = seeded(SEED + fixture.bytes.length);
        for (let round = 0; round < MUTATIONS; round += 1) {
          const length = Math.floor(random() ** 2 * Math.min(fixture.bytes.length, 4096));
          await survives(fixture, fixture.bytes.subarray(0, length), round);
        }
      }
    });
  }
});
