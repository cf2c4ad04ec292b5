import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import {
  MIN_RESPONSE_BYTES_PER_SECOND,
  type MonitoredResponse,
  monitorResponse,
} from '../../src/server/response.ts';
import { eventually } from '../helpers/util.ts';

/** Interval in which the rate is measured, in milliseconds. */
const WINDOW_MS = 50;
const MIN_BYTES = Math.ceil((MIN_RESPONSE_BYTES_PER_SECOND * WINDOW_MS) / 1000);

describe('monitorResponse', () => {
  const watches: MonitoredResponse[] = [];
  afterEach(() => {
    for (const watch of watches.splice(0)) watch.end();
  });

  /** Creates a response that sends `bytesPerInterval` bytes per interval, with `buffered` bytes in the process. */
  function createResponse(bytesPerInterval: number, buffered = 0) {
    const state = { reads: 0, isDestroyed: false };
    const socket = {
      get bytesWritten() {
        state.reads += 1;
        return state.reads * bytesPerInterval + buffered;
      },
      writableLength: buffered,
    };
    const res = {
      socket,
      setTimeout() {},
      destroy() {
        state.isDestroyed = true;
      },
    };
    const watch = monitorResponse(res as unknown as ServerResponse, WINDOW_MS);
    watches.push(watch);
    return { state, watch };
  }

  it('destroys a response that is sent continuously, but below the minimum rate', async () => {
    const { state } = createResponse(MIN_BYTES - 1, 1_000_000);
    await eventually(() => state.isDestroyed);
  });

  it('does not destroy a response at the minimum rate', async () => {
    const { state } = createResponse(MIN_BYTES);
    await eventually(() => state.reads > 5);
    expect(state.isDestroyed).to.equal(false);
  });

  it('returns the average rate within the first second', () => {
    const { watch } = createResponse(10_000);
    expect(watch.bytesPerSecond()).to.equal(10_000);
  });
});
