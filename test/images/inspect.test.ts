// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { execFileSync } from 'node:child_process';
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import sharp from 'sharp';
import { opened } from '../../scripts/fixtures/edge-case.ts';
import { gif } from '../../scripts/fixtures/gif-writer.ts';
import { tiff, withSegment } from '../../scripts/fixtures/writers.ts';
import { inspect } from '../../src/images/index.ts';
import { pngChunk } from '../../src/images/png/png-writer.ts';
import type { InputType } from '../../src/tables/formats.ts';
import { fixture, fixturePath } from '../helpers/client.ts';
import { makeTempDir, writeTempFile } from '../helpers/hooks.ts';
import { plain } from '../helpers/pixels.ts';

const headerOf = async (bytes: Uint8Array, type: InputType) => {
  const path = await writeTempFile('in', bytes);
  return inspect(path, type);
};

/** The colours of a GIF. */
const PALETTE = Array.from({ length: 4 }, () => [200, 40, 40]);

/** Makes a colour of the first frame of a GIF transparent. Returns the offset of its control. */
function makeTransparent(file: Buffer): number {
  const control = file.indexOf(Buffer.from([0x21, 0xf9, 4]));
  file[control + 3] = (file[control + 3] as number) | 1;
  return control;
}

/** Draws a greyscale PNG. */
function drawGreys(width: number, height: number, value: (x: number, y: number) => number): Promise<Buffer> {
  const samples = Array.from({ length: width * height }, (_, at) =>
    value(at % width, Math.floor(at / width)),
  );
  return sharp(Buffer.from(samples), { raw: { width, height, channels: 1 } })
    .png()
    .toBuffer();
}

