// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { expect } from 'chai';
import { encodeWithin } from '../../../src/conversion/steps/search-quality.ts';

/** Sizes by quality like those of real encoders: steep above 80, flat below 30, and not strictly monotonic. */
const CURVES: Readonly<Record<string, (quality: number) => number>> = {
  'a JPEG of a photo': (quality) =>
    400_000 * Math.exp(0.022 * (quality - 80)) * (quality > 85 ? 1.05 ** (quality - 85) : 1),
  'a JPEG of one colour': (quality) => 5000 + quality,
  'a WebP of a screenshot': (quality) => 90_000 + 900 * quality + 300 * Math.sin(quality),
  'a picture that falls steeply': (quality) => 1000 * Math.exp(0.07 * quality),
};

describe('the search for a quality', () => {
  const search = async (curve: (quality: number) => number, from: number, maxBytes: number) => {
    const made: { quality: number; bytes: number }[] = [];
    const best = await encodeWithin(maxBytes, from, async (quality) => {
      made.push({ quality, bytes: curve(quality) });
      return { path: '/nonexistent', bytes: curve(quality) };
    });
    return { made, best, fitting: made.filter(({ bytes }) => bytes <= maxBytes) };
  };

  for (const [what, curve] of Object.entries(CURVES)) {
    it(`finds the best quality, or one close to it in steps or bytes, for ${what}`, async () => {
      for (const from of [100, 80, 45]) {
        for (let wanted = 10; wanted <= from; wanted += 1) {
          const { made, best, fitting } = await search(curve, from, curve(wanted));
          const highest = Math.max(
            ...Array.from({ length: from }, (_, at) => at + 1).filter(
              (quality) => quality >= 10 && curve(quality) <= curve(wanted),
            ),
          );
          const name = `from ${from} to ${wanted}: ${made.map(({ quality }) => quality)}`;
          expect(made.length, name).to.be.at.most(6);
          const isNear = best.bytes >= 0.96 * curve(wanted);
          expect(best.quality, name).to.be.within(isNear ? 10 : highest - 2, highest);
          expect(best.quality, name).to.equal(Math.max(...fitting.map(({ quality }) => quality)));
        }
      }
    });
  }

  it('encodes once if the requested quality suffices', async () => {
    const { made } = await search((quality) => quality * 1000, 80, 80_000);
    expect(made).to.deep.equal([{ quality: 80, bytes: 80_000 }]);
  });

  it('tries 10 before it gives up, and nothing lower', async () => {
    for (const maxBytes of [1, 5000, 9999]) {
      const { made, best } = await search((quality) => quality * 1000, 80, maxBytes);
      expect(best).to.include({ quality: 10, bytes: 10_000 });
      expect(Math.min(...made.map(({ quality }) => quality))).to.equal(10);
      expect(made.length).to.be.at.most(6);
    }
    const { made } = await search((quality) => 1000 * Math.exp(((quality - 10) / 90) ** 3), 100, 1000);
    expect(made.at(-1), 'sizes that fall less and less').to.deep.equal({ quality: 10, bytes: 1000 });
  });

  it('tries nothing lower than a requested quality below 10', async () => {
    const { made } = await search((quality) => quality * 1000, 5, 1);
    expect(made.map(({ quality }) => quality)).to.deep.equal([5]);
  });
});
