// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { expect } from 'chai';
import { ConversionQueue, type JobOwner, type Slot } from '../../src/conversion/queue/queue.ts';
import { ClientDisconnectedError, type ServiceError } from '../../src/errors.ts';

/** Creates a job that runs until `end` is called. */
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
const signal = new AbortController().signal;

/** Runs a job that needs no preparation. */
async function run<T>(queue: ConversionQueue, work: (slot: Slot) => Promise<T>, owner: JobOwner): Promise<T> {
  using place = queue.enter(owner);
  using slot = await place.start();
  return await work(slot);
}
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe('conversion queue', () => {
  it('runs as many jobs at once as it has slots, and the others in the order of arrival', async () => {
    const queue = new ConversionQueue({ concurrency: 2, queueLimit: 10 });
    const log: string[] = [];
    const jobs = ['a', 'b', 'c', 'd'].map((name) => openJob(log, name));
    const results = jobs.map((job) => run(queue, job.start, { signal }));
    await settled();
    expect(log).to.deep.equal(['start a', 'start b']);
    jobs[1]?.end();
    await settled();
    expect(log).to.deep.equal(['start a', 'start b', 'start c']);
    for (const job of jobs) job.end();
    expect(await Promise.all(results)).to.deep.equal(['a', 'b', 'c', 'd']);
  });

  it('tells a job how many slots are idle when it starts, and none while others wait', async () => {
    const pool = new ConversionQueue({ concurrency: 3, queueLimit: 10 });
    const idle: number[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    const start = ({ idleSlots }: Slot) => {
      idle.push(idleSlots);
      return promise;
    };
    const alone = run(pool, start, { signal });
    await settled();
    expect(idle).to.deep.equal([2]);
    const others = Array.from({ length: 4 }, () => run(pool, start, { signal }));
    resolve();
    await Promise.all([alone, ...others]);
    expect(idle.slice(0, 3)).to.deep.equal([2, 0, 0]);
    expect(idle.at(-1)).to.be.greaterThan(0);
  });

  it('rejects a job with 503 while the queue is full, and accepts the next one afterwards', async () => {
    const queue = new ConversionQueue({ concurrency: 1, queueLimit: 1 });
    const log: string[] = [];
    const running = openJob(log, 'running');
    const waiting = openJob(log, 'waiting');
    const next = openJob(log, 'next');
    const first = run(queue, running.start, { signal });
    const second = run(queue, waiting.start, { signal });
    const refused = await run(queue, async () => 'never', { signal }).catch((error: ServiceError) => error);
    expect(refused).to.include({ code: 'QUEUE_FULL', status: 503, retryAfter: 5 });
    running.end();
    await first;
    waiting.end();
    const third = run(queue, next.start, { signal });
    next.end();
    expect(await Promise.all([second, third])).to.deep.equal(['waiting', 'next']);
  });

  it('drops a waiting job immediately when its client disconnects, and frees its place', async () => {
    const queue = new ConversionQueue({ concurrency: 1, queueLimit: 1 });
    const log: string[] = [];
    const running = openJob(log, 'running');
    const first = run(queue, running.start, { signal });
    const client = new AbortController();
    const dropped = run(queue, openJob(log, 'dropped').start, { signal: client.signal });
    client.abort();
    expect(await dropped.catch((error) => error)).to.be.instanceOf(ClientDisconnectedError);
    const next = run(queue, async () => 'next', { signal });
    running.end();
    expect(await Promise.all([first, next])).to.deep.equal(['running', 'next']);
    expect(log).to.deep.equal(['start running']);
  });

  it('rejects a job whose client has already disconnected', async () => {
    const gone = await run(new ConversionQueue({ concurrency: 1, queueLimit: 1 }), async () => 'never', {
      signal: AbortSignal.abort(),
    }).catch((error) => error);
    expect(gone).to.be.instanceOf(ClientDisconnectedError);
  });

  describe('with groups of jobs', () => {
    const batchOf = (queue: ConversionQueue, log: string[], name: string, size: number) => {
      const group = {};
      return Array.from({ length: size }, (_, at) => {
        const job = openJob(log, `${name}${at}`);
        void run(queue, job.start, { signal, group });
        return job;
      });
    };

    for (const [concurrency, batches] of [
      [1, 1],
      [2, 2],
      [2, 3],
      [4, 4],
    ] as const) {
      it(`starts a single job next, with ${batches} batches of twenty on ${concurrency} slots`, async () => {
        const queue = new ConversionQueue({ concurrency, queueLimit: 100 });
        const log: string[] = [];
        const jobs = Array.from({ length: batches }, (_, at) =>
          batchOf(queue, log, `batch${at}-`, 20),
        ).flat();
        await settled();
        // Add the single job after every batch has been served once.
        for (const job of jobs.slice(0, concurrency)) job.end();
        await settled();
        void run(queue, openJob(log, 'single').start, { signal });
        const before = log.length;
        for (const job of jobs) job.end();
        await settled();
        expect(log.indexOf('start single') - before).to.be.within(0, Math.max(0, batches - concurrency));
      });
    }

    it('alternates between two batches, and keeps the order within each', async () => {
      const queue = new ConversionQueue({ concurrency: 2, queueLimit: 100 });
      const log: string[] = [];
      const first = batchOf(queue, log, 'a', 3);
      await settled();
      const second = batchOf(queue, log, 'b', 3);
      for (const job of [first[0], first[1], second[0], first[2], second[1]]) {
        job?.end();
        await settled();
      }
      expect(log.map((line) => line.slice(6))).to.deep.equal(['a0', 'a1', 'b0', 'a2', 'b1', 'b2']);
    });
  });
});

describe('conversion queue with several clients', () => {
  /** Fills all slots with jobs that the test ends one at a time. */
  function stage(concurrency: number, queueLimit = 10_000, reservedSlots = 0) {
    const time = { ms: 0 };
    const queue = new ConversionQueue({ concurrency, queueLimit, reservedSlots, now: () => time.ms });
    const started: string[] = [];
    const ends: (() => void)[] = [];
    const refused: string[] = [];
    const send = (client: string, name: string, group?: object): void => {
      const job = () => {
        started.push(name);
        return new Promise<void>((resolve) => ends.push(resolve));
      };
      run(queue, job, { signal, client, group }).catch((error: ServiceError) =>
        refused.push(`${name} ${error.code}`),
      );
    };
    return {
      queue,
      time,
      started,
      refused,
      send,
      sendBatch(client: string, name: string, size = 20): void {
        const group = {};
        for (let at = 0; at < size; at += 1) send(client, `${name}.${at}`, group);
      },
      async endOldest(): Promise<void> {
        ends.shift()?.();
        await settled();
      },
    };
  }

  for (const [concurrency, batches] of [
    [1, 10],
    [2, 10],
    [8, 10],
  ] as const) {
    it(`starts the one job of a client next, on ${concurrency} slots, before ${batches} batches of another client`, async () => {
      const { send, sendBatch, started, endOldest } = stage(concurrency);
      for (let at = 0; at < batches; at += 1) sendBatch('greedy', `batch${at}`);
      for (let at = 0; at < 50; at += 1) send('greedy', `single${at}`);
      await settled();
      for (let at = 0; at < 30; at += 1) await endOldest();
      const before = started.length;
      send('modest', 'small');
      await endOldest();
      expect(started.slice(before)).to.deep.equal(['small']);
    });
  }

  for (const count of [2, 10, 100]) {
    it(`alternates between ${count} clients, whether they send batches or single jobs`, async () => {
      const { send, sendBatch, started, endOldest } = stage(2);
      const names = Array.from({ length: count }, (_, at) => `client${at}`);
      for (const [at, name] of names.entries()) {
        if (at % 2 === 0) sendBatch(name, name);
        else for (let job = 0; job < 20; job += 1) send(name, `${name}.${job}`);
      }
      await settled();
      const rounds = 10;
      while (started.length < count * rounds) await endOldest();
      const jobsOf = (name: string) => started.filter((job) => job.startsWith(`${name}.`)).length;
      for (const name of names) expect(jobsOf(name), name).to.be.within(rounds - 1, rounds + 1);
    });

    it(`shares a full queue between ${count} clients, and rejects jobs beyond a share`, async () => {
      const queueLimit = 200;
      const { send, started, refused } = stage(1, queueLimit);
      send('first', 'running');
      await settled();
      for (let job = 0; job < 2 * queueLimit; job += 1) send('greedy', `greedy.${job}`);
      await settled();
      expect(refused).to.have.length(queueLimit);
      const share = Math.floor(queueLimit / count);
      for (let at = 1; at < count; at += 1)
        for (let job = 0; job < share; job += 1) send(`modest${at}`, `modest${at}.${job}`);
      await settled();
      expect(refused.filter((line) => line.startsWith('modest'))).to.deep.equal([]);
      expect(refused).to.have.length(queueLimit + share * (count - 1));
      expect(started).to.deep.equal(['running']);
    });
  }

  it('drops the newest job of the client with most waiting jobs for a client with fewer', async () => {
    const { send, refused, queue, started, endOldest } = stage(1, 3);
    for (const name of ['running', 'a', 'b', 'c']) send('greedy', name);
    await settled();
    send('modest', 'small');
    await settled();
    expect(refused).to.deep.equal(['c QUEUE_FULL']);
    expect(queue.stats()).to.deep.equal({ waiting: 3, running: 1 });
    for (let at = 0; at < 4; at += 1) await endOldest();
    expect(started).to.deep.equal(['running', 'small', 'a', 'b']);
    expect(queue.stats()).to.deep.equal({ waiting: 0, running: 0 });
  });

  for (const concurrency of [1, 2, 8]) {
    it(`starts the job of a client without running jobs, although another holds all ${concurrency} slots`, async () => {
      const { send, started } = stage(concurrency, 10_000, 1);
      for (let at = 0; at < 50; at += 1) send('greedy', `greedy.${at}`);
      await settled();
      expect(started).to.have.length(concurrency);
      send('modest', 'modest.0');
      send('modest', 'modest.1');
      await settled();
      expect(started.slice(concurrency)).to.deep.equal(['modest.0']);
    });
  }

  it('accepts a job that can start in the reserved slot although the queue is full', async () => {
    const { send, started, refused, queue } = stage(1, 0, 1);
    send('greedy', 'greedy.0');
    await settled();
    send('greedy', 'greedy.1');
    send('modest', 'modest.0');
    await settled();
    send('third', 'third.0');
    await settled();
    expect(started).to.deep.equal(['greedy.0', 'modest.0']);
    expect(refused).to.deep.equal(['greedy.1 QUEUE_FULL', 'third.0 QUEUE_FULL']);
    expect(queue.stats()).to.deep.equal({ waiting: 0, running: 2 });
  });

  it('shares the seconds of a slot, not the jobs, between a client with long jobs and one with short jobs', async () => {
    const { send, started, endOldest, time } = stage(1);
    for (let at = 0; at < 20; at += 1) {
      send('long', 'long');
      send('short', 'short');
    }
    await settled();
    for (let job = 0; job < 16; job += 1) {
      time.ms += started.at(-1) === 'long' ? 5000 : 500;
      await endOldest();
    }
    const long = started.filter((name) => name === 'long').length;
    expect(long).to.be.within(1, 3);
  });

  it('lets a client whose jobs took long wait for that time at most, although others have jobs', async () => {
    const { send, started, endOldest, time } = stage(1);
    send('long', 'first');
    await settled();
    time.ms += 5000;
    send('long', 'second');
    for (let at = 0; at < 20; at += 1) {
      send(`client${at}`, 'short');
      await endOldest();
      time.ms += 1000;
    }
    expect(started.indexOf('second')).to.be.within(2, 8);
  });

  it('treats all jobs without a client key as one client', async () => {
    const { queue, send, started, endOldest } = stage(1);
    send('client', 'running');
    for (const name of ['trial 1', 'trial 2'])
      void run(queue, async () => void started.push(name), { signal });
    send('client', 'next');
    await settled();
    await endOldest();
    await endOldest();
    expect(started).to.deep.equal(['running', 'trial 1', 'next', 'trial 2']);
  });
});

/** Prepares a job, and runs what its preparation returns. */
async function prepareAndRun(
  queue: ConversionQueue,
  prepare: () => Promise<() => Promise<string>>,
  owner: JobOwner,
): Promise<string> {
  using place = queue.enter(owner);
  const run = await place.prepare(prepare);
  using _slot = await place.start();
  return await run();
}

describe('conversion queue with preparations', () => {
  /** Returns a preparation that ends when `end` is called, and whether it has started. */
  function openPreparation(log: string[], name: string) {
    const { promise, resolve } = Promise.withResolvers<void>();
    const prepare = async () => {
      log.push(`prepare ${name}`);
      await promise;
      return async () => {
        log.push(`run ${name}`);
        return name;
      };
    };
    return { prepare, end: resolve };
  }

  it('counts jobs that wait for their preparation, and refuses one before that when it is full', async () => {
    const queue = new ConversionQueue({ concurrency: 1, queueLimit: 2, maxPreparations: { main: 1 } });
    const log: string[] = [];
    const open = ['a', 'b', 'c'].map((name) => openPreparation(log, name));
    const results = open.map(({ prepare }) => prepareAndRun(queue, prepare, { signal }));
    const refused = await prepareAndRun(queue, openPreparation(log, 'd').prepare, { signal }).catch(
      (error: ServiceError) => error.code,
    );
    await settled();
    expect(refused).to.equal('QUEUE_FULL');
    expect(queue.stats()).to.deep.equal({ waiting: 3, running: 0 });
    expect(log).to.deep.equal(['prepare a']);
    for (const { end } of open) end();
    expect(await Promise.all(results)).to.deep.equal(['a', 'b', 'c']);
    expect(queue.stats()).to.deep.equal({ waiting: 0, running: 0 });
  });

  it('frees the place of a job whose client disconnects during the preparation, and rejects after it', async () => {
    const queue = new ConversionQueue({ concurrency: 1, queueLimit: 1, maxPreparations: { main: 1 } });
    const log: string[] = [];
    const gone = new AbortController();
    const { prepare, end } = openPreparation(log, 'gone');
    const result = prepareAndRun(queue, prepare, { signal: gone.signal }).catch(
      (error) => void log.push(error.constructor.name),
    );
    await settled();
    gone.abort();
    await settled();
    expect(queue.stats()).to.deep.equal({ waiting: 0, running: 0 });
    expect(log).to.deep.equal(['prepare gone']);
    end();
    await result;
    expect(log).to.deep.equal(['prepare gone', ClientDisconnectedError.name]);
  });

  it('prepares a job of a client without one in a reserved slot, while another client has all others', async () => {
    const queue = new ConversionQueue({
      concurrency: 1,
      queueLimit: 9,
      maxPreparations: { main: 2 },
      reservedSlots: 1,
    });
    const log: string[] = [];
    const open = ['a', 'b', 'c', 'other'].map((name) => openPreparation(log, name));
    const results = open
      .slice(0, 3)
      .map(({ prepare }) => prepareAndRun(queue, prepare, { signal, client: 'first' }));
    await settled();
    results.push(prepareAndRun(queue, open[3]?.prepare ?? expect.fail(), { signal, client: 'other' }));
    await settled();
    expect(log).to.deep.equal(['prepare a', 'prepare b', 'prepare other']);
    for (const { end } of open) end();
    await Promise.all(results);
  });

  it('prepares the job of the client that used preparations least, whether it runs afterwards or not', async () => {
    let ms = 0;
    const queue = new ConversionQueue({
      concurrency: 1,
      queueLimit: 9,
      maxPreparations: { svg: 1 },
      now: () => ms,
    });
    const log: string[] = [];
    const add = (client: string, isWhole: boolean) => {
      const { prepare, end } = openPreparation(log, client);
      const owner = { signal, client, kind: 'svg' } as const;
      const result: Promise<unknown> = isWhole
        ? queue.prepare(prepare, owner)
        : prepareAndRun(queue, prepare, owner);
      return { result, end };
    };
    const jobs = [add('greedy', true), add('greedy', false), add('greedy', true), add('other', false)];
    for (const [at, order] of [0, 3, 1, 2].entries()) {
      await settled();
      ms += 300;
      expect(log.filter((entry) => entry.startsWith('prepare'))).to.have.length(at + 1);
      jobs[order]?.end();
      await jobs[order]?.result;
    }
    const prepared = log.filter((entry) => entry.startsWith('prepare'));
    expect(prepared).to.deep.equal(['prepare greedy', 'prepare other', 'prepare greedy', 'prepare greedy']);
    expect(log.filter((entry) => entry.startsWith('run'))).to.deep.equal(['run other', 'run greedy']);
    expect(queue.stats()).to.deep.equal({ waiting: 0, running: 0 });
  });

  it('prepares jobs of one kind while those of another kind have all their places', async () => {
    const queue = new ConversionQueue({
      concurrency: 1,
      queueLimit: 9,
      maxPreparations: { pdf: 1, main: 1 },
    });
    const log: string[] = [];
    const [first, second, other] = ['pdf', 'next pdf', 'image'].map((name) => openPreparation(log, name));
    const results = [first, second].map((one) =>
      queue.prepare(one?.prepare ?? expect.fail(), { signal, kind: 'pdf' }),
    );
    results.push(queue.prepare(other?.prepare ?? expect.fail(), { signal }));
    await settled();
    expect(log).to.have.members(['prepare pdf', 'prepare image']);
    for (const open of [first, second, other]) open?.end();
    await Promise.all(results);
  });

  it('rejects with the error of a preparation, and prepares the next job', async () => {
    const queue = new ConversionQueue({ concurrency: 1, queueLimit: 5, maxPreparations: { main: 1 } });
    const failing = prepareAndRun(queue, () => Promise.reject(new Error('broken')), { signal });
    const { prepare, end } = openPreparation([], 'next');
    end();
    const next = prepareAndRun(queue, prepare, { signal });
    expect(await failing.catch((error: Error) => error.message)).to.equal('broken');
    expect(await next).to.equal('next');
    expect(queue.stats()).to.deep.equal({ waiting: 0, running: 0 });
  });
});
