import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import sharp from 'sharp';
import { fixturePath } from '../helpers/client.ts';
import { runCommand } from '../helpers/command.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { runInProcess } from '../helpers/in-process.ts';

describe('imagemill responsive', () => {
  const run = async (...args: string[]) => {
    const cwd = await makeTempDir('responsive');
    return { cwd, ...(await runInProcess(['responsive', fixturePath('scene.jpg'), ...args], { cwd })) };
  };

  it('writes each width in each format, no larger than the image, and prints the picture element', async () => {
    const { cwd, lines, outcome } = await run(
      ...['--widths', '30,60,500,900', '--formats', 'webp,jpg', '--sizes', '(min-width: 60em) 50vw'],
      ...['-o', 'out'],
    );
    expect(outcome).to.equal('0');
    const sizes = 'sizes="(min-width: 60em) 50vw"';
    expect(lines).to.deep.equal([
      '<picture>',
      `  <source type="image/webp" srcset="scene-30.webp 30w, scene-60.webp 60w, scene-120.webp 120w" ${sizes}>`,
      `  <img src="scene-120.jpg" srcset="scene-30.jpg 30w, scene-60.jpg 60w, scene-120.jpg 120w" ${sizes} width="120" height="80" alt="">`,
      '</picture>',
    ]);
    const files = await readdir(join(cwd, 'out'));
    expect(files).to.have.lengthOf(6);
    for (const file of files) {
      const { width, format } = await sharp(join(cwd, 'out', file)).metadata();
      expect(file).to.equal(`scene-${width}.${format === 'jpeg' ? 'jpg' : format}`);
    }
  });

  it('prints a JSON object with the files and the element', async () => {
    const { cwd, status, lines } = await run('--widths', '40', '--formats', 'png', '--json');
    expect(status).to.equal(0);
    const { files, html } = JSON.parse(lines.join('\n'));
    const { size, width, height } = await sharp(join(cwd, 'scene-40.png'))
      .toBuffer({ resolveWithObject: true })
      .then(({ info }) => info);
    expect(size).to.be.above(0);
    expect(files[0]).to.include({ file: 'scene-40.png', format: 'png', type: 'image/png', width, height });
    expect(html).to.include('src="scene-40.png"');
  });

  it('takes a file that is larger than a server accepts', async () => {
    const cwd = await makeTempDir('responsive');
    await writeFile(join(cwd, 'a.jpg'), [await readFile(fixturePath('scene.jpg')), Buffer.alloc(11e6)]);
    const args = ['responsive', 'a.jpg', '--widths', '40', '--formats', 'png'];
    expect((await runInProcess(args, { cwd })).outcome).to.equal('0');
  });

  it('names the files of an image from standard input image', async () => {
    const cwd = await makeTempDir('responsive');
    const args = ['responsive', '-', '--widths', '40', '--formats', 'png'];
    const result = await runCommand(args, { cwd, input: await readFile(fixturePath('scene.jpg')) });
    expect(result.outcome).to.equal('0');
    expect(await readdir(cwd)).to.deep.equal(['image-40.png']);
  });

  it('names the files that lack a part of the image, such as the frames of an animation', async () => {
    const cwd = await makeTempDir('responsive');
    const args = ['responsive', fixturePath('moving.gif'), '--widths', '20,30', '--formats', 'webp,jpg'];
    const { outcome } = await runInProcess(args, { cwd });
    expect(outcome).to.equal('0 imagemill: first-frame-only: moving-20.jpg, moving-30.jpg');
  });

  it('overwrites a file only with --force', async () => {
    const cwd = await makeTempDir('responsive');
    await mkdir(join(cwd, 'out'));
    await writeFile(join(cwd, 'out', 'scene-40.png'), 'mine');
    const args = ['responsive', fixturePath('scene.jpg'), '-o', 'out', '--widths', '40', '--formats', 'png'];
    const refused = await runInProcess(args, { cwd });
    expect([refused.status, refused.complaints]).to.deep.equal([
      ...[1, ['imagemill: out/scene-40.png already exists: use --force to overwrite it.']],
    ]);
    expect((await runInProcess([...args, '--force'], { cwd })).status).to.equal(0);
  });

  it('exits with status 2 for values that are not valid, and 1 for a file that is no image', async () => {
    const { status, complaints } = await run('--widths', '40,x', '--formats', 'webp,pdf', '--quality', '0');
    expect(status).to.equal(2);
    expect(complaints).to.deep.equal([
      'imagemill: Invalid --widths "x": expected a whole number from 1 to 16384.',
      'imagemill: Invalid --formats "pdf": expected one of webp, png, jpg, gif, avif.',
      'imagemill: Invalid --quality "0": expected a whole number from 1 to 100.',
    ]);
    const missing = await runInProcess(['responsive', '/nowhere.jpg']);
    expect([missing.status, missing.complaints]).to.deep.equal([
      ...[1, ['imagemill: /nowhere.jpg cannot be read: no such file or directory.']],
    ]);
  });
});
