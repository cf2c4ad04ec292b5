// @unit
import { expect } from 'chai';
import { ConversionQueue, type JobOwner, type QueueOptions } from '../../../src/conversion/queue/queue.ts';
import type { ServiceError } from '../../../src/tables/errors.ts';

const { signal } = new AbortController();
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** Creates a queue whose jobs run until the test ends them one at a time. */
function stage(concurrency: number, queueLimit = 10_000, reservedSlots = 0) {
  const time = { ms: 0 };
  const queue = new ConversionQueue({ concurrency, queueLimit, reservedSlots, now: () => time.ms });
  const started: string[] = [];
  const idle: number[] = [];
  const ends: (() => void)[] = [];
  const refused: string[] = [];
  const run = async (name: string, owner: JobOwner): Promise<void> => {
    using place = queue.enter(owner);
    using slot = await place.start();
    started.push(name);
    idle.push(slot.idleSlots);
    await new Promise<void>((resolve) => ends.push(resolve));
  };
  const send = (client: string | undefined, name: string, more: Partial<JobOwner> = {}): void => {
    run(name, { signal, client, ...more }).catch((error: ServiceError) =>
      refused.push(`${name} ${error.code ?? error.name}`),
    );
  };
  return {
    queue,
    time,
    started,
    idle,
    refused,
    send,
    sendBatch(client: string, name: string, size = 20): void {
      const group = {};
      for (let at = 0; at < size; at += 1) send(client, `${name}.${at}`, { group });
    },
    async endOldest(): Promise<void> {
      ends.shift()?.();
      await settled();
    },
  };
}

describe('conversion queue', () => {
  it('runs as many jobs at once as it has slots, and the others in the order of arrival', async () => {
    const { send, started, endOldest } = stage(2);
    for (const name of ['a', 'b', 'c', 'd']) send('client', name);
    await settled();
    expect(started).to.deep.equal(['a', 'b']);
    await endOldest();
    expect(started).to.deep.equal(['a', 'b', 'c']);
    await endOldest();
    expect(started).to.deep.equal(['a', 'b', 'c', 'd']);
  });

  it('tells a job how many slots are idle when it starts, and none while others wait', async () => {
    const { send, idle, endOldest } = stage(3);
    send('client', 'alone');
    await settled();
    for (let at = 0; at < 4; at += 1) send('client', 'other');
    for (let at = 0; at < 5; at += 1) await endOldest();
    send('client', 'last');
    await settled();
    expect(idle).to.deep.equal([2, 0, 0, 0, 0, 2]);
  });

  it('rejects a job while the queue is full, and accepts the next one afterwards', async () => {
    const { send, started, refused, endOldest } = stage(1, 1);
    for (const name of ['running', 'waiting', 'refused']) send('client', name);
    await settled();
    expect(refused).to.deep.equal(['refused QUEUE_FULL']);
    await endOldest();
    send('client', 'next');
    await endOldest();
    expect(started).to.deep.equal(['running', 'waiting', 'next']);
  });

  it('drops a waiting job immediately when its client disconnects, and frees its place', async () => {
    const { send, started, refused, endOldest } = stage(1, 1);
    const client = new AbortController();
    send('client', 'running');
    send('client', 'dropped', { signal: client.signal });
    client.abort();
    await settled();
    expect(refused).to.deep.equal(['dropped ClientDisconnectedError']);
    send('client', 'gone', { signal: AbortSignal.abort() });
    send('client', 'next');
    await endOldest();
    expect(started).to.deep.equal(['running', 'next']);
    expect(refused).to.deep.equal(['dropped ClientDisconnectedError', 'gone ClientDisconnectedError']);
  });

  for (const [concurrency, batches] of [
    [1, 1],
    [2, 2],
    [2, 3],
    [4, 4],
  ] as const) {
    it(`starts a single job next, with ${batches} batches of twenty on ${concurrency} slots`, async () => {
      const { send, sendBatch, started, endOldest } = stage(concurrency);
      for (let at = 0; at < batches; at += 1) sendBatch('client', `batch${at}`);
      await settled();
      // Add the single job after every batch has been served once.
      for (let at = 0; at < concurrency; at += 1) await endOldest();
      const before = started.length;
      send('client', 'single');
      for (let at = 0; at < 20; at += 1) await endOldest();
      expect(started.indexOf('single') - before).to.be.within(0, Math.max(0, batches - concurrency));
    });
  }

  it('alternates between two batches, and keeps the order within each', async () => {
    const { sendBatch, started, endOldest } = stage(2);
    sendBatch('client', 'a', 3);
    await settled();
    sendBatch('client', 'b', 3);
    for (let at = 0; at < 5; at += 1) await endOldest();
    expect(started).to.deep.equal(['a.0', 'a.1', 'b.0', 'a.2', 'b.1', 'b.2']);
  });
});

