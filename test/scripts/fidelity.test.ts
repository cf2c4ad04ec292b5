// @full: programs that judge folders of images
import { copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import sharp from 'sharp';
import { edgeCasePath, fixturePath } from '../helpers/client.ts';
import { runNode } from '../helpers/command-line.ts';
import { makeTempDir } from '../helpers/hooks.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
const OUTPUTS = ['webp', 'png', 'jpg', 'gif', 'bmp', 'pdf'];

/** A decoded file, as a PNG that is a reference. */
const asPng = (path: string) => sharp(path).png().toBuffer();

describe('npm run fidelity', () => {
  /** Runs the script with a folder of these files. Strings are paths of fixtures. */
  async function run(files: Readonly<Record<string, string | Buffer>>) {
    const folder = await makeTempDir('fidelity');
    for (const [name, content] of Object.entries(files)) {
      if (typeof content === 'string') await copyFile(content, join(folder, name));
      else await writeFile(join(folder, name), content);
    }
    const { status, stdout } = await runNode([`${ROOT}scripts/fidelity.ts`, folder]);
    const differing = OUTPUTS.filter((format) => new RegExp(`^differs +${format} `, 'm').test(stdout));
    return { status, stdout, differing };
  }

  it('ends with 0 when each result is what sharp and Pillow show, or what the reference shows', async () => {
    const { status, stdout } = await run({
      'scene.png': fixturePath('scene.png'),
      'printed.png': await sharp(fixturePath('scene.png')).withMetadata({ density: 150 }).png().toBuffer(),
      'window.tiff': fixturePath('window.tiff'),
      'moving.gif': fixturePath('moving.gif'),
      'window.tiff.png': await asPng(fixturePath('window.tiff')),
      'notes.txt': Buffer.from('no image'),
    });
    expect(stdout).to.match(/: 4 files, 24 conversions; failed 0,/);
    expect(stdout).to.not.include('disagree');
    expect(status).to.equal(0);
  });

  it('reports every output format of a file whose reference shows another image, and ends with 1', async () => {
    const { status, stdout, differing } = await run({
      'scene.png': fixturePath('scene.png'),
      'scene.png.png': await sharp(fixturePath('scene.png')).negate().png().toBuffer(),
      'scene.jpg': fixturePath('scene.jpg'),
    });
    expect(stdout).to.match(/: 2 files, 12 conversions;/);
    expect(differing).to.deep.equal(OUTPUTS);
    expect(stdout).to.not.include('scene.jpg');
    expect(status).to.equal(1);
  });

  it('reports a size that is not that of the reference', async () => {
    const { status, stdout } = await run({
      'scene.bmp': fixturePath('scene.bmp'),
      'scene.bmp.png': await sharp(fixturePath('scene.png')).resize(60).png().toBuffer(),
    });
    expect(stdout).to.match(/^size +png .* scene\.bmp +\(120x80 instead of 60x40\)$/m);
    expect(status).to.equal(1);
  });

  it('lists a file about which sharp and Pillow disagree, and accepts what one of them shows', async () => {
    const { status, stdout } = await run({ 'inks.jpg': edgeCasePath('cmyk-bare.jpg') });
    expect(stdout).to.match(/^The decoders disagree:\ninks\.jpg: sharp and Pillow differ by \d+\.\d\d\n\n/);
    expect(status).to.equal(0);
  });
});
