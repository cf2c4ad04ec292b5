// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { expect } from 'chai';
import { encodeWithin, searchLikeness } from '../../../src/conversion/steps/search-quality.ts';

/** Sizes by quality like those of encoders: steep above 80, flat below 30, and not monotonic. */
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

  it('encodes nothing again, and as often as it may', async () => {
    const known = [85, 70].map((quality) => ({ quality, bytes: quality * 1000, path: '/nonexistent' }));
    for (const maxBytes of [90_000, 40_000, 1000]) {
      const made: number[] = [];
      const encode = async (quality: number) => {
        made.push(quality);
        return { path: '/nonexistent', bytes: quality * 1000 };
      };
      const best = await encodeWithin(maxBytes, 70, encode, { known, encodings: 2 });
      const name = `${maxBytes}: ${made}`;
      expect(made.length, name).to.be.at.most(maxBytes > 70_000 ? 0 : 2);
      expect(made, name).to.not.include(70);
      expect(best.bytes <= maxBytes || best.quality === 10, name).to.equal(true);
    }
  });
});

/** Differences by quality as of a photo, a page, a smooth gradient, and what no quality keeps. */
const DIFFERENCES: Readonly<Record<string, (quality: number) => number>> = {
  'a photo': (quality) => Math.exp(-0.035 * (quality - 70)),
  'a page, which is the same only with fine steps': (quality) => (quality < 80 ? 4 - quality / 30 : 0.8),
  'a smooth gradient, which is the same with nearly any': (quality) => (quality < 45 ? 5 : 0.2),
  'a picture that differs with every quality': () => 3,
};

describe('the search for the lowest quality that looks the same', () => {
  const range = { from: 75, lowest: 30, highest: 95, trials: 4, maxBytes: Number.POSITIVE_INFINITY };
  for (const [what, differenceAt] of Object.entries(DIFFERENCES)) {
    it(`selects one that has been compared, after at most four trials, for ${what}`, async () => {
      for (const trials of [1, 2, 3, 4]) {
        for (const highest of [95, 60]) {
          const tried: number[] = [];
          const given = { ...range, trials, highest, from: Math.min(75, highest) };
          const { quality, looksSame } = await searchLikeness(given, async (one) => {
            tried.push(one);
            return { difference: differenceAt(one), bytes: one };
          });
          const name = `${trials} up to ${highest}: ${tried}`;
          const same = tried.filter((one) => differenceAt(one) <= 1);
          expect(new Set(tried).size, name).to.be.within(1, trials);
          expect([quality, looksSame], name).to.deep.equal(
            same.length > 0 ? [Math.min(...same), true] : [Math.max(...tried), false],
          );
          if (trials === 4 && looksSame) expect(differenceAt(quality - 12), name).to.be.above(0.9);
        }
      }
    });
  }

  it('ends as soon as no smaller result can look the same', async () => {
    const tried: number[] = [];
    const found = await searchLikeness({ ...range, maxBytes: 50 }, async (quality) => {
      tried.push(quality);
      return { difference: 2, bytes: quality };
    });
    expect([tried, found.looksSame]).to.deep.equal([[75], false]);
  });

  it('does not try the highest quality because the first result differs much, as in a blur', async () => {
    const range = { from: 75, lowest: 60, highest: 95, trials: 2, maxBytes: Number.POSITIVE_INFINITY };
    const blocks = (quality: number) => 5 * Math.exp(-0.15 * (quality - 75));
    const found = await searchLikeness(range, async (quality) => ({
      difference: blocks(quality),
      bytes: quality,
    }));
    expect(found.looksSame).to.equal(true);
    expect(found.quality).to.be.below(90);
  });

  it('does not keep the highest quality because the difference falls fast only near it', async () => {
    // An old photo with 256 colours as JPEG.
    const grain = (quality: number) =>
      quality < 89 ? 2.52 * Math.exp(-0.03 * (quality - 75)) : 1.64 - 0.17 * (quality - 89);
    const { quality, looksSame } = await searchLikeness(range, async (one) => ({
      difference: grain(one),
      bytes: one,
    }));
    expect([quality, looksSame]).to.deep.equal([93, true]);
  });
});
