/**
 * @module Regenerates fixtures/extra/: images of the formats of EXTRA_INPUTS. Requires encoders of
 * Debian 13, which the service never runs: apt install libheif-examples libheif-plugin-x265
 * libjxl-tools libopenjp2-tools, and exiftool.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempDisposableSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sharp, { type Sharp } from 'sharp';
import { type FileBox, uint16, withPrimary } from './fixtures/boxes.ts';
import { phonePhoto } from './fixtures/heif-writer.ts';
import { colourBox, JP2_COLOURS, withHeader } from './fixtures/jp2.ts';
import { pdf, sceneContent } from './fixtures/pdf.ts';
import { psd } from './fixtures/psd.ts';
import { open, scene, square } from './fixtures/scene.ts';
import { cur, iconBitmap, type Raster, withoutChunk } from './fixtures/writers.ts';

const FOLDER = new URL('../fixtures/extra/', import.meta.url).pathname;
const FIXTURES = new URL('../fixtures/images/', import.meta.url).pathname;
rmSync(FOLDER, { recursive: true, force: true });
mkdirSync(FOLDER, { recursive: true });
using temporary = mkdtempDisposableSync(join(tmpdir(), 'imagemill-extra-'));
const work = temporary.path;
const at = (name: string): string => join(work, name);
const to = (name: string): string => join(FOLDER, name);
const run = (program: string, ...args: string[]): void =>
  void execFileSync(program, args, { stdio: 'ignore', cwd: work });
/** Images of `fixtures/images/` that are encoded in other formats. */
const COPIES = [
  ['turned', 'orientation-6.jpg'],
  ['private', 'private.jpg'],
] as const;

/** Sampling factors of four channels. */
const UNEVEN = [
  [1, 1],
  [2, 1],
  [1, 2],
  [2, 2],
] as const;

const plain = open(scene()).removeAlpha();
const pngs: Readonly<Record<string, Sharp>> = {
  scene: plain,
  deep: plain.clone().toColourspace('rgb16'),
  grey: plain.clone().greyscale(),
  window: open(scene({ transparent: true })),
  p3: plain.clone().withIccProfile('p3'),
  large: plain.clone().resize(256, 192, { kernel: 'nearest', fit: 'fill' }),
  'small-tile': open(square(64)).removeAlpha(),
  tile: open(square(1024)).removeAlpha(),
};
for (const [name, image] of Object.entries(pngs)) await image.png().toFile(at(`${name}.png`));
writeFileSync(at('bare.png'), withoutChunk(readFileSync(at('p3.png')), 'iCCP'));

// HEIC, encoded by x265. Like an image of a phone: a grid with a rotation property that EXIF
// repeats.
const heic = (name: string, ...args: string[]): void =>
  run('heif-enc', '-q', '95', '-p', 'chroma=444', ...args, '-o', to(name));
for (const name of ['scene', 'window', 'p3', 'tile']) heic(`${name}.heic`, `${name}.png`);
heic('deep.heic', '-b', '10', 'deep.png');
heic('named-p3.heic', '--colour_primaries', '12', '--transfer_characteristic', '13', 'bare.png');
for (const [row, top] of [0, 96].entries()) {
  for (const [column, left] of [0, 128].entries()) {
    const tile = sharp(at('large.png')).extract({ left, top, width: 128, height: 96 });
    await tile.png().toFile(at(`tile-${row}-${column}.png`));
  }
}
heic('grid.heic', '-T', 'tile-0-0.png');
for (const [name, source] of COPIES) heic(`${name}.heic`, join(FIXTURES, source));
// Two images with thumbnails; the second image is the primary one.
heic('primary.heic', '-t', '64', 'window.png', 'scene.png');
writeFileSync(to('primary.heic'), withPrimary(readFileSync(to('primary.heic'))));

// A photo with everything that phones add. From tile.heic, tests write one of 48 megapixels.
heic('phone.heic', 'small-tile.png');
writeFileSync(to('phone.heic'), phonePhoto(readFileSync(to('phone.heic')), 64).file);

// JPEG XL.
const jxl = (name: string, ...args: string[]): void => run('cjxl', ...args, to(name));
for (const name of ['scene', 'deep', 'grey', 'window', 'p3']) jxl(`${name}.jxl`, `${name}.png`, '-d', '0');
// 10 bits per channel, also of the alpha.
const samples = [...scene({ transparent: true }).data].map((value) => Math.round((value * 1023) / 255));
const pam = 'P7\nWIDTH 120\nHEIGHT 80\nDEPTH 4\nMAXVAL 1023\nTUPLTYPE RGB_ALPHA\nENDHDR\n';
writeFileSync(at('ten.pam'), Buffer.concat([Buffer.from(pam), uint16(...samples)]));
jxl('ten-window.jxl', 'ten.pam', '-d', '0');
jxl('lossy.jxl', 'scene.png', '-d', '0.5', '--container=1');
jxl('moving.jxl', join(FIXTURES, 'moving.gif'), '-d', '0');
jxl('from-jpeg.jxl', join(FIXTURES, 'scene.jpg'));
for (const [name, source] of COPIES) jxl(`${name}.jxl`, join(FIXTURES, source));

