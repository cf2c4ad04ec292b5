/** @module Images for the comparison of thumbnails: generated images, and images from a folder. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import sharp, { type Sharp } from 'sharp';
import type { InputType } from '../../src/formats.ts';
import { seeded } from '../stress/random.ts';
import { photo, screen } from './images.ts';

/** An image to create thumbnails of. */
export interface Picture {
  readonly name: string;
  readonly type: InputType;
  readonly bytes: Buffer;
}

/** Minimum length of the longer side in pixels. */
const MIN_SIDE = 400;

/** Generates photos, pages of text, scans, screenshots and drawings, as JPEG, WebP and PNG, with even and odd sides. */
export async function generatePictures(): Promise<Picture[]> {
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
  const pictures = await Promise.all(
    Object.entries(sources).flatMap(([name, source]) => [
      encode(`${name}, JPEG`, 'jpg', source.clone().jpeg({ quality: 90 })),
      encode(`${name}, WebP`, 'webp', source.clone().webp({ quality: 90 })),
      encode(`${name}, PNG`, 'png', source.clone().png({ compressionLevel: 1 })),
    ]),
  );
  const veil = drawing(1400, 1050).ensureAlpha(0.6).png();
  return [...pictures, await encode('translucent drawing, PNG', 'png', veil)];
}

async function encode(name: string, type: InputType, image: Sharp): Promise<Picture> {
  return { name, type, bytes: await image.toBuffer() };
}

/**
 * Reads the images of a folder whose resizing can be compared: still, upright, with 8 bits per channel and without a
 * colour profile, so that only the size changes.
 */
export async function readPictures(folder: string): Promise<Picture[]> {
  const pictures: Picture[] = [];
  for (const name of (await readdir(folder)).sort()) {
    const bytes = await readFile(join(folder, name));
    const type = await comparableType(bytes);
    if (type) pictures.push({ name, type, bytes });
  }
  return pictures;
}

const TYPES: Readonly<Record<string, InputType>> = { jpeg: 'jpg', png: 'png', webp: 'webp' };

async function comparableType(bytes: Buffer): Promise<InputType | undefined> {
  try {
    const {
      width,
      height,
      format,
      space,
      depth,
      pages = 1,
      orientation = 1,
      icc,
    } = await sharp(bytes).metadata();
    await sharp(bytes, { failOn: 'warning' }).stats();
    const isPlain = pages === 1 && orientation === 1 && !icc && depth === 'uchar';
    const hasPlainColours = space === 'srgb' || space === 'b-w';
    return isPlain && hasPlainColours && Math.max(width, height) >= MIN_SIDE ? TYPES[format] : undefined;
  } catch {
    return undefined;
  }
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
