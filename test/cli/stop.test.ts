import { mock } from 'node:test';
import { expect } from 'chai';
import { exitSoonAfter } from '../../src/cli/convert/run.ts';

describe('the end of a command after a signal', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
  afterEach(() => mock.timers.reset());
  const turn = () => new Promise((resolve) => setImmediate(resolve));

  it('waits for results that are being written, and explains once', async () => {
    const aborting = new AbortController();
    const write = Promise.withResolvers<void>();
    const events: string[] = [];
    const explain = exitSoonAfter(
      { signal: aborting.signal, status: () => 130 },
      {
        writing: new Set([write.promise.then(() => void events.push('written'))]),
        explain: async () => void events.push('explained'),
        exit: (status) => void events.push(`exited with ${status}`),
      },
    );
    aborting.abort();
    mock.timers.tick(1000);
    await turn();
    write.resolve();
    await turn();
    await explain();
    expect(events).to.deep.equal(['written', 'explained', 'exited with 130']);
  });

  it('waits for the report, but not if its disk hangs', async () => {
    for (const hangs of [false, true]) {
      const aborting = new AbortController();
      const report = Promise.withResolvers<void>();
      const events: string[] = [];
      exitSoonAfter(
        { signal: aborting.signal, status: () => 130 },
        {
          writing: new Set(),
          explain: () => report.promise.then(() => void events.push('report written')),
          exit: (status) => void events.push(`exited with ${status}`),
        },
      );
      aborting.abort();
      mock.timers.tick(1000);
      await turn();
      expect(events).to.deep.equal([]);
      if (hangs) mock.timers.tick(60_000);
      else report.resolve();
      await turn();
      expect(events).to.deep.equal([...(hangs ? [] : ['report written']), 'exited with 130']);
    }
  });

  it('does not wait for a result whose disk hangs', async () => {
    const aborting = new AbortController();
    const exited: number[] = [];
    exitSoonAfter(
      { signal: aborting.signal, status: () => 130 },
      {
        writing: new Set([new Promise<void>(() => {})]),
        explain: async () => {},
        exit: (status) => void exited.push(status),
      },
    );
    aborting.abort();
    mock.timers.tick(1000);
    await turn();
    expect(exited).to.deep.equal([]);
    mock.timers.tick(60_000);
    await turn();
    expect(exited).to.deep.equal([130]);
  });
});
