import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { fixturePath } from '../helpers/client.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { runInProcess } from '../helpers/in-process.ts';
import { execute } from '../helpers/process.ts';

const cwd = fixturePath('').replace(/\/$/, '');

describe('imagemill identify', () => {
  it('prints a table of images, and names the files that are none', async () => {
    const { status, lines, complaints } = await runInProcess(
      ['identify', 'scene.jpg', 'moving.gif', 'orientation-6.jpg', 'none.png', '../README.md'],
      { cwd },
    );
    expect(lines).to.deep.equal([
      'scene.jpg          JPEG  120 × 80  8-bit rgb  3.3 kB',
      'moving.gif         GIF   48 × 32   8-bit rgb  312 B   3 frames, alpha',
      'orientation-6.jpg  JPEG  120 × 80  8-bit rgb  4.0 kB  orientation 6, sRGB, exif',
    ]);
    expect(complaints).to.have.length(2);
    expect(complaints[0]).to.equal('imagemill: none.png: no such file or folder.');
    expect(complaints[1]).to.match(/^imagemill: \.\.\/README\.md is not an image of a supported format/);
    expect(status).to.equal(1);
  });

  it('describes the images of a folder and its sub-folders, and those that match a pattern', async () => {
    const folder = await makeTempDir('images');
    await mkdir(join(folder, 'sub'));
    for (const name of ['b.jpg', 'sub/a.jpg']) await copyFile(fixturePath('scene.jpg'), join(folder, name));
    await copyFile(fixturePath('../extra/scene.psd'), join(folder, 'sub/c.psd'));
    await writeFile(join(folder, 'notes.txt'), 'no image');
    for (const [arg, names] of [
      ['.', ['b.jpg', 'sub/a.jpg', 'sub/c.psd']],
      ['**/*.jpg', ['b.jpg', 'sub/a.jpg']],
    ] as const) {
      const { outcome, objects } = await runInProcess(['identify', '--json', arg], { cwd: folder });
      expect([outcome, objects().map(({ file }) => file)]).to.deep.equal(['0', names]);
    }
  });

  it('names a pipe as no file, and does not wait for its writer', async () => {
    const folder = await makeTempDir('pipe');
    await execute('mkfifo', [join(folder, 'pipe.png')]);
    const { outcome } = await runInProcess(['identify', 'pipe.png'], { cwd: folder });
    expect(outcome).to.equal('1 imagemill: pipe.png is not a file. For standard input, use "-".');
  });

  it('prints an object for each file with --json, also if the settings exclude its type', async () => {
    const options = { cwd, env: { EXTRA_INPUTS: 'jxl' } };
    const args = ['identify', '--json', 'p3.png', '../extra/p3.heic'];
    const { status, objects } = await runInProcess(args, options);
    const [png, heic] = objects();
    expect(png).to.deep.include({ file: 'p3.png', type: 'png', width: 120, height: 80, convertible: true });
    expect(png.bytes).to.equal((await readFile(fixturePath('p3.png'))).length);
    expect([heic.convertible, heic.problem.reason]).to.deep.equal([false, 'unsupported_type']);
    expect(status).to.equal(0);
  });
});
