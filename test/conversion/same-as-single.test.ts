// @full: all fixtures in several variants
// @slow
// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
/** @module Compares the bytes of variants of every fixture at once with those one by one. */
import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { seeded } from '../../scripts/stress/random.ts';
import type { ConversionInput, ConversionResult, Variant } from '../../src/conversion/context.ts';
import type { Step } from '../../src/conversion/plan/step.ts';
import type { ConvertOptions } from '../../src/conversion/plan/types.ts';
import { ServiceError } from '../../src/tables/errors.ts';
import { optionsWith } from '../../src/tables/options.ts';
import { FIXTURE_FILES, type Fixture } from '../helpers/damage.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { withoutDates } from '../helpers/pdf.ts';
import { valuesOf } from '../helpers/plans.ts';
import { useEngine } from '../helpers/service.ts';

const options = (given: Partial<ConvertOptions>): ConvertOptions => ({
  format: 'webp',
  quality: 80,
  metadata: 'none',
  ...given,
});

/** Variants that share much or nothing, and that need other tools, several attempts, or frames. */
const VARIANTS: readonly Variant[] = Object.entries({
  small: { width: 60 },
  tiny: { width: 20, format: 'jpg' },
  'small-jpg': { width: 60, format: 'jpg' },
  'small-png': { width: 60, format: 'png' },
  'small-gif': { width: 60, format: 'gif' },
  square: { width: 40, height: 40, fit: 'cover', format: 'jpg', quality: 95 },
  attentive: { width: 30, height: 60, fit: 'cover', position: 'attention' },
  'attentive-part': { width: 25, height: 40, fit: 'cover', position: 'attention', crop: '0,0,50%,100%' },
  turned: { rotate: 90, flip: 'vertical', width: 60 },
  blurred: { width: 60, greyscale: true, blur: 1, format: 'jpg' },
  half: { scale: 50, rotate: 180, format: 'png' },
  trimmed: { trim: 20, width: 50, format: 'png' },
  part: { crop: '10%,20%,50%,50%', format: 'png' },
  paper: { format: 'pdf', width: 50 },
  bordered: { width: 50, height: 50, fit: 'contain', background: '#ff8800', format: 'bmp' },
  kept: { format: 'jpg', metadata: 'all' },
  limited: { format: 'jpg', width: 70, maxBytes: 1200 },
  still: { frames: 'first', lossless: true },
  modern: { format: 'avif', width: 60 },
  ...Object.fromEntries(
    optionsWith('filter', 'colours').map((name) => [name, { width: 60, [name]: valuesOf(name)[0] }]),
  ),
} satisfies Record<string, Partial<ConvertOptions>>).map(([name, given]) => ({
  name,
  options: options(given),
}));

/** Variants of each file. Over all files, each pair of variants is together at least twice. */
const VARIANTS_PER_FILE = 5;

/** Returns variants for a file, by its place in the list. */
function someVariants(place: number): Variant[] {
  const { next } = seeded(place);
  const shuffled = VARIANTS.map((variant) => ({ variant, order: next() })).sort((a, b) => a.order - b.order);
  return shuffled.slice(0, VARIANTS_PER_FILE).map(({ variant }) => variant);
}

const FILES = FIXTURE_FILES.filter(({ folder }) => folder !== 'extra');

describe('several variants of one file', () => {
  const engine = useEngine({ CONCURRENCY: '1', EXTRA_OUTPUTS: 'avif' });

  /** Stores a file as the input of a conversion. */
  async function input({ bytes, type }: Fixture, steps: Step[]): Promise<ConversionInput> {
    const folder = join(await makeTempDir('variants'), '1');
    await mkdir(folder);
    await writeFile(join(folder, 'in'), bytes);
    return { folder, type, label: 'The file', onCommand: (step) => void steps.push(step) };
  }

  async function describeResult({ path, quality, notes }: ConversionResult, isSvg: boolean): Promise<object> {
    // cairo 1.18 compresses the dates of a PDF with other objects. No command of an SVG is shared.
    if (isSvg && path.endsWith('.pdf')) return { quality, notes };
    const sha256 = createHash('sha256')
      .update(withoutDates(await readFile(path)))
      .digest('hex');
    return { sha256, quality, notes };
  }

  for (const [place, file] of FILES.entries()) {
    const variants = someVariants(place);
    it(`has the bytes and notes of single conversions for ${file.folder}/${file.name}`, async () => {
      const { signal } = new AbortController();
      const isSvg = file.type === 'svg';
      const steps: Step[] = [];
      const single: object[] = [];
      for (const variant of variants) {
        const source = await input(file, []);
        const result = await engine.convert(source, variant.options, signal).catch((error) => error);
        if (result instanceof Error && !(result instanceof ServiceError)) throw result;
        single.push(
          result instanceof Error
            ? { status: (result as ServiceError).status }
            : await describeResult(result, isSvg),
        );
      }
      const together = await engine
        .convertVariants(await input(file, steps), variants, 'skip', signal)
        .catch((error: ServiceError) => variants.map(() => ({ error })));
      for (const [at, outcome] of together.entries()) {
        const found =
          'error' in outcome
            ? { status: outcome.error.status }
            : await describeResult(outcome.converted, isSvg);
        expect(found, variants[at]?.name).to.deep.equal(single[at]);
      }
      const isShared = steps.some(({ args }) => args.includes('-respect-parentheses'));
      if (single.some((one) => 'sha256' in one)) expect(isShared, 'shared').to.equal(!isSvg);
    });
  }
});
