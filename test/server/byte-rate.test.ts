import { expect } from 'chai';
import { monitorRate } from '../../src/server/byte-rate.ts';
import { eventually } from '../helpers/util.ts';

/** Window of the monitor in milliseconds, and the minimum number of bytes in it. */
const [WINDOW_MS, MIN_BYTES] = [20, 100];

describe('monitorRate', () => {
  const ends: (() => void)[] = [];
  afterEach(() => {
    for (const end of ends.splice(0)) end();
  });

  /** Monitors a transfer of the given bytes in each window, which is not expected in windows without a number. */
  function monitor(...windows: readonly (number | undefined)[]) {
    const state = { reads: 0, slow: 0 };
    let total = 0;
    const transferred = () => {
      const bytes = windows[state.reads % windows.length];
      state.reads += 1;
      total += bytes ?? 0;
      return bytes === undefined ? undefined : total;
    };
    const rate = { bytesPerSecond: (MIN_BYTES / WINDOW_MS) * 1000, windowMs: WINDOW_MS };
    const onTooSlow = () => {
      state.slow += 1;
    };
    ends.push(monitorRate(transferred, rate, onTooSlow));
    return state;
  }

  it('reports each window below the minimum rate', async () => {
    const state = monitor(MIN_BYTES - 1);
    await eventually(() => state.slow >= 2);
  });

  it('reports no window at the minimum rate', async () => {
    const state = monitor(MIN_BYTES);
    await eventually(() => state.reads > 5);
    expect(state.slow).to.equal(0);
  });

  it('reports no window at whose start or end the client need not transfer anything', async () => {
    const state = monitor(0, undefined);
    await eventually(() => state.reads > 6);
    expect(state.slow).to.equal(0);
  });
});
