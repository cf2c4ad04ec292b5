// @unit
import { expect } from 'chai';
import { compare } from '../../src/regress/compare.ts';
import { comparePixels, metadataReasons } from '../../src/regress/compare-images.ts';
import { type Difference, measureDifference } from '../../src/regress/image/difference.ts';
import { clearHidden, type DecodedImage, type Raster } from '../../src/regress/image/image.ts';
import { toMatrix } from '../../src/regress/matrix.ts';
import type { Recording } from '../../src/regress/record.ts';
import { defaultThresholds } from '../../src/regress/thresholds.ts';
import { plain } from '../helpers/pixels.ts';
import { image, original, pixel, redrawn, shifted, uniform } from './images.ts';

const STRICT = defaultThresholds({ format: 'png' });

function verdictOn(before: DecodedImage, after: DecodedImage) {
  const changed = metadataReasons(before.facts, after.facts);
  const { verdict, reasons } = comparePixels(before, after, changed, STRICT);
  return { verdict, kinds: [...new Set(reasons.map(({ kind }) => kind))] };
}

const measure = (one: Raster, other: Raster): Difference => measureDifference(one, other, true);

describe('comparing two images', () => {
  it('returns same for equal pixels', () => {
    const same = { verdict: 'same', kinds: [] };
    expect(verdictOn(image([original()]), image([original()]))).to.deep.equal(same);
  });

  it('returns same when only the colour of fully transparent pixels differs', () => {
    const visible = original();
    const hide = (colour: readonly number[]): Raster => {
      const raster = redrawn(visible, (x, y) => (x < 40 ? [...colour, 0] : pixel(visible, x, y)));
      expect(clearHidden(raster.data)).to.equal(true);
      return raster;
    };
    const hidden = (colour: readonly number[]) => image([hide(colour)], { alpha: true });
    expect(verdictOn(hidden([255, 0, 255]), hidden([0, 255, 0])).verdict).to.equal('same');
  });

  it('returns changed when size, frames, timing, profile, metadata or depth differ', () => {
    const frames = [original(), shifted(original())];
    const moving = (facts: Partial<DecodedImage['facts']>, shown = frames) =>
      image(shown, { delays: [100, 40], plays: 0, ...facts });
    for (const [kind, before, after] of [
      ['size', image([original()]), image([uniform(0)])],
      ['frames', moving({}), moving({ delays: [140] }, [original()])],
      ['timing', moving({}), moving({ delays: [100, 50] })],
      ['timing', moving({}), moving({ plays: 3 })],
      ['profile', image([original()], { profile: 'abcd' }), image([original()])],
      ['metadata', image([original()]), image([original()], { metadata: ['exif'] })],
      ['depth', image([original()], { depth: 16 }), image([original()])],
    ] as const) {
      const { verdict, kinds } = verdictOn(before, after);
      expect(verdict).to.equal('changed');
      expect(kinds).to.include(kind);
    }
  });

  it('returns changed when one frame differs in one place, even if another has a lower PSNR', () => {
    const plain = uniform(120, 128, 128);
    const little = redrawn(plain, (x) => (x % 2 ? [126, 126, 126, 255] : [120, 120, 120, 255]));
    const spot = redrawn(plain, (x, y) => (x < 8 && y < 8 ? [180, 120, 120, 255] : [120, 120, 120, 255]));
    const allowed = { ...STRICT, area: 256, deltaE: 100, psnr: 30, ssim: 0.5, patch: 4 };
    expect(measure(plain, little).psnr).to.be.below(measure(plain, spot).psnr);
    for (const after of [
      [little, spot],
      [spot, little],
    ]) {
      const found = comparePixels(image([plain, plain]), image(after), [], allowed);
      expect(found.verdict).to.equal('changed');
      expect(found.difference?.frame).to.equal(after.indexOf(spot));
    }
  });

  it('computes the SSIM of plain areas by its formula, and 1 only for equal images', () => {
    // For plain areas of luminance a and b: (2ab + C) / (a² + b² + C), with C = (0.01 × 255)².
    const C = 2.55 ** 2;
    for (const [a, b] of [
      [100, 120],
      [50, 51],
      [255, 0],
    ] as const) {
      const expected = (2 * a * b + C) / (a * a + b * b + C);
      expect(measure(uniform(a), uniform(b)).ssim).to.be.closeTo(expected, 1e-4);
    }
    expect(measure(original(), original()).ssim).to.equal(1);
    expect(measure(uniform(9, 8, 8), uniform(8, 8, 8)).ssim, 'of 8 pixels').to.equal(undefined);
  });

  it('computes the PSNR from the mean squared error', () => {
    expect(measure(uniform(100), uniform(110)).psnr).to.be.closeTo(10 * Math.log10(255 ** 2 / 100), 1e-9);
  });
});

describe('comparing results', () => {
  const matrix = toMatrix({ cases: [{ name: 'png', format: 'png' }] });
  const recording = (bytes: Buffer): Recording => {
    const result = { bytes: bytes.length, digest: bytes.toString('hex'), ms: 1, notes: [] };
    const row = { image: 'a', case: 'png', format: 'png', input: '0', commands: [], result } as const;
    return { tools: {}, matrix, rows: [row], open: async () => bytes };
  };
  const image = (width: number) => plain(width, 9, 'red').png().toBuffer();
  const verdict = async (before: Buffer, after: Buffer) =>
    (await compare(recording(before), recording(after), matrix))[0]?.verdict;

  it('returns changed if a file of the same picture has grown by more than both limits', async () => {
    const png = await image(9);
    const grown = (bytes: number) => Buffer.concat([png, Buffer.alloc(bytes)]);
    expect(await verdict(png, grown(4000))).to.equal('same');
    expect(await verdict(png, grown(5000))).to.equal('changed');
    expect(await verdict(grown(50_000), grown(55_000))).to.equal('same');
  });

  it('returns broken, fixed or changed for a decoding failure that is new, gone or persistent', async () => {
    const png = await image(9);
    const [one, other] = [Buffer.from('neither'), Buffer.from('nor')];
    const large = Buffer.concat([one, Buffer.alloc(20_000)]);
    expect(await verdict(png, one)).to.equal('broken');
    expect(await verdict(one, png)).to.equal('fixed');
    expect(await verdict(large, png), 'and much smaller').to.equal('fixed');
    expect(await verdict(one, other)).to.equal('changed');
    expect(await verdict(one, one)).to.equal('identical');
  });
});
