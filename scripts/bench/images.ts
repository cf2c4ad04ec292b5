/** @module Generates the benchmark images, identical on every machine. */
import sharp, { type Sharp } from 'sharp';
import type { InputType } from '../../src/tables/formats.ts';
import { ico } from '../fixtures/writers.ts';
import { type Random, seeded } from '../stress/random.ts';

/** A benchmark image. */
export interface Image {
  /** Name in the report. */
  readonly name: string;
  readonly type: InputType;
  readonly bytes: Buffer;
  /** Pixels of one frame. */
  readonly pixels: number;
}

/** Type, width, height, and what encodes an image of that size. */
type Row = readonly [type: InputType, width: number, height: number, make: Encoder];
type Encoder = (width: number, height: number) => Promise<Buffer>;

const encoder =
  (
    encode: (image: Sharp) => Sharp,
    draw: (width: number, height: number) => Promise<Sharp> | Sharp = photo,
  ): Encoder =>
  async (width, height) =>
    encode(await draw(width, height)).toBuffer();
const jpeg = (image: Sharp): Sharp => image.jpeg({ quality: 90 });
const [JPEG, PNG, WEBP, AVIF, TIFF, P3] = [
  encoder(jpeg),
  encoder((image) => image.png()),
  encoder((image) => image.webp()),
  encoder((image) => image.avif({ effort: 2 })),
  encoder((image) => image.tiff({ compression: 'lzw' })),
  encoder((image) => jpeg(image.withIccProfile('p3'))),
];

const GENERATORS: Readonly<Record<string, Row>> = {
  'photo 12 MP': ['jpg', 4000, 3000, JPEG],
  'photo 3 MP': ['jpg', 2000, 1500, JPEG],
  'photo 0.75 MP': ['jpg', 1000, 750, JPEG],
  'photo 320×240': ['jpg', 320, 240, JPEG],
  'png photo': ['png', 1000, 750, PNG],
  'png screen': ['png', 1600, 1200, () => sharp(screen()).flatten().png().toBuffer()],
  'gif animation': ['gif', 320, 240, (width, height) => animation(width, height, 12)],
  tiff: ['tiff', 1000, 750, TIFF],
  avif: ['avif', 1000, 750, AVIF],
  svg: ['svg', 800, 600, async () => drawing()],
  // One PNG-compressed image, as browser icons have.
  ico: ['ico', 256, 256, async () => ico([{ side: 256, bytes: await OPAQUE_PNG(256, 256) }])],
};
const OPAQUE_PNG = encoder((image) => image.ensureAlpha().png());

/**
 * Sizes of cameras, and of pictures that were cropped, edited or downloaded, whose sides eight does
 * not divide.
 */
const JPEG_SIZES = ['4032×3024', '4619×3464', '3021×2013', '2000×1333', '1999×1333', '1200×800', '1281×853'];

/** Sources of thumbnails in the sizes that people send. */
const SOURCES: Readonly<Record<string, Row>> = {
  ...Object.fromEntries(
    JPEG_SIZES.map((size): [string, Row] => {
      const [width = 0, height = 0] = size.split('×').map(Number);
      return [`jpeg ${size}`, ['jpg', width, height, JPEG]];
    }),
  ),
  'jpeg screen 2311×1733': ['jpg', 2311, 1733, encoder(jpeg, enlargedScreen)],
  'png screen 3840×2160': ['png', 3840, 2160, encoder((image) => image.png(), enlargedScreen)],
  'png photo 2000×1500': ['png', 2000, 1500, PNG],
  'webp 4000×3000': ['webp', 4000, 3000, WEBP],
  'avif 2000×1500': ['avif', 2000, 1500, AVIF],
  'tiff 2000×1500': ['tiff', 2000, 1500, TIFF],
  'gif animation 480×270': ['gif', 480, 270, (width, height) => animation(width, height, 60)],
  'gif panning 480×270': ['gif', 480, 270, (width, height) => panning(width, height, 24)],
  'jpeg P3 4032×3024': ['jpg', 4032, 3024, P3],
  'jpeg P3 600×450': ['jpg', 600, 450, P3],
};

