/**
 * @module Compares thumbnails of the service and of sharp with the same reference: all pixels decoded, and resized with Pillow's
 * Lanczos filter.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import sharp, { type Sharp } from 'sharp';
import type { ConversionEngine } from '../../src/conversion/engine.ts';
import { convertWith, typeOf } from '../../test/helpers/engine.ts';
import { resizeByPillow } from '../../test/helpers/pillow.ts';
import { difference, type Pixels, toPixels } from '../../test/helpers/pixels.ts';
import { startEngine } from '../../test/helpers/service.ts';
import { markdownTable, percentile } from '../statistics.ts';
import { seeded } from '../stress/random.ts';
import { photo, screen } from './images.ts';

/** Width and height of the boxes that thumbnails fit in, in pixels. */
const SIZES = [150, 300, 500, 1200];
/** Minimum length of the longer side of an image in pixels. */
const MIN_SIDE = 400;

type Picture = readonly [name: string, bytes: Buffer];

/** PSNR of one thumbnail by each program, in dB. */
interface Comparison {
  readonly name: string;
  readonly size: number;
  readonly ours: number;
  readonly sharp: number;
}

/** Compares thumbnails of generated images, and of those in a folder. Returns tables. */
export async function measureQuality(folder?: string): Promise<string> {
  const pictures = [...(await generatePictures()), ...(folder ? await readPictures(folder) : [])];
  const engine = await startEngine();
  try {
    const all: Comparison[] = [];
    for (const picture of pictures) all.push(...(await compareThumbnails(engine, picture)));
    return format(all, pictures.length);
  } finally {
    await engine.close();
  }
}

/**
 * Creates thumbnails of an image in all sizes below its own, and compares them. The width and height of sharp's thumbnails can
 * differ by one pixel, so each thumbnail is compared with a reference of the same size.
 */
async function compareThumbnails(engine: ConversionEngine, [name, bytes]: Picture): Promise<Comparison[]> {
  const whole = await toPixels(sharp(bytes));
  const sizes = SIZES.filter((size) => size < Math.max(whole.width, whole.height));
  const type = (await typeOf(bytes)) ?? 'jpg';
  const thumbnails: Pixels[] = [];
  for (const size of sizes) {
    const options = { format: 'png', quality: 80, stripMetadata: true, width: size, height: size } as const;
    const result = await convertWith(engine, { type, bytes }, options, ({ path }) => readFile(path));
    // As the sharp server of the benchmark, with sharp's default of shrink-on-load.
    const bySharp = sharp(bytes).autoOrient().resize({ width: size, height: size, fit: 'inside' });
    thumbnails.push(await toPixels(sharp(result)), await toPixels(bySharp));
  }
  const references = await resizeByPillow(whole, thumbnails);
  const psnr = thumbnails.map((thumbnail, at) => difference(thumbnail, references[at] as Pixels).psnr);
  return sizes.map((size, at) => ({
    name,
    size,
    ours: psnr[2 * at] as number,
    sharp: psnr[2 * at + 1] as number,
  }));
}

const formatDb = (psnr: number): string => (Number.isFinite(psnr) ? `${psnr.toFixed(1)} dB` : 'equal');

function format(all: readonly Comparison[], count: number): string {
  const row = (program: 'ours' | 'sharp') => {
    const psnr = all.map((one) => one[program]);
    return [
      program === 'ours' ? 'imagemill' : program,
      ...[0, 0.1, 0.5].map((share) => formatDb(percentile(psnr, share))),
    ];
  };
  const worst = [...all].sort((a, b) => a.ours - b.ours).slice(0, 10);
  return [
    `${all.length} thumbnails of ${count} images, ${SIZES.join(', ')} px, compared with all pixels decoded and resized with Pillow's Lanczos filter. PSNR:`,
    markdownTable(['', 'worst', '10th percentile', 'median'], [row('ours'), row('sharp')]),
    'The worst of imagemill:',
    markdownTable(
      ['image', 'px', 'imagemill', 'sharp'],
      worst.map((one) => [one.name, `${one.size}`, formatDb(one.ours), formatDb(one.sharp)]),
    ),
  ].join('\n\n');
}

