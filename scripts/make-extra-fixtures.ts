/**
 * @module Regenerates fixtures/extra/: images of the formats of EXTRA_INPUTS. Requires encoders of Debian 13, which the
 * service never runs: apt install libheif-examples libheif-plugin-x265 libjxl-tools libopenjp2-tools, and exiftool.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sharp from 'sharp';
import { box, boxesOf, withPrimary } from './fixtures/boxes.ts';
import { phonePhoto } from './fixtures/heif-writer.ts';
import { pdf, sceneContent } from './fixtures/pdf.ts';
import { psd } from './fixtures/psd.ts';
import { scene, square } from './fixtures/scene.ts';
import { cur, iconBitmap, type Raster, withoutChunk } from './fixtures/writers.ts';

const FOLDER = new URL('../fixtures/extra/', import.meta.url).pathname;
const FIXTURES = new URL('../fixtures/images/', import.meta.url).pathname;
rmSync(FOLDER, { recursive: true, force: true });
mkdirSync(FOLDER, { recursive: true });
const work = mkdtempSync(join(tmpdir(), 'imagemill-extra-'));
const at = (name: string): string => join(work, name);
const to = (name: string): string => join(FOLDER, name);
const run = (program: string, ...args: string[]): void => {
  execFileSync(program, args, { stdio: ['ignore', 'ignore', 'ignore'], cwd: work });
};
const open = ({ width, height, data }: Raster) => sharp(data, { raw: { width, height, channels: 4 } });

const plain = open(scene()).removeAlpha();
await plain.clone().png().toFile(at('scene.png'));
await plain.clone().toColourspace('rgb16').png().toFile(at('deep.png'));
await plain.clone().greyscale().png().toFile(at('grey.png'));
await open(scene({ transparent: true }))
  .png()
  .toFile(at('window.png'));
await plain.clone().withIccProfile('p3').png().toFile(at('p3.png'));
writeFileSync(at('bare.png'), withoutChunk(readFileSync(at('p3.png')), 'iCCP'));
await plain.clone().resize(256, 192, { kernel: 'nearest', fit: 'fill' }).png().toFile(at('large.png'));

// HEIC, encoded by x265. Like an image of a phone: a grid with a rotation property that EXIF repeats.
const heic = (name: string, ...args: string[]): void =>
  run('heif-enc', '-q', '95', '-p', 'chroma=444', ...args, '-o', to(name));
heic('scene.heic', 'scene.png');
heic('deep.heic', '-b', '10', 'deep.png');
heic('window.heic', 'window.png');
heic('p3.heic', 'p3.png');
heic('named-p3.heic', '--colour_primaries', '12', '--transfer_characteristic', '13', 'bare.png');
for (const [row, top] of [0, 96].entries()) {
  for (const [column, left] of [0, 128].entries()) {
    const tile = sharp(at('large.png')).extract({ left, top, width: 128, height: 96 });
    await tile.png().toFile(at(`tile-${row}-${column}.png`));
  }
}
heic('grid.heic', '-T', 'tile-0-0.png');
heic('turned.heic', join(FIXTURES, 'orientation-6.jpg'));
heic('private.heic', join(FIXTURES, 'private.jpg'));
// Two images with thumbnails; the second image is the primary one.
heic('primary.heic', '-t', '64', 'window.png', 'scene.png');
writeFileSync(to('primary.heic'), withPrimary(readFileSync(to('primary.heic'))));

// A photo with everything that phones add, and a tile for one of 48 megapixels, which tests write.
await open(square(64)).removeAlpha().png().toFile(at('small-tile.png'));
heic('phone.heic', 'small-tile.png');
writeFileSync(to('phone.heic'), phonePhoto(readFileSync(to('phone.heic')), 64).file);
await open(square(1024)).removeAlpha().png().toFile(at('tile.png'));
heic('tile.heic', 'tile.png');

// JPEG XL.
const jxl = (name: string, ...args: string[]): void => run('cjxl', ...args, to(name));
jxl('scene.jxl', 'scene.png', '-d', '0');
jxl('lossy.jxl', 'scene.png', '-d', '0.5', '--container=1');
jxl('deep.jxl', 'deep.png', '-d', '0');
jxl('grey.jxl', 'grey.png', '-d', '0');
jxl('window.jxl', 'window.png', '-d', '0');
jxl('p3.jxl', 'p3.png', '-d', '0');
jxl('moving.jxl', join(FIXTURES, 'moving.gif'), '-d', '0');
jxl('from-jpeg.jxl', join(FIXTURES, 'scene.jpg'));
jxl('turned.jxl', join(FIXTURES, 'orientation-6.jpg'));
jxl('private.jxl', join(FIXTURES, 'private.jpg'));

// JPEG 2000, lossless except one.
const jp2 = (name: string, ...args: string[]): void => run('opj_compress', '-o', to(name), ...args);
jp2('scene.jp2', '-i', 'scene.png');
jp2('scene.j2k', '-i', 'scene.png');
jp2('grey.jp2', '-i', 'grey.png');
jp2('window.jp2', '-i', 'window.png');
jp2('window.j2k', '-i', 'window.png');
const deepGrey = await plain.clone().greyscale().toColourspace('grey16').raw({ depth: 'ushort' }).toBuffer();
writeFileSync(at('deep.raw'), deepGrey.swap16());
jp2('deep.jp2', '-i', 'deep.raw', '-F', '120,80,1,16,u');
writeFileSync(at('ycc.raw'), subsampled(scene(), 2));
jp2('subsampled.jp2', '-i', 'ycc.raw', '-F', '120,80,3,8,u@1x1:2x2:2x2');
writeFileSync(at('ycc-422.raw'), subsampled(scene(), 1));
jp2('subsampled-422.j2k', '-i', 'ycc-422.raw', '-F', '120,80,3,8,u@1x1:2x1:2x1');
rewrite('window.jp2', 'unnamed.jp2', (boxes) => boxes.filter(({ name }) => name !== 'cdef'));
const profile = (await sharp(at('p3.png')).metadata()).icc as Buffer;
jp2('p3.jp2', '-i', 'p3.png');
rewrite('p3.jp2', 'p3.jp2', (boxes) =>
  boxes.map((one) =>
    one.name === 'colr' ? { name: 'colr', body: Buffer.concat([Buffer.from([2, 0, 0]), profile]) } : one,
  ),
);
await writePalette();

writeFileSync(
  to('scene.pdf'),
  pdf([{ width: 60, height: 40, content: `.5 0 0 .5 0 0 cm\n${sceneContent()}` }]),
);
writeFileSync(to('scene.psd'), psd(scene(), {}));
writeFileSync(to('scene.cur'), cur([{ side: 64, bytes: iconBitmap(square(64)) }]));
rmSync(work, { recursive: true });

/** Replaces the header box of a file. */
function rewrite(
  from: string,
  name: string,
  change: (boxes: ReturnType<typeof boxesOf>) => ReturnType<typeof boxesOf>,
): void {
  const join = (boxes: ReturnType<typeof boxesOf>) =>
    Buffer.concat(boxes.map((one) => box(one.name, one.body)));
  const boxes = boxesOf(readFileSync(to(from))).map((one) =>
    one.name === 'jp2h' ? { name: 'jp2h', body: join(change(boxesOf(one.body))) } : one,
  );
  writeFileSync(to(name), join(boxes));
}

