import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { createDiskSpace, type DiskAccount } from '../../src/files/disk-space.ts';
import { createDeflations, packResults } from '../../src/server/archive-entries.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { eventually } from '../helpers/util.ts';

const CONTENT = Buffer.alloc(100_000, 'imagemill ');

describe('packResults', () => {
  /** Packs a batch of BMP files. Each deflation waits until `end` is called. */
  async function pack(client: string, deflations = createDeflations(), deflateTimeoutMs = 60_000) {
    const folder = await makeTempDir('entries');
    const paths = ['a', 'b'].map((name) => join(folder, name));
    for (const path of paths) await writeFile(path, CONTENT);
    const gates: (() => void)[] = [];
    const account = await createDiskSpace(async () => undefined).open(undefined, 0);
    const disk: DiskAccount = {
      ...account,
      async reserve(bytes) {
        await new Promise<void>((resolve) => void gates.push(resolve));
        return account.reserve(bytes);
      },
    };
    const results = paths.map((path, index) => ({
      index,
      name: path,
      outcome: {
        converted: {
          path,
          format: 'bmp' as const,
          bytes: CONTENT.length,
          key: '',
          queuedMs: 0,
          preparedMs: 0,
          convertedMs: 0,
          notes: [],
        },
      },
    }));
    const { signal } = new AbortController();
    const entries = packResults(results, { disk, signal, deflations, client, deflateTimeoutMs });
    return { entries, gates, folder };
  }

  it('deflates one file of each client at a time, and two in all', async () => {
    const deflations = createDeflations();
    const batches = [
      await pack('a', deflations),
      await pack('a', deflations),
      await pack('b', deflations),
      await pack('c', deflations),
    ];
    const open = () => batches.map(({ gates }) => gates.length);
    await eventually(() => open().reduce((sum, count) => sum + count) === 2);
    expect(deflations.stats()).to.deep.equal({ waiting: 2, running: 2 });
    expect(open()).to.deep.equal([1, 0, 1, 0]);
    let packed = 0;
    const count = () => {
      packed += 1;
    };
    for (const { entries } of batches) void entries.then(count);
    await eventually(() => {
      for (const { gates } of batches) gates.shift()?.();
      return packed === batches.length;
    });
    for (const { entries } of batches)
      expect((await entries).map(({ isDeflated }) => isDeflated)).to.deep.equal([true, true]);
  });

  it('stores the files uncompressed that cannot be deflated in time, and leaves no other files', async () => {
    const { entries, gates, folder } = await pack('a', createDeflations(), 1);
    await eventually(() => {
      gates.shift()?.();
      return gates.length === 0;
    });
    const release = setInterval(() => gates.shift()?.(), 1);
    const packed = await entries;
    clearInterval(release);
    expect(packed.map(({ isDeflated }) => isDeflated).at(-1)).to.equal(false);
    const kept = packed.map(({ stored }) => ('path' in stored ? stored.path : ''));
    expect((await readdir(folder)).map((name) => join(folder, name))).to.have.members(kept);
  });
});
