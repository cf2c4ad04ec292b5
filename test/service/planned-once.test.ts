import { type Profiler, Session } from 'node:inspector/promises';
import { expect } from 'chai';
import { converted, fixture } from '../helpers/client.ts';
import { useServiceWith } from '../helpers/service.ts';

const PLANNER = new URL('../../src/conversion/plan/index.ts', import.meta.url).href;

describe('a conversion', () => {
  const service = useServiceWith();

  it('is planned once, for its key and its commands', async () => {
    const session = new Session();
    session.connect();
    await session.post('Profiler.enable');
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    await converted(service.base, await fixture('scene.jpg'), { width: '30' });
    const { result } = await session.post('Profiler.takePreciseCoverage');
    session.disconnect();
    const functions = result.find(({ url }: Profiler.ScriptCoverage) => url === PLANNER)?.functions ?? [];
    const plan = functions.find(({ functionName }) => functionName === 'planJob');
    expect(plan?.ranges[0]?.count).to.equal(1);
  });
});
