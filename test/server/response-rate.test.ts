import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import { MIN_ANSWER_RATE, type WatchedAnswer, watchAnswer } from '../../src/server/response-rate.ts';
import { eventually } from '../helpers/util.ts';

/** How long each look at the rate takes, in milliseconds. */
const WINDOW_MS = 50;
const LEAST_BYTES = Math.ceil((MIN_ANSWER_RATE * WINDOW_MS) / 1000);

describe('the watch on an answer', () => {
  const watches: WatchedAnswer[] = [];
  afterEach(() => {
    for (const watch of watches.splice(0)) watch.end();
  });

  /** An answer of which so many bytes leave between two looks, with as many more in the buffers of this process. */
  function answerOf(bytesPerLook: number, buffered = 0) {
    const state = { looks: 0, isCut: false };
    const socket = {
      get bytesWritten() {
        state.looks += 1;
        return state.looks * bytesPerLook + buffered;
      },
      writableLength: buffered,
    };
    const res = {
      socket,
      setTimeout() {},
      destroy() {
        state.isCut = true;
      },
    };
    const watch = watchAnswer(res as unknown as ServerResponse, WINDOW_MS);
    watches.push(watch);
    return { state, watch };
  }

  it('cuts off an answer of which something leaves all the time, but less than the least rate', async () => {
    const { state } = answerOf(LEAST_BYTES - 1, 1_000_000);
    await eventually(() => state.isCut);
  });

  it('leaves an answer alone that keeps to the least rate', async () => {
    const { state } = answerOf(LEAST_BYTES);
    await eventually(() => state.looks > 5);
    expect(state.isCut).to.equal(false);
  });

  it('tells the average rate, from the first second on', () => {
    const { watch } = answerOf(10_000);
    expect(watch.bytesPerSecond()).to.equal(10_000);
  });
});
