// @unit
import { expect } from 'chai';
import { type DiskAccount, DiskSpace, MIN_FREE_BYTES } from '../../src/files/disk-space.ts';
import type { ServiceError } from '../../src/tables/errors.ts';

const MIB = 1024 ** 2;

/** Creates the accounting of a disk of this size plus the reserve, which stored data fills. */
function disk(mebibytes: number) {
  const space = new DiskSpace(async () => mebibytes * MIB + MIN_FREE_BYTES - space.stored());
  const open = (client: string | undefined, size = 0): Promise<DiskAccount> => space.open(client, size * MIB);
  /** Opens a request that has received `size` MiB. */
  const openStored = async (client: string, size: number): Promise<DiskAccount> => {
    const request = await open(client, size);
    await request.store(size * MIB);
    return request;
  };
  /** Opens a request that is sending its response, and that closes when it is cut off. */
  const openAnswer = async (client: string, size: number, bytesPerSecond: number, cut: string[]) => {
    const request = await openStored(client, size);
    request.registerResponse({
      bytesPerSecond: () => bytesPerSecond,
      cutOff() {
        cut.push(`${client} ${bytesPerSecond}`);
        setImmediate(request.close);
      },
    });
  };
  return { space, open, openStored, openAnswer };
}

const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(() => 'OK').catch(({ code }: ServiceError) => code);

describe('disk space accounting', () => {
  it('counts announced uploads, so that concurrent requests do not rely on the same free bytes', async () => {
    const { open, space } = disk(100);
    const requests = await Promise.all([open(undefined, 40), open(undefined, 40)]);
    expect(space.held()).to.equal(80 * MIB);
    expect(await codeOf(open(undefined, 40))).to.equal('DISK_FULL');
    requests[0]?.close();
    expect(await codeOf(open(undefined, 40))).to.equal('OK');
  });

  it('counts bytes once, whether they were announced or not', async () => {
    const { open, space } = disk(100);
    const request = await open('a', 10);
    await request.store(6 * MIB);
    expect([space.stored(), space.held()]).to.deep.equal([6 * MIB, 10 * MIB]);
    await request.store(10 * MIB);
    expect([space.stored(), space.held()]).to.deep.equal([16 * MIB, 16 * MIB]);
    request.release(6 * MIB);
    request.releaseUnsent();
    expect([space.stored(), space.held()]).to.deep.equal([10 * MIB, 10 * MIB]);
    request.close();
    expect(space.held()).to.equal(0);
  });

  it('releases announced bytes that were not sent', async () => {
    const { open, space } = disk(100);
    const request = await open('a', 40);
    await request.store(MIB);
    request.releaseUnsent();
    expect(space.held()).to.equal(MIB);
  });

  it('throws DISK_FULL when unpacked files exceed the announced size and the free space', async () => {
    const { open } = disk(100);
    const request = await open('a', 1);
    let unpacked = 0;
    while ((await codeOf(request.store(MIB))) === 'OK') unpacked += 1;
    expect(unpacked).to.be.within(50, 55); // half of the disk
  });

  it('waits for pending results, since most are much smaller than their reservation', async () => {
    const { open, space } = disk(100);
    const request = await open('a', 0);
    const first = await request.reserve(30 * MIB);
    const second = request.reserve(30 * MIB);
    const third = request.reserve(30 * MIB);
    first(MIB);
    (await second)(MIB);
    (await third)(MIB);
    expect([space.stored(), space.held()]).to.deep.equal([3 * MIB, 3 * MIB]);
  });

  it('throws DISK_FULL when the pending results have settled and left too little space', async () => {
    const { open } = disk(100);
    const request = await open('a', 0);
    const first = await request.reserve(46 * MIB);
    const second = codeOf(request.reserve(30 * MIB));
    const third = codeOf(request.reserve(30 * MIB));
    first(46 * MIB);
    expect(await Promise.all([second, third])).to.deep.equal(['DISK_FULL', 'DISK_FULL']);
  });

  it('reserves at most half of the disk for one result, so that a small disk is usable', async () => {
    const { open, space } = disk(100);
    const settle = await (await open('a', 1)).reserve(300 * MIB);
    expect(space.held()).to.be.within(40 * MIB, 54 * MIB);
    settle(0);
  });

  it('keeps half of the disk free when a single client fills it', async () => {
    const { openStored, open } = disk(100);
    let opened = 0;
    while ((await codeOf(openStored('greedy', 5))) === 'OK') opened += 1;
    expect(5 * opened).to.be.within(45, 54);
    expect(await codeOf(open('modest', 20))).to.equal('OK');
  });

  it('lets a client exceed its share as long as the share of another one stays free', async () => {
    const { openStored, open } = disk(200);
    for (const client of ['a', 'b', 'c']) await openStored(client, 5);
    // With four clients, a share is a fifth.
    expect(await codeOf(open('d', 60))).to.equal('OK');
    expect(await codeOf(open('d', 90))).to.equal('DISK_FULL');
  });

  it('cuts off only as many slow responses of clients over their share as another client needs', async () => {
    const { openStored, openAnswer, open } = disk(100);
    const cut: string[] = [];
    await openAnswer('slow', 20, 30_000, cut);
    await openAnswer('slow', 20, 20_000, cut);
    await openAnswer('fast', 20, 9_000_000, cut);
    await openAnswer('small', 2, 10, cut);
    await openStored('busy', 16);
    await openStored('busy too', 14);
    // 8 MiB are free. A share is about 15 MiB.
    expect(await codeOf(open('newcomer', 10))).to.equal('OK');
    expect(cut).to.deep.equal(['slow 20000']);
    expect(await codeOf(open('newcomer', 5))).to.equal('OK');
    expect(cut).to.deep.equal(['slow 20000']);
  });

  it('cuts off no response for a client that exceeds its share', async () => {
    const { openAnswer, open, openStored } = disk(100);
    const cut: string[] = [];
    await openAnswer('slow', 50, 10, cut);
    await openStored('greedy', 30);
    expect(await codeOf(open('greedy', 25))).to.equal('DISK_FULL');
    expect(cut).to.deep.equal([]);
  });

  for (const [what, clients] of [
    ['one address', 1],
    ['eight addresses', 8],
  ] as const) {
    it(`always has space for another client when slow readers from ${what} hold the rest`, async () => {
      const { openAnswer, open } = disk(1024);
      const cut: string[] = [];
      for (let at = 0; at < 16; at += 1)
        await codeOf(openAnswer(`slow ${at % clients}`, 150, 30_000 + at, cut));
      for (let request = 0; request < 3; request += 1) {
        const newcomer = await open('newcomer', 9);
        const settle = await newcomer.reserve(50 * MIB);
        settle(5 * MIB);
      }
    });
  }

  it('accepts every request when the free space is unknown', async () => {
    const space = new DiskSpace(async () => undefined);
    expect(await codeOf(space.open('a', 10 ** 15))).to.equal('OK');
  });
});
