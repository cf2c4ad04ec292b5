import { expect } from 'chai';
import { runNode } from '../helpers/command-line.ts';

const MEASURE = new URL('../../scripts/measure.ts', import.meta.url).pathname;

describe('node scripts/measure.ts', () => {
  it('refuses a number of rounds, requests or files that is no number, before it measures', async () => {
    for (const [args, wrong] of [
      [['bodies', 'many'], 'many'],
      [['threads', '0'], '0'],
      [['memory', '1e3'], '1e3'],
      [['bulk', '--jobs', '2'], '--jobs'],
    ] as const) {
      const { status, stderr } = await runNode([MEASURE, ...args]);
      expect(stderr, args.join(' ')).to.include(`expected a whole number from 1, not "${wrong}"`);
      expect(status, args.join(' ')).to.equal(2);
    }
  });
});
