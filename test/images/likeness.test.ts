// @unit
import { expect } from 'chai';
import { seeded } from '../../scripts/stress/random.ts';
import { compareFiles, compareSamples, type Samples } from '../../src/images/likeness.ts';
import { writeTempFile } from '../helpers/hooks.ts';

/** Makes a picture by a function of the place and the channel. */
const make = (
  width: number,
  height: number,
  channels: Samples['channels'],
  sample: (x: number, y: number, channel: number) => number,
): Samples => ({
  width,
  height,
  channels,
  data: Uint8Array.from({ length: width * height * channels }, (_, at) =>
    sample(Math.floor(at / channels) % width, Math.floor(at / channels / width), at % channels),
  ),
});

/**
 * Mean SSIM of two grey pictures, by the formula of Wang et al. (2004), in windows of 8 by 8 pixels
 * at distances of 4.
 */
function meanSsim(one: Samples, other: Samples): number {
  const values: number[] = [];
  for (let top = 0; top + 8 <= one.height; top += 4) {
    for (let left = 0; left + 8 <= one.width; left += 4) {
      const windowOf = ({ data, width }: Samples) =>
        Array.from({ length: 64 }, (_, at) => data[(top + (at >> 3)) * width + left + (at & 7)] as number);
      const [a, b] = [windowOf(one), windowOf(other)];
      const mean = (list: readonly number[]) => list.reduce((sum, value) => sum + value, 0) / 64;
      const [m1, m2] = [mean(a), mean(b)];
      const v1 = mean(a.map((value) => (value - m1) ** 2));
      const v2 = mean(b.map((value) => (value - m2) ** 2));
      const covariance = mean(a.map((value, at) => (value - m1) * ((b[at] as number) - m2)));
      values.push(
        ((2 * m1 * m2 + 2.55 ** 2) * (2 * covariance + 7.65 ** 2)) /
          ((m1 * m1 + m2 * m2 + 2.55 ** 2) * (v1 + v2 + 7.65 ** 2)),
      );
    }
  }
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

describe('the likeness of two pictures', () => {
  const random = seeded(7);
  const noise = make(64, 48, 1, () => random.below(256));
  const blurred = make(64, 48, 1, (x, y) => {
    const [left, right] = [Math.max(0, x - 1), Math.min(63, x + 1)];
    return ((noise.data[y * 64 + left] as number) + (noise.data[y * 64 + right] as number)) / 2;
  });

  it('is 1 for equal pictures, whatever their channels', () => {
    for (const channels of [1, 2, 3, 4] as const) {
      const picture = make(33, 21, channels, (x, y, channel) => (x * 7 + y * 11 + channel * 50) % 256);
      const { mean, low } = compareSamples(picture, picture);
      expect(
        [mean, low].map((value) => value.toFixed(3)),
        `${channels}`,
      ).to.deep.equal(['1.000', '1.000']);
    }
  });

  it('is the mean structural similarity of small windows', () => {
    expect(compareSamples(noise, blurred).mean).to.be.closeTo(meanSsim(noise, blurred), 1e-6);
  });

  it('states the worst windows, which a mean of flat ones hides', () => {
    const page = make(400, 400, 1, () => 255);
    const text = { ...page, data: page.data.slice() };
    for (let at = 0; at < 400 * 16; at += 2) text.data[at] = 0; // 4% of the windows
    const { mean, low } = compareSamples(text, page);
    expect(mean).to.be.above(0.95);
    expect(low).to.be.below(0.1);
  });

  it('counts a change of colours that leaves the luma', () => {
    const red = make(16, 16, 3, (_x, _y, channel) => [200, 50, 50][channel] as number);
    const grey = make(16, 16, 3, () => 95);
    expect(compareSamples(red, grey).mean).to.be.below(0.2);
  });

  it('counts blocks in a gradient, which the structural similarity of flat windows hides', () => {
    const gradient = make(64, 64, 1, (x) => 100 + Math.round(x / 4));
    const blocks = make(64, 64, 1, (x, y) => 100 + Math.round(x / 4) + (((x >> 3) + (y >> 3)) % 2 ? 2 : -2));
    const rounded = make(64, 64, 1, (x) => 101 + Math.round(x / 4));
    expect(meanSsim(gradient, blocks)).to.be.above(0.95);
    expect(compareSamples(gradient, blocks).mean).to.be.below(0.95);
    expect(compareSamples(gradient, rounded).mean).to.be.above(0.99);
  });

  it('counts blocks of colour in a smooth background', () => {
    const rose = [200, 160, 150] as const;
    const smooth = make(64, 64, 3, (_x, _y, channel) => rose[channel] as number);
    const blocks = make(64, 64, 3, (x, y, channel) => {
      const isBlue = channel === 2 && ((x >> 4) + (y >> 4)) % 2 === 0;
      return (rose[channel] as number) + (isBlue ? 5 : 0);
    });
    expect(compareSamples(smooth, blocks).mean).to.be.below(0.8);
    const noisy = (one: Samples) => ({
      ...one,
      data: one.data.map((value, at) => value + (Math.floor(at / 3) % 2) * 9),
    });
    expect(compareSamples(noisy(smooth), noisy(blocks)).mean, 'among details').to.be.above(0.97);
  });

  it('ignores the colours of invisible pixels, and counts visible ones over any background', () => {
    const hidden = make(16, 16, 4, (_x, _y, channel) => (channel === 3 ? 0 : 255));
    const black = make(16, 16, 4, () => 0);
    expect(compareSamples(hidden, black).mean).to.equal(1);
    const white = make(16, 16, 4, (x, y, channel) => (channel < 3 ? 255 : (x + y) % 2 ? 255 : 0));
    expect(compareSamples(white, hidden).mean, 'white on white, too').to.be.below(0.2);
  });

  it('tells pictures of at most 256 colours', () => {
    const gradient = (count: number) =>
      make(300, 1, 3, (x, _y, channel) =>
        channel === 0 ? x % count : channel === 1 ? Number(x % count > 255) : 0,
      );
    for (const [count, few] of [
      [256, true],
      [257, false],
    ] as const)
      expect(compareSamples(gradient(count), gradient(count)).hasFewColours, `${count}`).to.equal(few);
  });

  it('refuses pictures of different sizes, and files that are no samples', async () => {
    const turned = make(48, 64, 1, () => 0);
    expect(() => compareSamples(noise, turned)).to.throw('sizes differ: 64x48 and 48x64');
    const header = 'P7\nWIDTH 2\nHEIGHT 1\nDEPTH 1\nMAXVAL 255\nTUPLTYPE GRAYSCALE\nENDHDR\n';
    const right = await writeTempFile('right.pam', Buffer.from(`${header}ab`));
    expect(compareFiles({ one: right, other: right }).mean).to.equal(1);
    for (const text of [`${header}a`, `${header}abc`, header.replace('255', '65535'), 'P6\n2 1\n255\nab']) {
      const wrong = await writeTempFile('wrong.pam', Buffer.from(text));
      expect(() => compareFiles({ one: right, other: wrong }), text).to.throw('no picture of 8 bits');
    }
  });
});
