// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import type { ConversionEngine } from '../../src/conversion/engine.ts';
import type { DiskAccount } from '../../src/files/disk-space.ts';
import { startEngine, useEngine } from '../helpers/service.ts';
import { eventually } from '../helpers/util.ts';

const FILES = 30;
const OPTIONS = { format: 'png', quality: 80, metadata: 'none' } as const;

/** A packed drawing, followed by spaces. */
const drawing = (spaces = 0): Buffer =>
  gzipSync(`<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">${' '.repeat(spaces)}</svg>`);

/** Converts or identifies a packed SVG. `store` is called before the unpacked text is written. */
const prepare = (
  engine: ConversionEngine,
  packed: Buffer,
  store: DiskAccount['store'],
  { client, work = 'convert' }: { readonly client?: string; readonly work?: 'convert' | 'identify' } = {},
): Promise<unknown> =>
  engine.workspaces.use({}, async (workspace) => {
    const folder = await workspace.folder('file');
    await writeFile(join(folder, 'in'), packed);
    const source = { folder, disk: { ...workspace.disk, store }, type: 'svg', label: 'The file' } as const;
    const owned = { ...source, ...(client !== undefined && { client }) };
    const { signal } = new AbortController();
    if (work === 'identify') return engine.identify(owned, {}, signal);
    return engine.convert(owned, OPTIONS, signal);
  });

describe('the preparation of files', () => {
  const engine = useEngine();

  it('has the unpacked text of one SVG file of a client in memory', async () => {
    let [unpacked, most] = [0, 0];
    const store = async () => {
      unpacked += 1;
      most = Math.max(most, unpacked);
      for (let turn = 0; turn < 1000 && unpacked < FILES; turn += 1) await setImmediate();
      unpacked -= 1;
    };
    const packed = drawing(100_000);
    await Promise.all(Array.from({ length: FILES }, () => prepare(engine, packed, store)));
    expect(most).to.equal(1);
  });

  it('counts in the queue, and is refused before it starts when the queue is full', async () => {
    await using small = await startEngine({ CONCURRENCY: '1', QUEUE_LIMIT: '5' });
    let [prepared, refused] = [0, 0];
    const gate = Promise.withResolvers<void>();
    const store = async () => {
      prepared += 1;
      await gate.promise;
    };
    const results = Array.from({ length: 10 }, () =>
      prepare(small, drawing(), store).catch((error: { code: string }) => {
        expect(error.code).to.equal('QUEUE_FULL');
        refused += 1;
      }),
    );
    await eventually(() => refused === 4 && prepared === 1);
    expect(small.stats()).to.deep.include({ waiting: 6, running: 0 });
    gate.resolve();
    await Promise.all(results);
    expect(prepared).to.equal(6);
  });

  it('has one SVG of a client at a time, and starts with that of another client at once', async () => {
    const started: string[] = [];
    const gates: (() => void)[] = [];
    const send = (client: string, work: 'convert' | 'identify'): Promise<unknown> => {
      const store = async () => {
        started.push(client);
        await new Promise<void>((resolve) => void gates.push(resolve));
      };
      return prepare(engine, drawing(), store, { client, work });
    };
    // The first file of each client is a conversion, which keeps its place while it is prepared.
    const files = [send('a', 'convert')];
    await eventually(() => started.length === 1);
    const others = ['identify', 'convert', 'identify', 'convert', 'identify'] as const;
    files.push(...others.map((work) => send('a', work)));
    await eventually(() => engine.stats().waiting === 6);
    files.push(send('b', 'convert'));
    await eventually(() => started.includes('b'));
    files.push(send('b', 'identify'));
    await eventually(() => engine.stats().waiting === 8);
    expect(started).to.deep.equal(['a', 'b']);
    for (let open = 0; open < 8; open += 1) {
      await eventually(() => gates.length > 0);
      gates.shift()?.();
    }
    await Promise.all(files);
  });
});
