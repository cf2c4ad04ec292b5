// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import type { DiskAccount } from '../../src/files/disk-space.ts';
import { startEngine, useEngine } from '../helpers/service.ts';
import { eventually } from '../helpers/util.ts';

const FILES = 30;

describe('the preparation of files', () => {
  const engine = useEngine();

  it('has the unpacked text of one SVG file of a client in memory', async () => {
    let [unpacked, most] = [0, 0];
    const packed = gzipSync(
      `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">${' '.repeat(100_000)}</svg>`,
    );
    const convert = (name: string): Promise<unknown> =>
      engine.workspaces.use({}, async (workspace) => {
        const disk: DiskAccount = {
          ...workspace.disk,
          // Is called between the unpacking and the writing of the text.
          async store() {
            unpacked += 1;
            most = Math.max(most, unpacked);
            for (let turn = 0; turn < 1000 && unpacked < FILES; turn += 1) await setImmediate();
            unpacked -= 1;
          },
        };
        const folder = await workspace.folder(name);
        await writeFile(join(folder, 'in'), packed);
        const source = { folder, disk, type: 'svg', label: 'The file' } as const;
        const options = { format: 'png', quality: 80, metadata: 'none' } as const;
        return engine.convert(source, options, new AbortController().signal);
      });
    await Promise.all(Array.from({ length: FILES }, (_, at) => convert(String(at))));
    expect(most).to.equal(1);
  });

  it('counts in the queue, and is refused before it starts when the queue is full', async () => {
    const small = await startEngine({ CONCURRENCY: '1', QUEUE_LIMIT: '5' });
    const packed = gzipSync('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>');
    let prepared = 0;
    const gate = Promise.withResolvers<void>();
    const convert = (): Promise<unknown> =>
      small.workspaces.use({}, async (workspace) => {
        const disk: DiskAccount = {
          ...workspace.disk,
          async store() {
            prepared += 1;
            await gate.promise;
          },
        };
        const folder = await workspace.folder('file');
        await writeFile(join(folder, 'in'), packed);
        const source = { folder, disk, type: 'svg', label: 'The file' } as const;
        const options = { format: 'png', quality: 80, metadata: 'none' } as const;
        return small.convert(source, options, new AbortController().signal);
      });
    try {
      let refused = 0;
      const results = Array.from({ length: 10 }, () =>
        convert().catch((error: { code: string }) => {
          expect(error.code).to.equal('QUEUE_FULL');
          refused += 1;
        }),
      );
      await eventually(() => refused === 4 && prepared === 1);
      expect(small.stats()).to.deep.include({ waiting: 6, running: 0 });
      gate.resolve();
      await Promise.all(results);
      expect(prepared).to.equal(6);
    } finally {
      await small.close();
    }
  });

  it('has one SVG of a client at a time, and starts with that of another client at once', async () => {
    const packed = gzipSync('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>');
    const started: string[] = [];
    const gates: (() => void)[] = [];
    let queued = 0;
    const send = (client: string, work: 'convert' | 'identify'): Promise<unknown> =>
      engine.workspaces.use({ client }, async (workspace) => {
        const disk: DiskAccount = {
          ...workspace.disk,
          async store() {
            started.push(client);
            await new Promise<void>((resolve) => void gates.push(resolve));
          },
        };
        const folder = await workspace.folder('file');
        await writeFile(join(folder, 'in'), packed);
        const source = { folder, disk, type: 'svg', label: 'The file', client } as const;
        const options = { format: 'png', quality: 80, metadata: 'none' } as const;
        const { signal } = new AbortController();
        const result =
          work === 'convert'
            ? engine.convert(source, options, signal)
            : engine.identify(source, undefined, signal);
        queued += 1;
        return result;
      });
    const kinds = ['convert', 'identify'] as const;
    const files = [...kinds, ...kinds, ...kinds].map((work) => send('a', work));
    await eventually(() => queued === 6 && started.length > 0);
    files.push(...kinds.map((work) => send('b', work)));
    await eventually(() => queued === 8 && started.includes('b'));
    expect(started).to.deep.equal(['a', 'b']);
    for (let open = 0; open < 8; open += 1) {
      await eventually(() => gates.length > 0);
      gates.shift()?.();
    }
    await Promise.all(files);
  });
});
