// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { dirname } from 'node:path';
import { expect } from 'chai';
import { findToolchain, isAtLeast } from '../../src/process/toolchain.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { testConfig } from '../helpers/service.ts';
import { writeScript } from '../helpers/util.ts';

const MACHINE = testConfig();
const machinePath = MACHINE.PATH;
const find = (path: string, more = {}) => findToolchain({ path, ...more });

describe('isAtLeast', () => {
  it('compares the numbers of a version one by one', () => {
    for (const later of ['7.1.1-43', '7.1.1-110', '7.1.2-3', '7.2.0-0', '10.0.0-0'])
      expect(isAtLeast(later, '7.1.1-43'), later).to.equal(true);
    for (const earlier of ['7.1.1-42', '7.1.0-99', '7.1.1', '6.9.13-50'])
      expect(isAtLeast(earlier, '7.1.1-43'), earlier).to.equal(false);
  });
});

describe('findToolchain', () => {
  it('finds ImageMagick with all supported formats, and librsvg', async () => {
    const { magick, rsvg } = await find(machinePath);
    expect(magick?.version).to.match(/^[67]\.\d+\.\d+/);
    expect(magick?.major).to.equal(Number(magick?.version[0]));
    expect(magick?.reads).to.include.keys('PNG', 'JPEG', 'GIF', 'BMP', 'TIFF', 'AVIF', 'ICO', 'WEBP');
    expect(magick?.writes).to.include.keys('PNG', 'JPEG', 'GIF', 'BMP3', 'WEBP');
    expect(rsvg?.version).to.match(/^\d+\.\d+/);
  });

  it('ignores another program named convert', async () => {
    const other = await writeScript('convert', 'echo "convert 1.0: converts file systems"');
    const { magick } = await find(`${dirname(other)}:${machinePath}`);
    expect(magick?.path).to.not.equal(other).and.not.equal(undefined);
  });

  it('prefers a binary to a wrapper script, which it uses if there is no binary', async () => {
    const real = (await find(machinePath)).magick?.path;
    for (const name of ['magick', 'convert']) {
      const wrapper = await writeScript(name, `exec ${real} "$@"`);
      expect((await find(`${dirname(wrapper)}:${machinePath}`)).magick?.path).to.equal(real);
      expect((await find(dirname(wrapper))).magick?.path).to.equal(wrapper);
    }
  });

  it('prefers version 7 to version 6', async () => {
    const folder = await makeTempDir('versions');
    await writeScript('magick', 'echo "Version: ImageMagick 6.9.11-60 Q16"', folder);
    const seven = await writeScript('convert', 'echo "Version: ImageMagick 7.1.1-43 Q16"', folder);
    expect((await find(folder)).magick).to.include({ path: seven, major: 7 });
  });

  it('uses the configured program instead of searching the path', async () => {
    const real = await find(machinePath);
    const magick = await writeScript('my-magick', 'echo "Version: ImageMagick 7.9.9-9 Q16"');
    const rsvg = await writeScript('my-rsvg', 'echo "rsvg-convert version 9.9.9"');
    const found = await find(machinePath, { named: { magick, rsvg } });
    expect(found.magick).to.include({ path: magick, version: '7.9.9-9' });
    expect(found).to.deep.include({ rsvg: { path: rsvg, version: '9.9.9' }, heif: real.heif });
  });

  it('returns no tools when none is installed', async () => {
    for (const path of [await makeTempDir('empty'), ''])
      expect(new Set(Object.values(await find(path)))).to.deep.equal(new Set([undefined]));
  });

  it('parses readable and writable formats, and the version of libheif', async () => {
    const list = `   Format  Module    Mode  Description
-----------------------------------
     AVIF  HEIC      r--   AV1 Image File Format (1.19.8)
     BMP3* BMP       -w-   Microsoft Windows bitmap image (V3)
     HEIC* HEIC      rw+   High Efficiency Image Format (1.19.8)
           See http://example.com/ for details about the rw+ format.
     WEBP* WEBP      rw+   WebP Image Format (libwebp 1.5.0 [0210])`;
    const version = 'Version: ImageMagick 7.1.1-43 Q16';
    const script = `if [ "$2" = format ]; then echo '${list}'; else echo '${version}'; fi`;
    const { magick } = await find(dirname(await writeScript('magick', script)));
    expect(magick?.reads).to.have.all.keys('AVIF', 'HEIC', 'WEBP');
    expect(magick?.writes).to.have.all.keys('BMP3', 'HEIC', 'WEBP');
    expect(magick?.libheif).to.equal('1.19.8');
  });
});
