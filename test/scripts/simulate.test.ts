import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { type SimulationOptions, simulate } from '../../scripts/sizing/simulate.ts';
import { conversionsTable, parseServiceTimes } from '../../scripts/sizing/tables.ts';

/** Service times whose distribution is nearly exponential with a mean of 100 ms. */
const EXPONENTIAL = Array.from({ length: 10_000 }, (_, at) => -Math.log(1 - (at + 0.5) / 10_000) * 100);

const BASE: SimulationOptions = {
  ...{ instances: 1, processors: 1, queueLimit: 1e9, tries: 1, balance: 'random' },
  ...{ perSecond: 8, serviceMs: EXPONENTIAL, requests: 400_000, seed: 1 },
};

/** Erlang C: mean waiting time in ms of a queue with several servers, which has a closed formula. */
function erlangC(servers: number, perSecond: number, serviceMs: number): number {
  const load = (perSecond * serviceMs) / 1000;
  let [term, sum] = [1, 0];
  for (let busy = 0; busy < servers; busy += 1) {
    sum += term;
    term = (term * load) / (busy + 1);
  }
  const last = (term * servers) / (servers - load);
  return ((last / (sum + last)) * serviceMs) / (servers - load);
}

describe('the simulation of instances', () => {
  for (const [processors, perSecond] of [
    [1, 8],
    [2, 16],
    [8, 70],
  ] as const) {
    it(`has the mean waiting time of Erlang C for ${processors} processors at ${perSecond} arrivals a second`, () => {
      const { wait, utilization } = simulate({ ...BASE, processors, perSecond });
      const expected = erlangC(processors, perSecond, 100);
      expect(wait.mean / expected).to.be.within(0.93, 1.07);
      expect(utilization).to.be.closeTo(perSecond / 10 / processors, 0.02);
    });
  }

  it('rejects the share of requests that Erlang B predicts for a queue without places', () => {
    // One server without a queue, offered 0.8 Erlang: 0.8 / 1.8 of the requests are refused.
    expect(simulate({ ...BASE, queueLimit: 0 }).refused).to.be.closeTo(0.8 / 1.8, 0.01);
  });

  it('rejects only the requests that exceed the capacity under a constant overload', () => {
    const { refused, utilization } = simulate({ ...BASE, perSecond: 20, queueLimit: 50, requests: 100_000 });
    expect(refused).to.be.closeTo(0.5, 0.02);
    expect(utilization).to.be.above(0.98);
  });

  it('has longer waiting times in bursts, and behind a random proxy than behind one that counts connections', () => {
    const options = { ...BASE, instances: 10, perSecond: 80, requests: 100_000 };
    const [random, least] = (['random', 'least-connections'] as const).map((balance) =>
      simulate({ ...options, balance }),
    ) as [ReturnType<typeof simulate>, ReturnType<typeof simulate>];
    expect(least.wait.p95).to.be.below(random.wait.p95 / 2);
    const bursts = { factor: 5, everyS: 20, lengthS: 2 };
    const bursty = simulate({ ...options, balance: 'least-connections', bursts });
    expect(bursty.wait.p95).to.be.above(least.wait.p95 * 2);
    expect(bursty.utilization, 'the mean rate is the same').to.be.closeTo(least.utilization, 0.05);
  });
});

describe('docs/sizing.md', () => {
  it('has the table of conversions that scripts/sizing.ts creates from the report of the benchmark', () => {
    const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
    const table = conversionsTable(parseServiceTimes(read('bench/report.md')));
    expect(read('docs/sizing.md')).to.include(table);
  });
});
