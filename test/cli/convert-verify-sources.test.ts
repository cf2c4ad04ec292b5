// @full: all kinds of sources
// @slow
import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import sharp from 'sharp';
import { open } from '../../scripts/fixtures/scene.ts';
import { withProfileChunk } from '../../scripts/fixtures/writers.ts';
import { seeded } from '../../scripts/stress/random.ts';
import { decode } from '../../src/regress/image/codec.ts';
import { verify as verifyResult } from '../../src/regress/verify.ts';
import { edgeCase, fixturePath } from '../helpers/client.ts';
import { useConvertFolder, type Variants } from '../helpers/convert-folder.ts';
import { madePhotos } from '../helpers/made-photos.ts';
import type { Pixels } from '../helpers/pixels.ts';

async function openPhoto(width: number, height: number) {
  const [photo] = await madePhotos(width, height, 1);
  return open(photo as Pixels);
}

/** Makes a photo transparent from the left to the right, in all degrees. */
async function fadedPhoto(width: number, height: number): Promise<Buffer> {
  const data = await (await openPhoto(width, height)).raw().toBuffer();
  for (let at = 3; at < data.length; at += 4) data[at] = Math.floor((((at >> 2) % width) * 256) / width);
  return open({ width, height, data }).png().toBuffer();
}