// JPEG 2000, lossless except one.
const jp2 = (name: string, ...args: string[]): void => run('opj_compress', '-o', to(name), ...args);
for (const name of ['scene.jp2', 'scene.j2k', 'grey.jp2', 'window.jp2', 'window.j2k'])
  jp2(name, '-i', name.replace(/\w+$/, 'png'));
const deepGrey = await plain.clone().greyscale().toColourspace('grey16').raw({ depth: 'ushort' }).toBuffer();
writeFileSync(at('deep.raw'), deepGrey.swap16());
jp2('deep.jp2', '-i', 'deep.raw', '-F', '120,80,1,16,u');
writeFileSync(at('ycc.raw'), subsampled(scene(), 2));
jp2('subsampled.jp2', '-i', 'ycc.raw', '-F', '120,80,3,8,u@1x1:2x2:2x2');
writeFileSync(at('ycc-422.raw'), subsampled(scene(), 1));
jp2('subsampled-422.j2k', '-i', 'ycc-422.raw', '-F', '120,80,3,8,u@1x1:2x1:2x1');
// Each channel has fewer samples in another direction.
writeFileSync(at('uneven.raw'), reduced(scene(), UNEVEN));
jp2('uneven.j2k', '-i', 'uneven.raw', '-F', '120,80,4,8,u@1x1:2x1:1x2:2x2');
rewrite('window.jp2', 'unnamed.jp2', (boxes) => boxes.filter(({ name }) => name !== 'cdef'));
const profile = (await sharp(at('p3.png')).metadata()).icc as Buffer;
jp2('p3.jp2', '-i', 'p3.png');
rewrite('p3.jp2', 'p3.jp2', (boxes) =>
  boxes.map((one) => (one.name === 'colr' ? colourBox({ method: 2, profile }) : one)),
);
await writePalette();

writeFileSync(
  to('scene.pdf'),
  pdf([{ width: 60, height: 40, content: `.5 0 0 .5 0 0 cm\n${sceneContent()}` }]),
);
writeFileSync(to('scene.psd'), psd(scene(), {}));
writeFileSync(to('scene.cur'), cur([{ side: 64, bytes: iconBitmap(square(64)) }]));

/** Writes a copy of a file with other boxes in its header. */
function rewrite(from: string, name: string, change: (boxes: FileBox[]) => FileBox[]): void {
  writeFileSync(to(name), withHeader(readFileSync(to(from)), change));
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
  rewrite('palette.jp2', 'palette.jp2', (boxes) => [
    ...boxes.map((one) => (one.name === 'colr' ? colourBox(JP2_COLOURS.srgb) : one)),
    { name: 'pclr', body: pclr },
    { name: 'cmap', body: cmap },
  ]);
}

/** Takes every sample, or every second one, of each channel in each direction. */
function reduced({ width, data }: Raster, factors: readonly (readonly [x: number, y: number])[]): Buffer {
  const planes = factors.map(([x, y], channel) =>
    Buffer.from(
      data.filter((_, at) => {
        const pixel = Math.floor(at / 4);
        return at % 4 === channel && (pixel % width) % x === 0 && Math.floor(pixel / width) % y === 0;
      }),
    ),
  );
  return Buffer.concat(planes);
}

/**
 * Creates an sYCC image with colour at half the horizontal resolution, for groups of `rows` rows.
 */
function subsampled({ width, height, data }: Raster, rows: 1 | 2): Buffer {
  const weights = [
    [0.299, 0.587, 0.114],
    [-0.168736, -0.331264, 0.5],
    [0.5, -0.418688, -0.081312],
  ];
  const [light, ...colours] = weights.map((row, plane) => {
    const sampleAt = (_: unknown, pixel: number): number => {
      const add = (sum: number, weight: number, channel: number): number =>
        sum + weight * (data[pixel * 4 + channel] as number);
      return Math.max(0, Math.min(255, Math.round(row.reduce(add, 0) + (plane > 0 ? 128 : 0))));
    };
    return Buffer.from(Array.from({ length: width * height }, sampleAt));
  }) as [Buffer, ...Buffer[]];
  const offsets = [0, 1, width, width + 1].slice(0, rows * 2);
  const columns = width / 2;
  const half = (plane: Buffer): Buffer =>
    Buffer.from(
      Array.from({ length: columns * (height / rows) }, (_, at) => {
        const from = Math.floor(at / columns) * rows * width + (at % columns) * 2;
        const sum = offsets.reduce((value, offset) => value + (plane[from + offset] as number), 0);
        return Math.round(sum / offsets.length);
      }),
    );
  return Buffer.concat([light, ...colours.map(half)]);
}
