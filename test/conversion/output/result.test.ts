import { spawnSync } from 'node:child_process';
import { Dir } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { mock } from 'node:test';
import { expect } from 'chai';
import { checkResult } from '../../../src/conversion/output/result.ts';
import { createJob } from '../../../src/conversion/plan/job.ts';
import { makeTempDir } from '../../helpers/hooks.ts';
import { requires } from '../../helpers/skips.ts';
import { failure } from '../../helpers/util.ts';

const TOOL_ERRORS = new URL('../../../src/conversion/output/tool-errors.ts', import.meta.url).href;
const ERRORS = new URL('../../../src/tables/errors.ts', import.meta.url).href;

describe('the result of a tool', () => {
  const job = createJob({ type: 'png' }, { format: 'png', quality: 80, metadata: 'none' }, { magick: 7 });
  const PNG = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');

  /** Returns the verified result in a folder with these files. */
  async function verify(names: readonly string[], bytes = PNG, written: typeof job = job) {
    const folder = join(await makeTempDir('result'), 'job');
    await mkdir(folder);
    for (const name of names) await writeFile(join(folder, name), bytes);
    return checkResult({ folder, type: 'png', label: 'The file' }, written, '');
  }
  const many = Array.from({ length: 1000 }, (_, index) => `frame-${index}`);

  it('is found among any number of files, of which few names are read in the main thread', async () => {
    const readSync = mock.method(Dir.prototype, 'readSync');
    try {
      expect((await verify([...many, 'image.png'])).bytes).to.equal(PNG.length);
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
      const error = await failure(verify(names));
      expect(error).to.include({ code: 'CORRUPT_IMAGE' });
      expect((error.cause as Error).message).to.match(found);
    }
  });

  it('is rejected without its end, which ImageMagick 7 does not write to a full disk, and reports success', async () => {
    const jpeg = Buffer.from('\xff\xd8\xff…\xff\xd9', 'latin1');
    const options = { format: 'jpg', quality: 80, metadata: 'none' } as const;
    const toJpeg = createJob({ type: 'png' }, options, { magick: 7 });
    expect((await verify(['image.jpg'], jpeg, toJpeg)).bytes).to.equal(jpeg.length);
    const cut = jpeg.subarray(0, -1);
    const error = await failure(verify(['image.jpg'], cut, toJpeg));
    expect(error).to.include({ code: 'CORRUPT_IMAGE' });
    expect((error.cause as Error).message).to.include('not a complete file');
  });

  it('that is invalid is DISK_FULL while the disk is full, and CORRUPT_IMAGE otherwise', async function () {
    const folder = await makeTempDir('full');
    const inNamespace = ['--user', '--map-root-user', '--mount', 'sh', '-ec'];
    const mount = `mount -t tmpfs -o size=16m tmpfs '${folder}'`;
    requires(this, 'mounts', spawnSync('unshare', [...inNamespace, mount]).status === 0);
    const program = `
      const { explainByDisk } = await import('${TOOL_ERRORS}');
      const { serviceError } = await import('${ERRORS}');
      const { code } = await explainByDisk(serviceError('CORRUPT_IMAGE', 'x', 'PNG'), { folder: '${folder}' });
      console.log(code);`;
    const explain = '"$0" --input-type=module -e "$1"';
    const fill = `{ cat /dev/zero >'${folder}/zeros' 2>&- || true; }`;
    const run = [mount, explain, fill, explain].join('; ');
    const { stdout } = spawnSync('unshare', [...inNamespace, run, process.execPath, program]);
    expect(stdout.toString()).to.equal('CORRUPT_IMAGE\nDISK_FULL\n');
  });
});
