import { expect } from 'chai';
import { seeded } from '../../../scripts/stress/random.ts';
import { toCentiseconds } from '../../../src/conversion/plan/timing.ts';

const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0);

describe('the delays of a GIF', () => {
  for (const [delays, expected] of [
    [
      [100, 40, 250],
      [10, 4, 25],
    ],
    [
      [16, 17, 42],
      [2, 2, 4],
    ],
    [
      [16, 16, 16, 16, 16, 16],
      [2, 2, 2, 2, 0, 2],
    ],
    [
      [10, 10, 10, 10],
      [2, 0, 0, 2],
    ],
    [
      [5, 5],
      [2, 2],
    ],
    [
      [1, 1, 1, 500],
      [2, 0, 0, 48],
    ],
    [
      [500, 1, 1],
      [48, 0, 2],
    ],
    [
      [700_000, 100, 100],
      [65_535, 4475, 10],
    ],
  ] as const)
    it(`of ${delays} ms are ${expected} hundredths of a second`, () => {
      expect(toCentiseconds(delays)).to.deep.equal(expected);
    });

  it('add up to the duration, and show each frame for at least 20 ms and at most 20 ms late', () => {
    const random = seeded(7);
    for (let round = 0; round < 500; round += 1) {
      const delaysMs = Array.from({ length: 2 + (round % 40) }, () => 1 + random.below(5 + (round % 90)));
      const delays = toCentiseconds(delaysMs);
      const shown = delays.filter((delay) => delay > 0);
      expect(Math.min(...shown), `${delaysMs}`).to.be.at.least(2);
      expect(shown.length).to.be.at.least(2);
      expect(delays.at(-1)).to.be.greaterThan(0);
      const duration = Math.max(4, Math.round(sum(delaysMs) / 10));
      expect(sum(delays), `${delaysMs}`).to.equal(duration);
      for (const [at, delay] of delays.entries()) {
        const late = 10 * sum(delays.slice(0, at)) - sum(delaysMs.slice(0, at));
        if (delay > 0 && at < delays.length - 1) expect(late, `${delaysMs}, ${at}`).to.be.within(-5, 20);
      }
    }
  });
});
