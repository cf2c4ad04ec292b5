/** @module Generates the benchmark images, identical on every machine. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import sharp, { type Sharp } from 'sharp';
import { type Random, seeded } from '../stress/random.ts';

/** A benchmark image. */
export interface Image {
  /** Name in the report. */
  readonly name: string;
  /** File name. */
  readonly file: string;
  readonly bytes: Buffer;
  /** Pixels of one frame. */
  readonly pixels: number;
}

type Generator = () => Promise<Buffer>;

type Generators = Readonly<
  Record<string, readonly [file: string, width: number, height: number, make: Generator]>
>;

const GENERATORS: Generators = {
  'photo 12 MP': ['photo-12.jpg', 4000, 3000, () => photo(4000, 3000).then(jpeg)],
  'photo 3 MP': ['photo-3.jpg', 2000, 1500, () => photo(2000, 1500).then(jpeg)],
  'photo 0.75 MP': ['photo-0.75.jpg', 1000, 750, () => photo(1000, 750).then(jpeg)],
  'photo 320×240': ['photo-320.jpg', 320, 240, () => photo(320, 240).then(jpeg)],
  'png photo': ['photo.png', 1000, 750, async () => (await photo(1000, 750)).png().toBuffer()],
  'png screen': ['screen.png', 1600, 1200, () => sharp(screen()).flatten().png().toBuffer()],
  'gif animation': ['moving.gif', 320, 240, () => animation()],
  tiff: [
    'photo.tiff',
    1000,
    750,
    async () => (await photo(1000, 750)).tiff({ compression: 'lzw' }).toBuffer(),
  ],
  avif: ['photo.avif', 1000, 750, async () => (await photo(1000, 750)).avif({ effort: 2 }).toBuffer()],
  svg: ['drawing.svg', 800, 600, async () => drawing()],
  ico: ['icon.ico', 256, 256, icon],
};

/** Sizes of cameras, and of pictures that were cropped, edited or downloaded, whose sides eight does not divide. */
const JPEG_SIZES = [
  ...([
    [4032, 3024],
    [4619, 3464],
    [3021, 2013],
    [2000, 1333],
  ] as const),
  ...([
    [1999, 1333],
    [1200, 800],
    [1281, 853],
  ] as const),
];

/** Sources of thumbnails in the sizes that people send. */
const SOURCES: Generators = {
  ...Object.fromEntries(
    JPEG_SIZES.map(([width, height]) => [
      `jpeg ${width}×${height}`,
      [`photo-${width}.jpg`, width, height, () => photo(width, height).then(jpeg)],
    ]),
  ),
  'jpeg screen 2311×1733': [
    'screen.jpg',
    2311,
    1733,
    () => enlargedScreen(2311, 1733).jpeg({ quality: 90 }).toBuffer(),
  ],
  'png screen 3840×2160': ['screen.png', 3840, 2160, () => enlargedScreen(3840, 2160).png().toBuffer()],
  'png photo 2000×1500': ['photo.png', 2000, 1500, async () => (await photo(2000, 1500)).png().toBuffer()],
  'webp 4000×3000': ['photo.webp', 4000, 3000, async () => (await photo(4000, 3000)).webp().toBuffer()],
  'avif 2000×1500': [
    'photo.avif',
    2000,
    1500,
    async () => (await photo(2000, 1500)).avif({ effort: 2 }).toBuffer(),
  ],
  'tiff 2000×1500': [
    'photo.tiff',
    2000,
    1500,
    async () => (await photo(2000, 1500)).tiff({ compression: 'lzw' }).toBuffer(),
  ],
  'gif animation 480×270': ['frames.gif', 480, 270, () => animation(480, 270, 60)],
  'jpeg P3 4032×3024': ['p3.jpg', 4032, 3024, () => photo(4032, 3024).then(displayP3)],
  'jpeg P3 600×450': ['small-p3.jpg', 600, 450, () => photo(600, 450).then(displayP3)],
};

/**
 * Generates images and writes them to `folder`.
 *
 * @param kind the images of the comparison, or sources of thumbnails
 */
export async function makeImages(folder: string, kind: 'all' | 'sources' = 'all'): Promise<Image[]> {
  const images: Image[] = [];
  for (const [name, [file, width, height, make]] of Object.entries(kind === 'all' ? GENERATORS : SOURCES)) {
    const bytes = await make();
    writeFileSync(join(folder, file), bytes);
    images.push({ name, file, bytes, pixels: width * height });
  }
  return images;
}

const enlargedScreen = (width: number, height: number): Sharp =>
  sharp(screen(), { density: (72 * width) / 1600 })
    .resize(width, height, { fit: 'fill' })
    .flatten();

