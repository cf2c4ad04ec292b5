// @full
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { edgeCasePath, fixturePath } from '../helpers/client.ts';
import { runNode } from '../helpers/command-line.ts';
import { makeTempDir } from '../helpers/hooks.ts';

const SCRIPT = new URL('../../scripts/fuzz.ts', import.meta.url).pathname;

describe('npm run fuzz', () => {
  it('checks the requested number of damaged copies per type, and counts the outcomes', async () => {
    const folder = await makeTempDir('fuzz');
    await copyFile(fixturePath('scene.png'), join(folder, 'scene.png'));
    await copyFile(edgeCasePath('rle8.bmp'), join(folder, 'rle8.bmp'));
    await copyFile(edgeCasePath('top-down.bmp'), join(folder, 'top-down.bmp'));
    const { status, stdout } = await runNode([
      SCRIPT,
      folder,
      '--count',
      '4',
      '--save',
      join(folder, 'found'),
    ]);
    const counts = (type: string): number[] => {
      const line = stdout.split('\n').find((one) => one.startsWith(`${type}: `)) ?? '';
      return [...line.matchAll(/(?:converted|rejected|lost|failed) (\d+)/g)].map(([, number]) =>
        Number(number),
      );
    };
    for (const type of ['png', 'bmp']) {
      expect(counts(type), stdout).to.have.length(4);
      expect(counts(type).reduce((sum, count) => sum + count, 0)).to.equal(4);
    }
    expect(stdout).to.match(/^png: .*; from 1 files, 1 with a known image$/m);
    expect(stdout).to.match(/^bmp: .*; from 2 files,/m);
    expect(stdout).to.match(/^ImageMagick \S+: 8 copies, 0 findings, /m);
    expect(status).to.equal(0);
  });
});