describe('inspecting a header', () => {
  it('reads only regular files: does not block on a pipe or follow a link that a tool has created', async () => {
    const folder = await makeTempDir('strange');
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    await symlink(fixturePath('scene.png'), join(folder, 'link'));
    for (const name of ['pipe', 'link']) {
      const outcome = await inspect(join(folder, name), 'png').catch((error) => error.code);
      expect(outcome, name).to.be.oneOf(['ESPIPE', 'ELOOP']);
    }
  });

  it('of a JPEG ignores the orientation in EXIF without the header of a TIFF, as browsers do', async () => {
    const jpeg = await fixture('orientation-6.jpg');
    expect((await headerOf(jpeg, 'jpg')).orientation).to.equal(6);
    for (const place of [0, 2]) {
      const spoilt = Buffer.from(jpeg);
      spoilt.write('Y', jpeg.indexOf('II*') + place);
      expect((await headerOf(spoilt, 'jpg')).orientation ?? 1, `byte ${place}`).to.equal(1);
    }
  });

  it('of a JPEG skips fill bytes, and bytes that belong to no segment', async () => {
    const jpeg = await fixture('orientation-6.jpg');
    for (const extra of [
      Array(5).fill(0xff),
      [0x20],
      [0xff, 0],
      [1, 0xff, 0xff, 0, 0xff],
      Array(5000).fill(7),
    ]) {
      const bytes = Buffer.concat([jpeg.subarray(0, 2), Buffer.from(extra), jpeg.subarray(2)]);
      const { pixels: _, ...facts } = await headerOf(bytes, 'jpg'); // the profile has another place
      expect(await headerOf(jpeg, 'jpg')).to.deep.include(facts);
    }
  });

  it('of a JPEG takes a segment that is shorter than its length field as empty', async () => {
    const jpeg = await fixture('orientation-6.jpg');
    const bytes = Buffer.concat([jpeg.subarray(0, 2), Buffer.of(0xff, 0xe1, 0, 1), jpeg.subarray(2)]);
    const facts = { width: 80, height: 120, orientation: 6, profile: 'srgb' };
    expect(await headerOf(bytes, 'jpg')).to.include(facts);
  });

  it('of a JPEG returns whether it is detailed, at every quality', async () => {
    const bars = await drawGreys(400, 400, (x, y) => (x % 11 < 4 && y % 17 < 11 ? 20 : 240));
    const waves = await drawGreys(400, 400, (x, y) => 127 + 100 * Math.sin(x / 30) * Math.cos(y / 20));
    for (const quality of [50, 75, 90, 98]) {
      const detailed = async (png: Buffer) =>
        (await headerOf(await sharp(png).jpeg({ quality }).toBuffer(), 'jpg')).detailed;
      expect(await detailed(bars), `edges at ${quality}`).to.equal(true);
      expect(await detailed(waves), `waves at ${quality}`).to.equal(false);
    }
  });

  it('of a JPEG returns that it is detailed if it has lines in empty areas, whatever its bytes', async () => {
    const [width, height] = [1200, 900];
    const lines = await drawGreys(width, height, (x, y) => ((x + 3 * y) % 97 < 3 ? 0 : 255));
    const noise = (x: number, y: number): number => ((x * 7919 + y * 104_729 + x * y * 31) % 251) / 20;
    const photo = await drawGreys(
      width,
      height,
      (x, y) => 127 + 90 * Math.sin(x / 30) * Math.cos(y / 20) + noise(x, y),
    );
    for (const options of [{ quality: 80 }, { quality: 90 }, { quality: 90, progressive: true }]) {
      const encode = (png: Buffer): Promise<Buffer> => sharp(png).jpeg(options).toBuffer();
      const [drawn, taken] = [await encode(lines), await encode(photo)];
      expect((await headerOf(drawn, 'jpg')).detailed, 'lines').to.equal(true);
      expect((await headerOf(taken, 'jpg')).detailed, 'a photo').to.equal(false);
      expect(drawn.length, 'bytes of the drawing').to.be.below((width * height) / 4);
    }
  });

  it('of a GIF states that all frames are opaque, unless the first is not or one uncovers transparency', async () => {
    const [width, height] = [8, 6];
    const whole = { x: 0, y: 0, width, height, colour: 0, disposal: 1 };
    const part = { ...whole, x: 2, width: 4 };
    const isOpaque = async (bytes: Buffer) => (await headerOf(bytes, 'gif')).animation?.opaque;
    for (const [frames, expected] of [
      [[whole, part], true],
      [[whole, { ...part, disposal: 3 }, part], true],
      [[part, whole], false],
      [[{ ...whole, disposal: 3 }, part], false],
      [[{ ...whole, disposal: 2 }, part], false],
      [[whole, { ...part, disposal: 2 }, part], false],
      [[whole, { ...whole, width: 9 }], false],
    ] as const)
      expect(
        await isOpaque(gif({ width, height, palette: PALETTE, frames })),
        JSON.stringify(frames),
      ).to.equal(expected);
    const transparent = gif({ width, height, palette: PALETTE, frames: [whole, part] });
    const control = makeTransparent(transparent);
    expect(await isOpaque(transparent)).to.equal(false);
    // ImageMagick keeps the transparent colour of an earlier control of the same frame.
    const again = Buffer.from([0x21, 0xf9, 4, 4, 10, 0, 0, 0]);
    const twice = [transparent.subarray(0, control + 8), again, transparent.subarray(control + 8)];
    expect(await isOpaque(Buffer.concat(twice))).to.equal(false);
  });

  it('of a GIF of one frame states that it is opaque if it has no transparent colour and covers the canvas', async () => {
    const [width, height] = [8, 6];
    const whole = { x: 0, y: 0, width, height, colour: 0, disposal: 2 };
    const still = (frame: typeof whole) => gif({ width, height, palette: PALETTE, frames: [frame] });
    const transparent = still(whole);
    makeTransparent(transparent);
    for (const [bytes, expected] of [
      [still(whole), true],
      [still({ ...whole, x: 1, width: 7 }), false],
      [still(whole).subarray(0, -4), false],
      [transparent, false],
    ] as const)
      expect((await headerOf(bytes, 'gif')).opaque).to.equal(expected);
  });

  it('of a GIF without a loop extension returns one play, and 100 ms for a delay of 0', async () => {
    const frame = { x: 0, y: 0, width: 8, height: 6, colour: 0 };
    const frames = [0, 7].map((delay) => ({ ...frame, delay }));
    const twice = gif({ width: 8, height: 6, palette: PALETTE, frames });
    const animation = { delaysMs: [100, 70], loopCount: 1, opaque: true, changesLittle: false };
    expect((await headerOf(twice, 'gif')).animation).to.deep.equal(animation);
  });

  it('distinguishes sRGB from other profiles in every format with profiles', async () => {
    const image = () => plain(8, 8);
    for (const [icc, profile] of [
      ['srgb', 'srgb'],
      ['p3', 'other'],
    ] as const) {
      const made = {
        png: image().png(),
        webp: image().webp(),
        tiff: image().tiff(),
        avif: image().avif(),
        jpg: image().jpeg(),
      };
      for (const [type, file] of Object.entries(made)) {
        const bytes = await file.withIccProfile(icc).toBuffer();
        expect((await headerOf(bytes, type as InputType)).profile, `${icc} in ${type}`).to.equal(profile);
      }
    }
  });

  it('distinguishes a PNG that compresses well, such as a screenshot, from one that does not', async () => {
    const panels = await drawGreys(400, 300, (x) => (x < 100 ? 30 : 240));
    expect(await headerOf(panels, 'png')).to.deep.include({ flat: true });
    const noise = await drawGreys(400, 300, (x, y) => (x * 7919 + y * 104_729 + x * y * 31) % 251);
    expect(await headerOf(noise, 'png')).to.deep.include({ flat: false });
  });

  it('of a BigTIFF stops at a directory or profile beyond 2^53', async () => {
    const beyond = Buffer.alloc(8, 0xff);
    const nowhere = Buffer.concat([Buffer.from([0x49, 0x49, 43, 0, 8, 0, 0, 0]), beyond]);
    const [page, ...others] = (await headerOf(nowhere, 'tiff')).pages ?? [];
    expect(page).to.include({ index: 0, profile: 'none' });
    expect(others).to.deep.equal([]);

    const image = plain(33, 17);
    const bytes = await image.withIccProfile('p3').tiff({ bigtiff: true }).toBuffer();
    const directory = Number(bytes.readBigUInt64LE(8));
    const entries = Number(bytes.readBigUInt64LE(directory));
    const end = directory + 8 + entries * 20;
    beyond.copy(bytes, end);
    for (let entry = directory + 8; entry < end; entry += 20)
      if (bytes.readUInt16LE(entry) === 34675) beyond.copy(bytes, entry + 12);
    expect(await headerOf(bytes, 'tiff')).to.deep.include({ width: 33, height: 17, profile: 'unusable' });
  });

  it('of a TIFF reads single-byte values without the bytes that follow them', async () => {
    const strip = Buffer.alloc(3);
    const tags = { 256: 1, 257: 1, 258: [8, 8, 8], 262: 2, 274: 6, 277: 3, 278: 1 };
    const bytes = tiff([{ tags, strip }]);
    for (let entry = 10; entry < 10 + bytes.readUInt16LE(8) * 12; entry += 12) {
      if (bytes.readUInt16LE(entry) !== 274) continue;
      bytes.writeUInt16LE(1, entry + 2);
      bytes.fill(0xff, entry + 9, entry + 12);
    }
    expect((await headerOf(bytes, 'tiff')).pages?.[0]?.orientation).to.equal(6);
  });

  it('of a TIFF and of a progressive JPEG returns cmyk', async () => {
    const image = plain(33, 17).toColourspace('cmyk').withIccProfile('cmyk');
    for (const [type, file] of [
      ['tiff', image.clone().tiff()],
      ['jpg', image.clone().jpeg({ progressive: true })],
    ] as const)
      expect(await headerOf(await file.toBuffer(), type)).to.include({ width: 33, height: 17, cmyk: true });
  });

  it('of an icon without a bitmap returns no size', async () => {
    const icon = Buffer.concat([
      Buffer.from([0, 0, 1, 0, 1, 0]),
      Buffer.alloc(16),
      await fixture('scene.png'),
    ]);
    expect(await headerOf(icon, 'ico')).to.have.all.keys('type', 'pixels');
  });

  it('with repeated metadata uses the first of each kind, as decoders do', async () => {
    const exif = (orientation: number) =>
      Buffer.from(
        `II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0${String.fromCharCode(orientation)}\0\0\0\0\0\0\0`,
        'latin1',
      );
    const withExif = (jpeg: Buffer, orientation: number) =>
      withSegment(jpeg, 0xe1, Buffer.concat([Buffer.from('Exif\0\0'), exif(orientation)]));
    const twice = withExif(withExif(await plain(8, 8).jpeg().toBuffer(), 3), 6);
    expect(await headerOf(twice, 'jpg')).to.deep.include({ orientation: 6, metadata: ['exif'] });

    const png = await opened().withIccProfile('srgb').png().toBuffer();
    const chunks = [pngChunk('eXIf', exif(8)), pngChunk('eXIf', exif(2)), pngChunk('iCCP', Buffer.from('x'))];
    const end = Buffer.concat([png.subarray(0, -12), ...chunks, png.subarray(-12)]);
    expect(await headerOf(end, 'png')).to.deep.include({ orientation: 8, profile: 'srgb' });
  });

  for (const [root, size] of [
    ['<svg width="120" height="80">', { width: 120, height: 80 }],
    [
      `<?xml version="1.0"?><!-- x --><svg:svg\n width = '1.5in'\n height='2.54cm'>`,
      { width: 144, height: 96 },
    ],
    ['<svg viewBox="0 0 30 40">', { width: 30, height: 40 }],
    ['<svg height="10" viewBox="0 0 30 60">', { width: 5, height: 10 }],
    ['<svg height="10" width="2furlong" viewBox="0 0 30 60">', { width: 5, height: 10 }],
    ['<svg width="auto" height="auto" viewBox="0 0 5.5 6.25">', { width: 5.5, height: 6.25 }],
    ['<svg>', {}],
    ['<svg width="10">', {}],
    ['<svg width="10" viewBox="0 0 0 60">', {}],
    ['<svg width="10" viewBox="0 0 &w; 60">', {}],
    ['<svg width="&w;" height="10" viewBox="0 0 30 60">', {}],
    ['<svg width="2ex" height="3ex" font-size="20px">', { width: 20, height: 30 }],
    ['<svg width="2em" height="3em" style="font-size:1in">', { width: 192, height: 288 }],
    ['<svg width="2em" height="3em" font-size="large">', {}],
    ['<svg width="2ch" height="3ch">', {}],
    ['<svg style="width:wide;height:-4px" width="30" height="20">', { width: 30, height: 20 }],
    ['<svg width="10.4" height="20.25px">', { width: 10.4, height: 20.25 }],
    ['<svg width="2vw" height="3vh">', {}],
    ['<svg width="-5" height="wide">', {}],
    ['<svg data-width="7" data-height="7">', {}],
  ] as const) {
    it(`of an SVG returns the size that it declares: ${root}`, async () => {
      const { width, height } = await headerOf(Buffer.from(`${root}</svg>`), 'svg');
      expect({ width, height }).to.deep.equal({ width: undefined, height: undefined, ...size });
    });
  }
});
