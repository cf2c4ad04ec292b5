// @unit
import { expect } from 'chai';
import fc from 'fast-check';
import { planJob } from '../../../src/conversion/plan/index.ts';
import { createJob } from '../../../src/conversion/plan/job.ts';
import type { ConvertOptions } from '../../../src/conversion/plan/types.ts';
import type { ImageInfo, Orientation } from '../../../src/images/image-info.ts';
import { ALL_INPUT_TYPES, ALL_OUTPUT_TYPES } from '../../../src/tables/formats.ts';
import { OPTION_NAMES, type OptionName } from '../../../src/tables/options.ts';
import { invalidArguments, METADATA_VALUES, valuesOf } from '../../helpers/plans.ts';

/** @module For any header properties and options, every argument of a plan is valid. */

const SEED = 20_261_121;
const RUNS = 500;

/** Sizes that the readers can return: also 64-bit numbers, and halves for the height of an icon. */
const side = fc.oneof(fc.constantFrom(0, 0.5, 1, 7.5, 2 ** 31, 2 ** 64), fc.integer({ min: 1, max: 20_000 }));
const orientation = fc.constantFrom<Orientation>(1, 2, 3, 4, 5, 6, 7, 8);
const profile = fc.constantFrom('none', 'srgb', 'other', 'unusable');
const tones = fc.constantFrom('bilevel', 'palette');

/** Each property is optional, as a header may lack it. */
const facts = <T>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }) => fc.record(model, { requiredKeys: [] });

const page = facts({
  width: side,
  height: side,
  cmyk: fc.boolean(),
  lab: fc.boolean(),
  profile,
  orientation,
  paletteKind: tones,
  inverted: fc.boolean(),
  mirroredFor: orientation,
  unusedSamples: fc.boolean(),
  premultiplied: fc.boolean(),
});
const area = fc.record({ x: fc.nat(), y: fc.nat(), width: fc.nat(), height: fc.nat() });
/** The readers return one entry per frame. */
const animation = fc
  .array(fc.record({ delay: fc.nat(2 ** 24), disposeToBackground: fc.boolean(), noBlend: fc.boolean() }), {
    minLength: 2,
    maxLength: 5,
  })
  .chain((frames) =>
    fc.record(
      {
        delaysMs: fc.constant(frames.map(({ delay }) => delay)),
        frames: fc.constant(
          frames.map(({ disposeToBackground, noBlend }) => ({ disposeToBackground, noBlend })),
        ),
        loopCount: fc.nat(65_535),
        transparent: fc.boolean(),
      },
      { requiredKeys: ['delaysMs', 'loopCount'] },
    ),
  );
const traits = facts({
  width: side,
  height: side,
  orientation,
  opaque: fc.boolean(),
  decodedDepth: fc.constantFrom(8 as const, 16 as const),
  cmyk: fc.boolean(),
  lab: fc.boolean(),
  profile,
  externalProfile: fc.boolean(),
  profileFile: fc.constant('a.icc'),
  premultiplied: fc.boolean(),
  firstFrame: area,
  flat: fc.boolean(),
  deep: fc.boolean(),
  paletteKind: tones,
  pages: fc
    .array(page, { maxLength: 4 })
    .map((pages) => pages.map((traits, index) => ({ index, ...traits }))),
  animation,
});
const extremes = Object.fromEntries(
  OPTION_NAMES.map((name) => [name, fc.constantFrom(...valuesOf(name))]),
) as Record<OptionName, fc.Arbitrary<unknown>>;
const wishes = facts({
  ...extremes,
  width: fc.integer({ min: 1, max: 16_384 }),
  height: fc.integer({ min: 1, max: 16_384 }),
  scale: fc.constantFrom(1, 33.3, 1000),
  trim: fc.constantFrom(0, 4, 100),
  watermark: fc.constantFrom({ type: 'png', sha256: 'a' }, { type: 'svg', sha256: 'b' }),
});

/** The inspection of a PDF finds at least one page, and its size. */
const withSizes = (pages: readonly object[] = []) => ({
  pages: (pages.length > 0 ? pages : [{ index: 0 }]).map((one) => ({ width: 595.3, height: 841.9, ...one })),
  pageCount: 12,
});

describe('a plan for arbitrary properties and options', () => {
  for (const magick of [6, 7] as const) {
    for (const type of ALL_INPUT_TYPES) {
      it(`has only valid arguments, for ${type} with ImageMagick ${magick}`, () => {
        fc.assert(
          fc.property(
            traits,
            wishes,
            fc.constantFrom(...ALL_OUTPUT_TYPES),
            fc.integer({ min: 1, max: 100 }),
            fc.constantFrom(...METADATA_VALUES),
            (told, wished, format, quality, metadata) => {
              const sized = type === 'pdf' ? withSizes(told.pages) : {};
              const picture = { type, ...told, ...sized } as unknown as ImageInfo;
              const hasBox = wished.width !== undefined && wished.height !== undefined;
              const fit = hasBox ? wished.fit : 'inside'; // the others need both sides
              const options = { format, quality, metadata, ...wished, fit } as ConvertOptions;
              const planned = planJob(createJob(picture, options, { magick }));
              expect(invalidArguments(planned.plan)).to.deep.equal([]);
            },
          ),
          { numRuns: RUNS, seed: SEED },
        );
      });
    }
  }
});