describe('conversion queue with several clients', () => {
  for (const [concurrency, batches] of [
    [1, 10],
    [2, 10],
    [8, 10],
  ] as const) {
    it(`starts the one job of a client next, before ${batches} batches of another, on ${concurrency} slots`, async () => {
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
    const { send, started, endOldest } = stage(1);
    send('client', 'running');
    for (const name of ['trial 1', 'trial 2']) send(undefined, name);
    send('client', 'next');
    await settled();
    for (let at = 0; at < 3; at += 1) await endOldest();
    expect(started).to.deep.equal(['running', 'trial 1', 'next', 'trial 2']);
  });
});

/** Creates a queue of jobs whose preparations last until the test ends them. */
function preparing(options: Partial<QueueOptions>) {
  const queue = new ConversionQueue({ concurrency: 1, queueLimit: 9, ...options });
  const log: string[] = [];
  const ends: (() => void)[] = [];
  /** Returns a preparation that is logged. */
  const open = (name: string) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    ends.push(resolve);
    return () => {
      log.push(`prepare ${name}`);
      return promise;
    };
  };
  return {
    queue,
    log,
    ends,
    async send(name: string, owner: Partial<JobOwner> = {}): Promise<string> {
      const prepare = open(name);
      using place = queue.enter({ signal, ...owner });
      await place.prepare(prepare);
      using _slot = await place.start();
      log.push(`run ${name}`);
      return name;
    },
    /** Only prepares a job. */
    sendWhole: (name: string, owner: Partial<JobOwner> = {}) =>
      queue.prepare(open(name), { signal, ...owner }),
    endAll(): void {
      for (const end of ends) end();
    },
  };
}

describe('conversion queue with preparations', () => {
  it('counts jobs that wait for their preparation, and refuses one before that when it is full', async () => {
    const { queue, log, send, endAll } = preparing({ queueLimit: 2, maxPreparations: { main: 1 } });
    const results = ['a', 'b', 'c'].map((name) => send(name));
    expect(await send('d').catch((error: ServiceError) => error.code)).to.equal('QUEUE_FULL');
    await settled();
    expect(queue.stats()).to.deep.equal({ waiting: 3, running: 0 });
    expect(log).to.deep.equal(['prepare a']);
    endAll();
    expect(await Promise.all(results)).to.deep.equal(['a', 'b', 'c']);
    expect(queue.stats()).to.deep.equal({ waiting: 0, running: 0 });
  });

  it('frees the place of a job whose client disconnects during the preparation, and rejects after it', async () => {
    const { queue, log, send, endAll } = preparing({ queueLimit: 1, maxPreparations: { main: 1 } });
    const gone = new AbortController();
    const result = send('gone', { signal: gone.signal }).catch((error: Error) => void log.push(error.name));
    await settled();
    gone.abort();
    await settled();
    expect(queue.stats()).to.deep.equal({ waiting: 0, running: 0 });
    expect(log).to.deep.equal(['prepare gone']);
    endAll();
    await result;
    expect(log).to.deep.equal(['prepare gone', 'ClientDisconnectedError']);
  });

  it('prepares a job of a client without one in a reserved slot, while another client has all others', async () => {
    const { log, send, endAll } = preparing({ maxPreparations: { main: 2 }, reservedSlots: 1 });
    const results = ['a', 'b', 'c'].map((name) => send(name, { client: 'first' }));
    await settled();
    results.push(send('other', { client: 'other' }));
    await settled();
    expect(log).to.deep.equal(['prepare a', 'prepare b', 'prepare other']);
    endAll();
    await Promise.all(results);
  });

  it('prepares the job of the client that used preparations least, whether it runs afterwards or not', async () => {
    let ms = 0;
    const { queue, log, send, sendWhole, ends } = preparing({ maxPreparations: { svg: 1 }, now: () => ms });
    const prepared = () => log.filter((entry) => entry.startsWith('prepare'));
    const [greedy, other] = (['greedy', 'other'] as const).map((client) => ({
      client,
      kind: 'svg' as const,
    }));
    const results: Promise<unknown>[] = [
      sendWhole('greedy', greedy),
      send('greedy', greedy),
      sendWhole('greedy', greedy),
      send('other', other),
    ];
    for (const [at, order] of [0, 3, 1, 2].entries()) {
      await settled();
      ms += 300;
      expect(prepared()).to.have.length(at + 1);
      ends[order]?.();
      await results[order];
    }
    const order = ['prepare greedy', 'prepare other', 'prepare greedy', 'prepare greedy'];
    expect(prepared()).to.deep.equal(order);
    expect(log.filter((entry) => entry.startsWith('run'))).to.deep.equal(['run other', 'run greedy']);
    expect(queue.stats()).to.deep.equal({ waiting: 0, running: 0 });
  });

  it('prepares jobs of one kind while those of another kind have all their places', async () => {
    const { log, sendWhole, endAll } = preparing({ maxPreparations: { pdf: 1, main: 1 } });
    const results = ['pdf', 'next pdf'].map((name) => sendWhole(name, { kind: 'pdf' }));
    results.push(sendWhole('image'));
    await settled();
    expect(log).to.have.members(['prepare pdf', 'prepare image']);
    endAll();
    await Promise.all(results);
  });

  it('rejects with the error of a preparation, and prepares the next job', async () => {
    const { queue, send, endAll } = preparing({ queueLimit: 5, maxPreparations: { main: 1 } });
    const failing = queue.prepare(() => Promise.reject(new Error('broken')), { signal });
    const next = send('next');
    endAll();
    expect(await failing.catch((error: Error) => error.message)).to.equal('broken');
    expect(await next).to.equal('next');
    expect(queue.stats()).to.deep.equal({ waiting: 0, running: 0 });
  });
});