describe('imagemill convert --verify, by the kind of source,', () => {
  const folder = useConvertFolder();
  const env = { EXTRA_OUTPUTS: 'tiff,avif,jxl', EXTRA_INPUTS: 'heic' };
  /** Verifies all files in several formats: `a-png.png`. */
  const verify = (mode: string, variants: Variants, ...args: readonly string[]) =>
    folder.runVariants(variants, ['--verify', mode, ...args], { env });
  const expectPassed = async (...args: Parameters<typeof verify>) =>
    expect((await verify(...args)).complaints).to.deep.equal([]);

  it('passes images of 16 bits per channel with a profile, of colours and of greys', async () => {
    const deep = (await openPhoto(300, 200)).removeAlpha().toColourspace('rgb16');
    const grey = await (await openPhoto(300, 200)).removeAlpha().toColourspace('grey16').png().toBuffer();
    const { icc } = await sharp(await edgeCase('profile-of-greys.jpg')).metadata();
    for (const profile of ['srgb', 'p3'])
      await folder.write(`in/${profile}.png`, await deep.clone().withIccProfile(profile).png().toBuffer());
    await folder.write('in/grey.png', withProfileChunk(grey, icc as Buffer));
    await expectPassed('visual', ['png', 'webp', 'jpg', 'tiff', 'jxl']);
  });

  it('passes images of 16 bits of which only the alpha, or no channel, needs more than 8', async () => {
    const [width, height] = [64, 32];
    for (const [name, colourOf, alphaOf] of [
      ['alpha', (at: number) => (at % 256) * 257, (at: number) => at * 31 + 7],
      ['black-and-white', (at: number) => (at % 2) * 65_535, () => 65_535],
      ['black-and-white-alpha', (at: number) => (at % 2) * 65_535, (at: number) => at * 31],
    ] as const) {
      const samples = new Uint16Array(width * height * 4);
      for (let at = 0; at < width * height; at += 1)
        samples.set([...Array(3).fill(colourOf(at)), alphaOf(at)], at * 4);
      const image = sharp(samples, { raw: { width, height, channels: 4 } });
      await folder.write(`in/${name}.png`, await image.toColourspace('rgb16').png().toBuffer());
    }
    await expectPassed('pixels', ['png', 'tiff']);
    await verify('pixels', ['bmp']);
    expect(await folder.files('out'))
      .to.include('black-and-white-bmp.bmp')
      .and.not.include('alpha-bmp.bmp');
  });

  it('fails an image of 16 bits in Display P3 whose values were taken for sRGB', async () => {
    const photo = (await openPhoto(300, 200)).removeAlpha().modulate({ saturation: 1.5 });
    const source = await photo.toColourspace('rgb16').withIccProfile('p3').png().toBuffer();
    const wrong = await sharp(source).toColourspace('rgb16').png().toBuffer(); // what sharp does
    const options = { format: 'png', quality: 80, metadata: 'none' } as const;
    expect((await verifyResult('visual', 'png', source, wrong, options)).reason).to.match(/colours shifted/);
  });

  it('passes a photo that is transparent in all degrees over a background, with pixels and with visual', async () => {
    await folder.write('in/faded.png', await fadedPhoto(300, 200));
    const colours = ['white', '#123', '#0a141e'];
    const backgrounds = colours.map((background, at) => ({ name: `${at}`, format: 'bmp', background }));
    for (const mode of ['pixels', 'visual']) await expectPassed(mode, backgrounds);
    const options = { format: 'bmp', quality: 80, metadata: 'none', background: '#123' } as const;
    const [source, result] = [await folder.read('in/faded.png'), await folder.read('out/faded-2.bmp')];
    const { reason } = await verifyResult('pixels', 'png', source, result, options);
    expect(reason, 'another background').to.match(/differ by more than 1 of 255/);
  });

  it('passes with pixels a conversion of colours in which no channel differs by more than 1 of 255', async () => {
    const photo = (await openPhoto(300, 200)).removeAlpha().linear(0.5, 64);
    const source = await photo.withIccProfile('p3').png().toBuffer();
    const { frames } = await decode(source, 'png');
    const options = { format: 'png', quality: 80, metadata: 'none' } as const;
    const judge = async (by: number) => {
      const [{ width, height, data }] = frames as [(typeof frames)[number]];
      const [red, green, blue, alpha] = [by, -by, by, 0];
      const shifted = data.map((value, at) => value + ([red, green, blue, alpha][at % 4] as number));
      const result = await sharp(shifted, { raw: { width, height, channels: 4 } })
        .png()
        .toBuffer();
      return verifyResult('pixels', 'png', source, result, options);
    };
    expect(await judge(1)).to.include({ passed: true, max: 1 });
    expect((await judge(2)).reason).to.match(/^256 pixels of a block differ by more than 1 of 255/);
  });

  it('passes a JPEG and a WebP of fine details that are made smaller', async () => {
    const [width, height] = [1600, 1200];
    const lines = Uint8Array.from({ length: width * height }, (_, at) =>
      Math.hypot((at % width) - 500, Math.floor(at / width) - 400) % 26 < 11 ? 40 : 215,
    );
    const image = sharp(lines, { raw: { width, height, channels: 1 } });
    await folder.write('in/lines.jpg', await image.jpeg({ quality: 95 }).toBuffer());
    await folder.write('in/lines-webp.webp', await image.webp({ quality: 95 }).toBuffer());
    await expectPassed('visual', ['png', 'jpg', 'webp'], '--width', '290');
  });

  it('passes AVIF and JPEG XL of fine grain and of letters in saturated colours', async () => {
    const { next } = seeded(1);
    const grain = Float64Array.from({ length: 200 * 200 }, () => (next() + next() - 1) * 12);
    const paper = Uint8Array.from({ length: 200 * 200 * 3 }, (_, at) => {
      const [colour, share] = [150 - 50 * (at % 3), 1 - 0.2 * (at % 3)];
      return colour + (grain[Math.floor(at / 3)] as number) * share;
    });
    const letters = `<svg xmlns="http://www.w3.org/2000/svg" width="120" height="60"><rect width="120" height="60" fill="red"/>
      <rect x="60" width="60" height="60" fill="#ff0"/><path fill="none" stroke="#f9c" stroke-width="1.5"
      d="M8 44L18 16L28 44M12 35H24M36 44V16L54 44V16M64 16V44H74L80 36V24L74 16Z"/></svg>`;
    const image = sharp(paper, { raw: { width: 200, height: 200, channels: 3 } });
    await folder.write('in/paper.png', await image.png().toBuffer());
    await folder.write('in/letters.png', await sharp(Buffer.from(letters)).png().toBuffer());
    await expectPassed('visual', ['avif', 'jxl']);
  });

  it('fails AVIF and JPEG XL of a photo with a fault', async () => {
    const photo = (await openPhoto(320, 240)).removeAlpha();
    const source = await photo.clone().png().toBuffer();
    const spot = { create: { width: 8, height: 8, channels: 3, background: 'black' } } as const;
    const bright = await photo.clone().linear(0.3, 170).png().toBuffer();
    const spotted = sharp(bright).composite([{ input: spot, left: 100, top: 100 }]);
    const moved = photo.clone().extract({ left: 0, top: 0, width: 316, height: 240 });
    const faults = {
      blur: [source, await photo.clone().blur(4).png().toBuffer()],
      colour: [source, await photo.clone().modulate({ hue: 25 }).png().toBuffer()],
      light: [source, await photo.clone().linear(1, 12).png().toBuffer()],
      place: [source, await moved.extend({ left: 4, extendWith: 'copy' }).png().toBuffer()],
      spot: [bright, await spotted.png().toBuffer()],
    } as const;
    for (const [name, [, wrong]] of Object.entries(faults)) await folder.write(`in/${name}.png`, wrong);
    for (const format of ['avif', 'jxl'] as const) {
      await folder.run(['in', '-o', 'out', '--format', format], { env: { EXTRA_OUTPUTS: 'avif,jxl' } });
      const options = { format, quality: 80, metadata: 'none' } as const;
      for (const [name, [sound]] of Object.entries(faults)) {
        const result = await folder.read(`out/${name}.${format}`);
        const { passed } = await verifyResult('visual', 'png', sound, result, options);
        expect(passed, `${format} ${name}`).to.equal(false);
      }
    }
  });

  it('states that libvips does not read a type, or has no other decoder for it, instead of a fault', async () => {
    await folder.write('in/phone.heic', await readFile(fixturePath('../extra/phone.heic')));
    await folder.put('scene.svg', 'in/phone.svg');
    const { complaints } = await verify('visual', ['png']);
    expect(complaints.join())
      .to.include('this HEIC cannot be compared: libvips has no decoder for it')
      .and.include('this SVG cannot be compared: libvips draws it with librsvg');
  });
});
