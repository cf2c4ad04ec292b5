import { mock } from 'node:test';
import { expect } from 'chai';
import { exitSoonAfter } from '../../src/cli/convert/convert-all.ts';

describe('the end of a command after a signal', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
  afterEach(() => mock.timers.reset());
  const turn = () => new Promise((resolve) => setImmediate(resolve));

  /** Sends a signal to a command that writes a result and then a report, and records events. */
  function stop() {
    const aborting = new AbortController();
    const [result, report] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const events: string[] = [];
    const explain = exitSoonAfter(
      { signal: aborting.signal, status: () => 130 },
      {
        writing: new Set([result.promise.then(() => void events.push('result written'))]),
        explain: () => {
          events.push('explains');
          return report.promise.then(() => void events.push('report written'));
        },
        exit: (status) => void events.push(`exited with ${status}`),
      },
    );
    aborting.abort();
    mock.timers.tick(1000);
    return { result, report, events, explain };
  }

  it('waits for results that are being written and for the report, and explains once', async () => {
    const { result, report, events, explain } = stop();
    await turn();
    expect(events).to.deep.equal([]);
    result.resolve();
    await turn();
    expect(events).to.deep.equal(['result written', 'explains']);
    report.resolve();
    await turn();
    await explain();
    expect(events).to.deep.equal(['result written', 'explains', 'report written', 'exited with 130']);
  });

  for (const hangs of ['result', 'report'] as const) {
    it(`does not wait for a ${hangs} whose disk hangs`, async () => {
      const { result, events } = stop();
      if (hangs === 'report') result.resolve();
      await turn();
      expect(events).to.not.include('exited with 130');
      mock.timers.tick(60_000);
      await turn();
      expect(events.at(-1)).to.equal('exited with 130');
    });
  }
});
