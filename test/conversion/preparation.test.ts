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

  it('has the unpacked text of at most four SVG files in memory', async () => {
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
        const options = { format: 'png', quality: 80, stripMetadata: true } as const;
        return engine.convert(source, options, new AbortController().signal);
      });
    await Promise.all(Array.from({ length: FILES }, (_, at) => convert(String(at))));
    expect(most).to.be.within(1, 4);
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
        const options = { format: 'png', quality: 80, stripMetadata: true } as const;
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
      await eventually(() => refused === 4 && prepared === 4);
      expect(small.stats()).to.deep.include({ waiting: 6, running: 0 });
      gate.resolve();
      await Promise.all(results);
      expect(prepared).to.equal(6);
    } finally {
      await small.close();
    }
  });

  it('starts with a file of another client before more files of the same client', async () => {
    const packed = gzipSync('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>');
    const started: string[] = [];
    const gates: (() => void)[] = [];
    let queued = 0;
    const convert = (client: string): Promise<unknown> =>
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
        const options = { format: 'png', quality: 80, stripMetadata: true } as const;
        const result = engine.convert(source, options, new AbortController().signal);
        queued += 1;
        return result;
      });
    const files = ['a', 'a', 'a', 'a', 'a', 'a'].map(convert);
    await eventually(() => started.length === 4);
    files.push(convert('b'));
    await eventually(() => queued === 7);
    gates.shift()?.();
    await eventually(() => started.length === 5);
    expect(started).to.deep.equal(['a', 'a', 'a', 'a', 'b']);
    for (let open = 1; open < 7; open += 1) {
      await eventually(() => gates.length > 0);
      gates.shift()?.();
    }
    await Promise.all(files);
  });
});
