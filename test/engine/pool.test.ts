import { expect } from 'chai';
import { createPool } from '../../src/engine/pool.ts';
import { ClientGone, type ServiceError } from '../../src/errors.ts';

/** A job that runs until it is told to end. */
function openJob(log: string[], name: string) {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  return {
    start: () => {
      log.push(`start ${name}`);
      return promise;
    },
    end: () => resolve(name),
    fail: reject,
  };
}
const stays = new AbortController().signal;
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe('the pool', () => {
  it('runs as many jobs at once as it has places, and the others in the order they came', async () => {
    const pool = createPool({ concurrency: 2, queueLimit: 10 });
    const log: string[] = [];
    const jobs = ['a', 'b', 'c', 'd'].map((name) => openJob(log, name));
    const results = jobs.map((job) => pool.run(stays, job.start));
    await settled();
    expect(log).to.deep.equal(['start a', 'start b']);
    jobs[1]?.end();
    await settled();
    expect(log).to.deep.equal(['start a', 'start b', 'start c']);
    for (const job of jobs) job.end();
    expect(await Promise.all(results)).to.deep.equal(['a', 'b', 'c', 'd']);
  });

  it('refuses a job with 503 when the queue is full, and takes the next when it no longer is', async () => {
    const pool = createPool({ concurrency: 1, queueLimit: 1 });
    const log: string[] = [];
    const running = openJob(log, 'running');
    const waiting = openJob(log, 'waiting');
    const next = openJob(log, 'next');
    const first = pool.run(stays, running.start);
    const second = pool.run(stays, waiting.start);
    const refused = await pool.run(stays, async () => 'never').catch((error: ServiceError) => error);
    expect(refused).to.include({ code: 'BUSY', status: 503, retryAfter: 5 });
    running.end();
    await first;
    waiting.end();
    const third = pool.run(stays, next.start);
    next.end();
    expect(await Promise.all([second, third])).to.deep.equal(['waiting', 'next']);
  });

  it('with a queue of 0 still runs what it has a place for', async () => {
    const pool = createPool({ concurrency: 1, queueLimit: 0 });
    expect(await pool.run(stays, async () => 'done')).to.equal('done');
  });

  it('drops a job whose client leaves while it waits: at once, without starting it, and its place is free', async () => {
    const pool = createPool({ concurrency: 1, queueLimit: 1 });
    const log: string[] = [];
    const running = openJob(log, 'running');
    const first = pool.run(stays, running.start);
    const client = new AbortController();
    const dropped = pool.run(client.signal, openJob(log, 'dropped').start);
    client.abort();
    expect(await dropped.catch((error) => error)).to.be.instanceOf(ClientGone);
    const next = pool.run(stays, async () => 'next');
    running.end();
    expect(await Promise.all([first, next])).to.deep.equal(['running', 'next']);
    expect(log).to.deep.equal(['start running']);
  });

  it('does not take a job whose client has left already', async () => {
    const gone = await createPool({ concurrency: 1, queueLimit: 1 })
      .run(AbortSignal.abort(), async () => 'never')
      .catch((error) => error);
    expect(gone).to.be.instanceOf(ClientGone);
  });

  it('hands on what a job throws, and goes on with the next', async () => {
    const pool = createPool({ concurrency: 1, queueLimit: 5 });
    const failing = pool.run(stays, () => Promise.reject(new Error('broken')));
    const next = pool.run(stays, async () => 'next');
    expect(await failing.catch((error: Error) => error.message)).to.equal('broken');
    expect(await next).to.equal('next');
  });

  describe('with jobs that belong together', () => {
    const batchOf = (pool: ReturnType<typeof createPool>, log: string[], name: string, size: number) => {
      const group = {};
      return Array.from({ length: size }, (_, at) => {
        const job = openJob(log, `${name}${at}`);
        void pool.run(stays, job.start, group);
        return job;
      });
    };

    it('lets a single job go before all of a batch of twenty but those that run', async () => {
      const pool = createPool({ concurrency: 2, queueLimit: 100 });
      const log: string[] = [];
      const batch = batchOf(pool, log, 'batch', 20);
      await settled();
      const single = openJob(log, 'single');
      void pool.run(stays, single.start);
      batch[0]?.end();
      await settled();
      expect(log).to.deep.equal(['start batch0', 'start batch1', 'start single']);
    });

    for (const [concurrency, batches] of [
      [1, 1],
      [2, 2],
      [2, 3],
      [4, 4],
    ] as const) {
      it(`lets a single job go next, with ${batches} batches of twenty on ${concurrency} places`, async () => {
        const pool = createPool({ concurrency, queueLimit: 100 });
        const log: string[] = [];
        const jobs = Array.from({ length: batches }, (_, at) => batchOf(pool, log, `batch${at}-`, 20)).flat();
        await settled();
        // A while later, when every batch has been served.
        for (const job of jobs.slice(0, concurrency)) job.end();
        await settled();
        void pool.run(stays, openJob(log, 'single').start);
        const before = log.length;
        for (const job of jobs) job.end();
        await settled();
        expect(log.indexOf('start single') - before).to.be.within(0, Math.max(0, batches - concurrency));
      });
    }

    it('serves two batches by turns, and each in its own order', async () => {
      const pool = createPool({ concurrency: 2, queueLimit: 100 });
      const log: string[] = [];
      const first = batchOf(pool, log, 'a', 3);
      await settled();
      const second = batchOf(pool, log, 'b', 3);
      for (const job of [first[0], first[1], second[0], first[2], second[1]]) {
        job?.end();
        await settled();
      }
      expect(log.map((line) => line.slice(6))).to.deep.equal(['a0', 'a1', 'b0', 'a2', 'b1', 'b2']);
    });
  });
});
