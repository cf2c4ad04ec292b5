// @unit
import { expect } from 'chai';
import { monitorRate } from '../../../src/server/http/byte-rate.ts';
import { eventually } from '../../helpers/util.ts';

describe('monitorRate', () => {
  it('reports each window below the minimum rate, if the client must transfer at its start and end', async () => {
    const totals = [0, 100, 199, 199, undefined, 0, undefined];
    let [reads, slow] = [0, 0];
    const transferred = (): number | undefined => totals[reads++];
    const end = monitorRate(transferred, { bytesPerSecond: 5000, windowMs: 20 }, () => {
      slow += 1;
    });
    await eventually(() => reads > totals.length);
    end();
    expect(slow).to.equal(2);
  });
});
