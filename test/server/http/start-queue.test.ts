// @unit
import { mock } from 'node:test';
import { expect } from 'chai';
import { StartQueue } from '../../../src/server/http/start-queue.ts';

describe('the queue of request starts', () => {
  let now = 0;
  let queue: StartQueue;
  let started: string[] = [];
  const add = (client: string, name: string, ms: number): void =>
    queue.add(client, () => {
      started.push(name);
      now += ms;
    });
  const nextTurn = () => new Promise(setImmediate);
  const { timers } = mock;
  beforeEach(() => {
    timers.enable({ apis: ['setInterval'] });
    now = 0;
    started = [];
    queue = new StartQueue(() => now);
  });
  afterEach(() => timers.reset());

  it('starts a request at once while the turn of the event loop has lasted less than 5 ms', async () => {
    add('a', 'a1', 4);
    expect(started).to.deep.equal(['a1']);
    await Promise.resolve();
    add('a', 'a2', 1);
    expect(started).to.deep.equal(['a1', 'a2']);
  });

  it('starts no request for the rest of a turn that has lasted 5 ms', async () => {
    add('a', 'a1', 5);
    for (const name of ['a2', 'a3', 'a4']) add('a', name, 3);
    await Promise.resolve();
    expect(started).to.deep.equal(['a1']);
    await nextTurn();
    await Promise.resolve();
    expect(started).to.deep.equal(['a1', 'a2', 'a3']);
  });

  it('starts one request of each client in turn, however many one client has', async () => {
    add('a', 'a1', 5);
    for (const name of ['a2', 'a3', 'a4']) add('a', name, 0);
    for (const name of ['b1', 'b2']) add('b', name, 0);
    add('c', 'c1', 0);
    await nextTurn();
    await nextTurn();
    expect(started).to.deep.equal(['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4']);
  });

  it('counts the time of handlers that continue after their start', async () => {
    queue.add('a', () => {
      started.push('a1');
      void Promise.resolve().then(() => {
        now += 5;
      });
    });
    for (const name of ['a2', 'a3']) add('a', name, 0);
    await Promise.resolve();
    await Promise.resolve();
    expect(started).to.deep.equal(['a1']);
    await nextTurn();
    await nextTurn();
    expect(started).to.deep.equal(['a1', 'a2', 'a3']);
  });

  it('starts one request in 20 ms of a client that is refused, until it has not been for a second', async () => {
    queue.slowDown('a');
    for (const name of ['a1', 'a2', 'a3']) add('a', name, 0);
    add('b', 'b1', 0);
    expect(started).to.deep.equal(['b1']);
    await nextTurn();
    timers.tick(20);
    expect(started).to.deep.equal(['b1', 'a1']);
    await nextTurn();
    timers.tick(40);
    await nextTurn();
    expect(started).to.deep.equal(['b1', 'a1', 'a2', 'a3']);
    now += 1000;
    timers.tick(20);
    for (const name of ['a4', 'a5']) add('a', name, 0);
    await nextTurn();
    expect(started.slice(4)).to.deep.equal(['a4', 'a5']);
  });

  it('forgets requests of a client that is slowed down, when their connections close', async () => {
    queue.slowDown('a');
    const closed = (): void => void started.push('closed');
    queue.add('a', closed);
    add('a', 'a1', 0);
    queue.forget('a', closed);
    timers.tick(20);
    await nextTurn();
    expect(started).to.deep.equal(['a1']);
  });

  it('slows down the requests that wait, too', async () => {
    add('a', 'a1', 5);
    for (const name of ['a2', 'a3']) add('a', name, 0);
    queue.slowDown('a');
    await nextTurn();
    await nextTurn();
    expect(started).to.deep.equal(['a1']);
    timers.tick(20);
    await nextTurn();
    expect(started).to.deep.equal(['a1', 'a2']);
  });
});