/** Images of `npm run bench:guard`: one of each kind that is converted in another way. */
const GUARDED: Readonly<Record<string, Row>> = {
  'jpeg 2048×1536': ['jpg', 2048, 1536, JPEG],
  'jpeg 3021×2013': ['jpg', 3021, 2013, JPEG],
  'jpeg 2044×1364': ['jpg', 2044, 1364, JPEG],
  'jpeg P3 2048×1536': ['jpg', 2048, 1536, P3],
  'png photo': ['png', 1000, 750, PNG],
  'png alpha': ['png', 1500, 1000, encoder((image) => image.png(), fadedPhoto)],
  'png palette': ['png', 1600, 1200, encoder((image) => image.png({ palette: true }), enlargedScreen)],
  'png 16 bits': ['png', 1000, 750, encoder((image) => image.toColourspace('rgb16').png())],
  'png one bit': ['png', 2400, 1800, encoder((image) => image.png({ palette: true, colours: 2 }), bilevel)],
  'tiff one bit': ['tiff', 2400, 1800, encoder((image) => image.tiff({ bitdepth: 1 }), bilevel)],
  webp: ['webp', 1600, 1200, WEBP],
  avif: ['avif', 1000, 750, AVIF],
  'gif animation': ['gif', 320, 240, (width, height) => animation(width, height, 12)],
  'svg text': ['svg', 1600, 1200, async () => screen()],
};

const KINDS = { all: GENERATORS, sources: SOURCES, guarded: GUARDED };

/**
 * Generates images.
 *
 * @param kind the images of the comparison, sources of thumbnails, or those of
 *   `npm run bench:guard`
 */
export async function makeImages(kind: keyof typeof KINDS = 'all'): Promise<Image[]> {
  const images: Image[] = [];
  for (const [name, [type, width, height, make]] of Object.entries(KINDS[kind]))
    images.push({ name, type, bytes: await make(width, height), pixels: width * height });
  return images;
}

function enlargedScreen(width: number, height: number): Sharp {
  const drawn = sharp(screen(), { density: (72 * width) / 1600 });
  return drawn.resize(width, height, { fit: 'fill' }).flatten();
}

/** A screenshot in black and white. */
function bilevel(width: number, height: number): Sharp {
  return enlargedScreen(width, height).threshold();
}

/** A photo that is visible in an ellipse with a soft edge. */
async function fadedPhoto(width: number, height: number): Promise<Sharp> {
  const gradient =
    '<radialGradient id="g"><stop offset="0.8"/><stop offset="1" stop-opacity="0"/></radialGradient>';
  const mask = `<svg width="${width}" height="${height}">${gradient}<ellipse cx="50%" cy="50%" rx="50%" ry="50%" fill="url(#g)"/></svg>`;
  const whole = (await photo(width, height)).ensureAlpha();
  return whole.composite([{ input: Buffer.from(mask), blend: 'dest-in' }]);
}

/**
 * Generates noise in octaves; finer octaves are fainter. As JPEG it takes about as many bits per
 * pixel as a photo: 1.8 at quality 90.
 */
async function photo(width: number, height: number): Promise<Sharp> {
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

/** Moves a circle over a still photo. */
async function animation(width: number, height: number, count: number): Promise<Buffer> {
  const { data } = await (await photo(width, height)).raw().toBuffer({ resolveWithObject: true });
  const circle = '<svg width="60" height="60"><circle cx="30" cy="30" r="28" fill="#e33"/></svg>';
  const frames = Array.from({ length: count }, (_, at) =>
    sharp(data, { raw: { width, height, channels: 3 } })
      .composite([{ input: Buffer.from(circle), left: Math.round((at * (width - 80)) / count), top: 90 }])
      .png()
      .toBuffer(),
  );
  return joinFrames(frames);
}

/** Moves the whole frame over a wider photo, so that every pixel changes. */
async function panning(width: number, height: number, count: number): Promise<Buffer> {
  const wide = await (await photo(width + PAN_STEP * (count - 1), height)).png().toBuffer();
  const frames = Array.from({ length: count }, (_, at) =>
    sharp(wide)
      .extract({ left: at * PAN_STEP, top: 0, width, height })
      .png()
      .toBuffer(),
  );
  return joinFrames(frames);
}

/** Pixels by which the photo moves from frame to frame. */
const PAN_STEP = 6;

async function joinFrames(frames: readonly Promise<Buffer>[]): Promise<Buffer> {
  return sharp(await Promise.all(frames), { join: { animated: true } })
    .gif({ delay: frames.map(() => 80) })
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
