// @unit
import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import { pendingResponse } from '../../../src/server/respond/response.ts';

describe('pendingResponse', () => {
  it('returns the average rate within the first second, without what is buffered', () => {
    const socket = { bytesWritten: 6_000, writableLength: 1_000 };
    const { bytesPerSecond } = pendingResponse({ socket } as unknown as ServerResponse);
    socket.bytesWritten += 15_000;
    socket.writableLength += 5_000;
    expect(bytesPerSecond()).to.equal(10_000);
  });
});