const displayP3 = (image: Sharp): Promise<Buffer> =>
  image.withIccProfile('p3').jpeg({ quality: 90 }).toBuffer();

const jpeg = (image: Sharp): Promise<Buffer> => image.jpeg({ quality: 90 }).toBuffer();

/**
 * Generates noise in octaves; finer octaves are fainter. As JPEG it takes about as many bits per pixel as a photo: 1.8
 * at quality 90.
 */
export async function photo(width: number, height: number): Promise<Sharp> {
  const random = seeded(width);
  const octaves = await Promise.all(
    [4, 16, 64, 256, 1024].map((cells) => noise(random, cells, width, height)),
  );
  const weights = [0.5, 0.27, 0.16, 0.06, 0.03];
  const pixels = Buffer.alloc(width * height * 3);
  for (let at = 0; at < pixels.length; at += 1) {
    let value = 0;
    for (const [index, octave] of octaves.entries())
      value += (octave[at] as number) * (weights[index] as number);
    pixels[at] = Math.max(0, Math.min(255, (value - 128) * 1.8 + 128));
  }
  return sharp(pixels, { raw: { width, height, channels: 3 } });
}

async function noise(random: Random, cells: number, width: number, height: number): Promise<Buffer> {
  const [columns, rows] = [cells, Math.max(2, Math.round((cells * height) / width))];
  const grid = Buffer.alloc(columns * rows * 3);
  for (let at = 0; at < grid.length; at += 1) grid[at] = random.below(256);
  return sharp(grid, { raw: { width: columns, height: rows, channels: 3 } })
    .resize(width, height, { fit: 'fill', kernel: 'cubic' })
    .raw()
    .toBuffer();
}

/** Draws a screenshot: a window with text, a dark sidebar and coloured tiles. */
export function screen(): Buffer {
  const sentence = 'The quick brown fox jumps over 1234567890 lazy dogs. '.repeat(3);
  const lines = Array.from(
    { length: 58 },
    (_, row) =>
      `<text x="290" y="${60 + row * 19}" font-size="14">${sentence.slice(row % 17, 110 + (row % 17))}</text>`,
  );
  const tiles = Array.from(
    { length: 40 },
    (_, at) =>
      `<rect x="${1200 + (at % 4) * 95}" y="${60 + Math.floor(at / 4) * 110}" width="85" height="95" rx="8" fill="hsl(${at * 9},60%,60%)"/>`,
  );
  return Buffer.from(
    `<svg xmlns="http://www.w3.org/2000/svg" width="1600" height="1200"><rect width="1600" height="1200" fill="#fff"/>
     <rect width="260" height="1200" fill="#20262e"/><g fill="#222" font-family="sans-serif">${lines.join('')}</g>${tiles.join('')}</svg>`,
  );
}

async function animation(width = 320, height = 240, count = 12): Promise<Buffer> {
  const { data } = await (await photo(width, height)).raw().toBuffer({ resolveWithObject: true });
  const frames = await Promise.all(
    Array.from({ length: count }, (_, at) =>
      sharp(data, { raw: { width, height, channels: 3 } })
        .composite([
          {
            input: Buffer.from(
              `<svg width="60" height="60"><circle cx="30" cy="30" r="28" fill="#e33"/></svg>`,
            ),
            left: Math.round((at * (width - 80)) / count),
            top: 90,
          },
        ])
        .png()
        .toBuffer(),
    ),
  );
  return sharp(frames, { join: { animated: true } })
    .gif({ delay: 80 })
    .toBuffer();
}

function drawing(): Buffer {
  const { below } = seeded(800);
  const shapes = Array.from(
    { length: 120 },
    () =>
      `<circle cx="${below(800)}" cy="${below(600)}" r="${10 + below(70)}" fill="hsl(${below(360)},70%,55%)" fill-opacity="0.7"/>`,
  );
  return Buffer.from(
    `<svg xmlns="http://www.w3.org/2000/svg" width="800" height="600"><rect width="800" height="600" fill="#f4f1e8"/>${shapes.join('')}</svg>`,
  );
}

/** Creates an icon with one PNG-compressed image of 256×256 pixels, as browser icons have. */
async function icon(): Promise<Buffer> {
  const png = await (await photo(256, 256)).ensureAlpha().png().toBuffer();
  const head = Buffer.alloc(22);
  head.writeUInt16LE(1, 2);
  head.writeUInt16LE(1, 4);
  head.writeUInt16LE(1, 10);
  head.writeUInt16LE(32, 12);
  head.writeUInt32LE(png.length, 14);
  head.writeUInt32LE(head.length, 18);
  return Buffer.concat([head, png]);
}