/** Generates photos, pages of text, scans, screenshots and drawings, as JPEG, WebP and PNG, with even and odd sides. */
async function generatePictures(): Promise<Picture[]> {
  const large = await photo(2725, 2225);
  const cut = (left: number, top: number, width: number, height: number): Sharp =>
    large.clone().extract({ left, top, width, height });
  const screenshot = sharp(screen()).flatten();
  const text = page(1240, 1754, 24);
  const sources: Readonly<Record<string, Sharp>> = {
    'photo 2725×2225': large,
    'photo 2000×1500': cut(100, 50, 2000, 1500),
    'photo 1366×1025': cut(900, 800, 1366, 1025),
    'photo 1000×750': cut(1500, 1300, 1000, 750),
    page: text,
    'page, large print': page(1653, 2339, 46),
    scan: await scan(text),
    screenshot,
    'screenshot 1366×768': screenshot.clone().extract({ left: 0, top: 0, width: 1366, height: 768 }),
    drawing: drawing(1600, 1200),
    'drawing 1001×801': drawing(1001, 801),
    'technical drawing': technicalDrawing(2000, 1400),
  };
  const images = Object.entries(sources).flatMap(([name, source]) => [
    [`${name}, JPEG`, source.clone().jpeg({ quality: 90 })] as const,
    [`${name}, WebP`, source.clone().webp({ quality: 90 })] as const,
    [`${name}, PNG`, source.clone().png({ compressionLevel: 1 })] as const,
  ]);
  images.push(['translucent drawing, PNG', drawing(1400, 1050).ensureAlpha(0.6).png()]);
  return Promise.all(images.map(async ([name, image]) => [name, await image.toBuffer()] as const));
}

/**
 * Reads the images of a folder whose resizing can be compared: still, upright, with 8 bits per channel and without a colour
 * profile, so that only the size changes.
 */
async function readPictures(folder: string): Promise<Picture[]> {
  const pictures: Picture[] = [];
  for (const name of readdirSync(folder).sort()) {
    const bytes = readFileSync(join(folder, name));
    if (await isComparable(bytes).catch(() => false)) pictures.push([name, bytes]);
  }
  return pictures;
}

async function isComparable(bytes: Buffer): Promise<boolean> {
  const { width, height, pages = 1, orientation = 1, ...metadata } = await sharp(bytes).metadata();
  const { format: type, space, depth, icc } = metadata;
  await sharp(bytes, { failOn: 'warning' }).stats();
  const isPlain =
    pages === 1 && orientation === 1 && !icc && depth === 'uchar' && ['srgb', 'b-w'].includes(space);
  return isPlain && ['jpeg', 'png', 'webp'].includes(type) && Math.max(width, height) >= MIN_SIDE;
}

function svg(width: number, height: number, content: string): Sharp {
  const head = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">`;
  return sharp(
    Buffer.from(`${head}<rect width="100%" height="100%" fill="#fff"/>${content}</svg>`),
  ).removeAlpha();
}

const WORDS = 'lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt'.split(
  ' ',
);

function page(width: number, height: number, size: number): Sharp {
  const random = seeded(size);
  const lines = Array.from({ length: Math.floor((height - 200) / (size * 1.5)) }, (_, row) => {
    const words = Array.from({ length: Math.floor((width - 200) / size / 3.4) }, () => random.pick(WORDS));
    return `<text x="100" y="${120 + row * size * 1.5}" font-size="${size}">${words.join(' ')}</text>`;
  });
  return svg(width, height, `<g font-family="serif" fill="#111">${lines.join('')}</g>`);
}

/** Rotates the page a little, blurs it as a lens does, and adds the noise of a sensor. */
async function scan(text: Sharp): Promise<Sharp> {
  const { data, info } = await text
    .clone()
    .rotate(0.7, { background: '#fff' })
    .blur(0.7)
    .greyscale()
    .raw()
    .toBuffer({ resolveWithObject: true });
  const random = seeded(7);
  const noisy = data.map((value) => Math.max(0, Math.min(255, value * 0.93 + 8 + random.below(9) - 4)));
  return sharp(noisy, { raw: { width: info.width, height: info.height, channels: info.channels } });
}

function drawing(width: number, height: number): Sharp {
  const { below } = seeded(width);
  const shapes = Array.from(
    { length: 140 },
    () =>
      `<circle cx="${below(width)}" cy="${below(height)}" r="${8 + below(width / 12)}" fill="hsl(${below(360)},70%,55%)" fill-opacity="0.7" stroke="#333" stroke-width="${below(4)}"/>`,
  );
  return svg(width, height, shapes.join(''));
}

function technicalDrawing(width: number, height: number): Sharp {
  const { below } = seeded(height);
  const lines = Array.from(
    { length: 90 },
    (_, at) =>
      `<path d="M${below(width)} ${below(height)}${at % 3 === 0 ? 'H' : at % 3 === 1 ? 'V' : 'L300 '}${below(height)}" stroke-width="${1 + (at % 3)}"/>`,
  );
  const circles = Array.from(
    { length: 40 },
    () => `<circle cx="${below(width)}" cy="${below(height)}" r="${10 + below(150)}"/>`,
  );
  return svg(width, height, `<g fill="none" stroke="#000">${lines.join('')}${circles.join('')}</g>`);
}
