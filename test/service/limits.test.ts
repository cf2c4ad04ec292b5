// @full
// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import sharp from 'sharp';
import { gif } from '../../scripts/fixtures/gif-writer.ts';
import { tiff } from '../../scripts/fixtures/writers.ts';
import { convert, converted, type Fields, fixture } from '../helpers/client.ts';
import { COPY_SCENE, fakeMagick } from '../helpers/fake-magick.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { plain } from '../helpers/pixels.ts';
import { useOwnServices } from '../helpers/service.ts';

/**
 * Images above a limit are rejected by their header: 413 with the value, the limit and its setting;
 * no tool runs.
 */
describe('image limits', () => {
  const { start, startShared, current, nothingLeft } = useOwnServices();

  const refusal = async (file: Buffer, fields: Fields = {}): Promise<string> => {
    const { status, message, headers } = await convert(current().base, file, fields);
    expect(headers.get('server-timing')).to.equal(null);
    await nothingLeft();
    return `${status} ${message}`;
  };
  const frames = (count: number, side: number): Promise<Buffer> => {
    const data = Buffer.alloc(side * side * count * 4, 255);
    for (let at = 0; at < count; at += 1) data[at * side * side * 4] = at; // every frame differs
    return sharp(data, { raw: { width: side, height: side * count, channels: 4, pageHeight: side } })
      .webp({ lossless: true })
      .toBuffer();
  };
  const pages = (count: number, side: number): Buffer =>
    tiff(
      Array.from({ length: count }, () => ({
        tags: { 256: side, 257: side, 258: 8, 262: 1, 278: side },
        strip: Buffer.alloc(side * side, 9),
      })),
    );

  for (const [what, file] of [
    ['PNG', () => plain(110, 100).png().toBuffer()],
    ['GIF', () => plain(110, 100).gif().toBuffer()],
    ['AVIF', () => plain(110, 100).avif().toBuffer()],
    ['SVG', async () => Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="110" height="100"/>')],
  ] as const) {
    it(`MAX_PIXELS rejects a ${what} with one pixel more, and accepts one with exactly as many`, async () => {
      await startShared({ MAX_PIXELS: '10999' });
      expect(await refusal(await file())).to.equal(
        '413 The file has 110 × 100 = 11000 pixels, more than the limit of 10999 (MAX_PIXELS).',
      );
      await startShared({ MAX_PIXELS: '11000' });
      expect((await convert(current().base, await file())).status).to.equal(200);
    });
  }

  it('MAX_PIXELS applies to the image of an icon and to the rendered size of an SVG', async () => {
    await start({ MAX_PIXELS: '4000' });
    expect(await refusal(await fixture('scene.ico'))).to.include('413 The file has 64 × 64 = 4096 pixels');
    const drawing = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"/>');
    expect(await refusal(drawing, { width: '64' })).to.include('413 The file has 64 × 64 = 4096 pixels');
    expect((await convert(current().base, drawing, { width: '63' })).status).to.equal(200);
  });

  it('MAX_PIXELS applies to an SVG whose size only a full parse reveals', async () => {
    await startShared({ MAX_PIXELS: '11000' });
    const hidden = Buffer.from(
      '<!DOCTYPE svg [<!ENTITY w "110">]><svg xmlns="http://www.w3.org/2000/svg" width="&w;" height="101"/>',
    );
    for (const format of ['png', 'webp']) {
      expect(await refusal(hidden, { format })).to.include('413 The file has 110 × 101 = 11110 pixels');
    }
  });

  it('MAX_PIXELS applies to a GIF frame larger than its logical screen', async () => {
    await start({ MAX_PIXELS: '1000' });
    const gif = Buffer.from(await fixture('scene.gif'));
    gif.writeUInt16LE(10, 6);
    gif.writeUInt16LE(10, 8);
    expect(await refusal(gif)).to.include('413 The file has 120 × 80 = 9600 pixels');
  });

  it('a panorama is limited by its pixels, and its result by what the format can hold', async () => {
    await start({});
    const panorama = await plain(31_431, 40).jpeg().toBuffer();
    const reduced = await convert(current().base, panorama, { width: '1600' });
    expect([reduced.outcome, (await sharp(reduced.body).metadata()).width]).to.deep.equal(['200', 1600]);
    for (const format of ['png', 'jpg', 'gif', 'bmp', 'pdf']) {
      const { outcome, headers } = await convert(current().base, panorama, { format });
      expect(outcome, format).to.equal('200');
      if (format !== 'pdf') expect(headers.get('x-image-width'), format).to.equal('31431');
    }
    expect((await convert(current().base, panorama, { format: 'webp' })).outcome).to.equal(
      '400 The file is too large for WebP, which supports at most 16383 pixels per side: set a smaller width or height, or choose another format.',
    );
    const longest = await plain(65_535, 2).png().toBuffer();
    expect((await convert(current().base, longest, { format: 'png' })).outcome).to.equal('200');
    expect((await convert(current().base, longest, { format: 'jpg' })).outcome).to.include(
      '400 The file is too large for JPEG',
    );
  });

  it('MAX_PIXELS applies to enlarged images and to their borders', async () => {
    await start({ MAX_PIXELS: '20000' });
    const file = await plain(100, 50).png().toBuffer();
    const become = (size: string) =>
      `413 The file would become ${size} pixels. The limits are 20000 pixels in total (MAX_PIXELS) and 65535 per side: set a smaller width or height.`;
    const box = (fit: string, width: number, height: number, enlarge = 'true') => ({
      fit,
      enlarge,
      width: `${width}`,
      height: `${height}`,
      format: 'jpg',
    });
    expect(await refusal(file, box('contain', 200, 101, 'false'))).to.equal(become('200 × 101'));
    expect(await refusal(file, box('fill', 101, 200))).to.equal(become('101 × 200'));
    expect(await refusal(file, { width: '202', enlarge: 'true' })).to.equal(become('202 × 101'));
    // The image is resized before it is cropped.
    expect(await refusal(file, box('cover', 100, 101))).to.equal(become('202 × 101'));
    for (const fit of ['inside', 'cover', 'contain', 'fill'])
      expect((await convert(current().base, file, box(fit, 200, 100))).status, fit).to.equal(200);
    expect((await convert(current().base, file, box('cover', 200, 200, 'false'))).status).to.equal(200);
  });

  it('MAX_TOTAL_PIXELS applies to frames and pages that are enlarged or get borders', async () => {
    await start({ MAX_TOTAL_PIXELS: '2000' });
    const wishes = [
      { fit: 'contain', width: '21', height: '20' },
      { fit: 'fill', width: '21', height: '20', enlarge: 'true' },
    ];
    for (const fields of wishes) {
      for (const [file, format] of [
        [await frames(5, 8), 'webp'],
        [pages(5, 8), 'pdf'],
      ] as const) {
        expect(await refusal(file, { ...fields, format })).to.equal(
          '413 The file would become 5 frames or pages with 2100 pixels, more than the limit of 2000 in total (MAX_TOTAL_PIXELS): set a smaller width or height.',
        );
        expect((await convert(current().base, file, { ...fields, format: 'png' })).status).to.equal(200);
      }
    }
  });

  it('MAX_FRAMES applies to animations and pages, even if only the first is converted', async () => {
    await start({ MAX_FRAMES: '4' });
    for (const file of [await frames(5, 8), pages(5, 8)]) {
      for (const format of ['webp', 'png', 'pdf']) {
        expect(await refusal(file, { format })).to.equal(
          '413 The file has 5 frames or pages, more than the limit of 4 (MAX_FRAMES).',
        );
      }
    }
    expect((await convert(current().base, await frames(4, 8), { format: 'gif' })).status).to.equal(200);
    expect((await convert(current().base, pages(4, 8), { format: 'pdf' })).status).to.equal(200);
  });

  it('MAX_TOTAL_PIXELS applies to animations and pages', async () => {
    await start({ MAX_TOTAL_PIXELS: '319' });
    for (const file of [await frames(5, 8), pages(5, 8)]) {
      expect(await refusal(file)).to.equal(
        '413 The file has 320 pixels in 5 frames or pages, more than the limit of 319 in total (MAX_TOTAL_PIXELS).',
      );
    }
    expect((await convert(current().base, await frames(4, 8))).status).to.equal(200);
  });

  it('raised by settings also apply to the tools and the output', async () => {
    // ImageMagick 6 clears 128 MiB for each frame of a GIF, which takes 10 s on a slow machine.
    await start({ MAX_PIXELS: '60000000', MAX_FRAMES: '1000', CONVERT_TIMEOUT_MS: '100000' });
    const large = await plain(7500, 7500).png({ compressionLevel: 1 }).toBuffer();
    expect((await convert(current().base, large, { format: 'jpg', width: '100' })).status).to.equal(200);
    const { body } = await converted(current().base, await frames(520, 4), { format: 'gif' });
    expect((await sharp(body, { animated: true }).metadata()).pages).to.equal(520);
  });

  it('MAX_FRAMES=10000 permits 6000 frames of a GIF, each with three arguments of img2webp', async () => {
    await start({ MAX_FRAMES: '10000' });
    const palette = [16, 80, 144, 208].map((grey) => [grey, grey, grey]);
    const area = { x: 0, y: 0, width: 1, height: 1 };
    const shown = Array.from({ length: 6000 }, (_, at) => ({
      ...area,
      colour: at % 4,
      delay: 10 + (at % 2),
    }));
    const file = gif({ width: 1, height: 1, palette, frames: shown, repeats: 'NETSCAPE2.0' });
    const { body } = await converted(current().base, file, { format: 'webp' });
    expect((await sharp(body, { animated: true }).metadata()).pages).to.equal(6000);
  });

  it('rlimits are set for every tool: memory, CPU time, file size, open files, core dumps', async () => {
    const folder = await makeTempDir('limits');
    const asked = ['v', 'St', 'Ht', 'f', 'n', 'c'].map((flag) => `ulimit -${flag}`).join('; ');
    const MAGICK_BIN = await fakeMagick(`{ ${asked}; } > ${folder}/limits; ${COPY_SCENE}`);
    await start({
      MAGICK_BIN,
      CONVERT_TIMEOUT_MS: '30000',
      MAX_PIXELS: '50000000',
      MAX_TOTAL_PIXELS: '75000000',
    });
    expect((await convert(current().base, await plain(8, 8).png().toBuffer())).status).to.equal(200);
    const [memory, soft, hard, file, files, core] = (await readFile(join(folder, 'limits'), 'utf8')).split(
      '\n',
    );
    // 2 GiB in KiB; the time limit in seconds, for each processor, and one more; 16 MiB and what
    // the plan needs, in blocks of 512 bytes.
    expect([memory, files, core]).to.deep.equal([String(2 * 1024 ** 2), '64', '0']);
    const cpuSeconds = 30 * availableParallelism();
    expect([soft, hard]).to.deep.equal([`${cpuSeconds + 1}`, `${cpuSeconds + 2}`]);
    expect(Number(file)).to.be.within(32 * 1024, 33 * 1024);
  });
});
