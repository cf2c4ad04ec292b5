import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { pino } from 'pino';
import { type ConversionEngine, createConversionEngine } from '../../src/conversion/engine.ts';
import type { DiskAccount } from '../../src/files/disk-space.ts';
import { testConfig } from '../helpers/service.ts';

const FILES = 30;

describe('the preparation of files', () => {
  let engine: ConversionEngine;
  before(async () => {
    engine = await createConversionEngine(testConfig(), pino({ level: 'silent' }));
  });
  after(() => engine.close());

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
});
