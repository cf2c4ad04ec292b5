import { Dir } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { mock } from 'node:test';
import { expect } from 'chai';
import { checkResult } from '../../../src/conversion/output/result.ts';
import { createJob } from '../../../src/conversion/plan/job.ts';
import { makeTempDir } from '../../helpers/hooks.ts';

describe('the result of a tool', () => {
  const job = createJob({ type: 'png' }, { format: 'png', quality: 80, metadata: 'none' }, { magick: 7 });
  const SIGNATURE = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');

  /** Returns the verified result in a folder with these files. */
  async function verify(names: readonly string[]) {
    const folder = join(await makeTempDir('result'), 'job');
    await mkdir(folder);
    for (const name of names) await writeFile(join(folder, name), SIGNATURE);
    return checkResult({ folder, type: 'png', label: 'The file' }, job, '');
  }
  const many = Array.from({ length: 1000 }, (_, index) => `frame-${index}`);

  it('is found among any number of files, of which few names are read in the main thread', async () => {
    const readSync = mock.method(Dir.prototype, 'readSync');
    try {
      expect((await verify([...many, 'image.png'])).bytes).to.equal(SIGNATURE.length);
      expect(readSync.mock.callCount()).to.be.within(1, 64);
    } finally {
      readSync.mock.restore();
    }
  });

  it('is rejected with a cause that names up to three files, if the tool has written none or several', async () => {
    for (const [names, found] of [
      [many, /^expected image\.png, found: no file$/],
      [['image.png', 'image-1.png'], /^expected image\.png, found: image(?:-1)?\.png, image(?:-1)?\.png$/],
      [
        many.map((name) => `image-${name}`),
        /^expected image\.png, found: image[^ ]+, image[^ ]+, image[^ ]+$/,
      ],
    ] as const) {
      const error = await verify(names).then(
        () => undefined,
        (reason: Error) => reason,
      );
      expect(error).to.include({ code: 'CORRUPT_IMAGE' });
      expect((error?.cause as Error | undefined)?.message).to.match(found);
    }
  });
});