/** Creates an indexed image with a palette of two shades per channel. */
async function writePalette(): Promise<void> {
  const { data } = scene();
  const indices = Buffer.alloc(data.length / 4);
  for (let pixel = 0; pixel < indices.length; pixel += 1) {
    const bit = (channel: number) => ((data[pixel * 4 + channel] as number) >= 128 ? 1 : 0);
    indices[pixel] = bit(0) * 4 + bit(1) * 2 + bit(2);
  }
  writeFileSync(at('indices.raw'), indices);
  jp2('palette.jp2', '-i', 'indices.raw', '-F', '120,80,1,8,u');
  const table = Array.from({ length: 8 }, (_, index) => [4, 2, 1].map((bit) => (index & bit ? 192 : 64)));
  const pclr = Buffer.from([0, 8, 3, 7, 7, 7, ...table.flat()]);
  const cmap = Buffer.from([0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 1, 2]);
  const colour = Buffer.from([1, 0, 0, 0, 0, 0, 16]);
  rewrite('palette.jp2', 'palette.jp2', (boxes) => [
    ...boxes.map((one) => (one.name === 'colr' ? { name: 'colr', body: colour } : one)),
    { name: 'pclr', body: pclr },
    { name: 'cmap', body: cmap },
  ]);
}

/** Creates an sYCC image with colour at half the horizontal resolution, for groups of `rows` rows. */
function subsampled({ width, height, data }: Raster, rows: 1 | 2): Buffer {
  const planes = [0, 1, 2].map(() => Buffer.alloc(width * height));
  const weights = [
    [0.299, 0.587, 0.114],
    [-0.168736, -0.331264, 0.5],
    [0.5, -0.418688, -0.081312],
  ];
  for (let pixel = 0; pixel < width * height; pixel += 1) {
    for (const [plane, row] of weights.entries()) {
      const sum = row.reduce(
        (value, weight, channel) => value + weight * (data[pixel * 4 + channel] as number),
        0,
      );
      (planes[plane] as Buffer)[pixel] = Math.max(0, Math.min(255, Math.round(sum + (plane > 0 ? 128 : 0))));
    }
  }
  const offsets = [0, 1, width, width + 1].slice(0, rows * 2);
  const half = (plane: Buffer): Buffer => {
    const small = Buffer.alloc((width / 2) * (height / rows));
    for (let y = 0; y < height / rows; y += 1) {
      for (let x = 0; x < width / 2; x += 1) {
        const from = y * rows * width + x * 2;
        const sum = offsets.reduce((value, offset) => value + (plane[from + offset] as number), 0);
        small[y * (width / 2) + x] = Math.round(sum / offsets.length);
      }
    }
    return small;
  };
  const [light, blue, red] = planes as [Buffer, Buffer, Buffer];
  return Buffer.concat([light, half(blue), half(red)]);
}
