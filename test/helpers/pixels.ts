/**
 * @module Decodes and compares images with decoders that are independent of the tools under test.
 */
import sharp, { type Sharp } from 'sharp';
import type { OutputType } from '../../src/tables/formats.ts';
import { pipe } from './process.ts';

/** An uncompressed image. */
export interface Pixels {
  readonly width: number;
  readonly height: number;
  /** RGBA, 8 bits per channel, rows from the top. */
  readonly data: Buffer;
}

/** Decodes a result to sRGB. Frames of animations are stacked vertically. */
export async function decode(file: Uint8Array, type: OutputType | 'any' = 'any'): Promise<Pixels> {
  if (type === 'bmp') return decodeBmp(Buffer.from(file));
  if (type === 'pdf') return decode(await drawPdf(file));
  return toPixels(sharp(file, { animated: true }));
}

/** Converts an image of sharp to sRGB. */
export async function toPixels(image: Sharp): Promise<Pixels> {
  const pixels = image.ensureAlpha().toColourspace('srgb').raw({ depth: 'uchar' });
  const { data, info } = await pixels.toBuffer({ resolveWithObject: true });
  return { width: info.width, height: info.height, data };
}

/**
 * Decodes a 24-bit BMP with a 40-byte header, the only kind that every viewer reads.
 *
 * @throws {Error} for any other kind
 */
function decodeBmp(file: Buffer): Pixels {
  const facts = {
    header: file.readUInt32LE(14),
    bits: file.readUInt16LE(28),
    compression: file.readUInt32LE(30),
  };
  if (facts.header !== 40 || facts.bits !== 24 || facts.compression !== 0) {
    throw new Error(`not a plain 24-bit BMP: ${JSON.stringify(facts)}`);
  }
  const start = file.readUInt32LE(10);
  const width = file.readInt32LE(18);
  const height = file.readInt32LE(22);
  const stride = (width * 3 + 3) & ~3;
  const data = Buffer.alloc(width * height * 4, 255);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const from = start + (height - 1 - y) * stride + x * 3;
      data.set([file[from + 2], file[from + 1], file[from]] as number[], (y * width + x) * 4);
    }
  }
  return { width, height, data };
}

/**
 * Renders a page as PNG with pdftocairo, at one pixel per point. Pages count from 1. (The renderer
 * of pdftoppm is off by one pixel.)
 */
export function drawPdf(file: Uint8Array, page = 1): Promise<Buffer> {
  const only = ['-singlefile', '-f', String(page), '-l', String(page)];
  return pipe('pdftocairo', ['-r', '72', '-png', ...only, '-', '-'], file);
}

export const sizeOf = ({ width, height }: Pick<Pixels, 'width' | 'height'>): [number, number] => [
  width,
  height,
];

/** Creates an image of one colour. */
export const plain = (width: number, height: number, background = 'teal'): Sharp =>
  sharp({ create: { width, height, channels: 3, background } });

/** Flattens the image onto a grey background. */
export function onGrey({ width, height, data }: Pixels, grey: number): Pixels {
  const result = Buffer.alloc(data.length, 255);
  for (let at = 0; at < data.length; at += 4) {
    const alpha = (data[at + 3] as number) / 255;
    for (let channel = 0; channel < 3; channel += 1) {
      result[at + channel] = Math.round((data[at + channel] as number) * alpha + grey * (1 - alpha));
    }
  }
  return { width, height, data: result };
}

/** Difference between two images. */
export interface Difference {
  /** Peak signal-to-noise ratio in dB; Infinity for identical images. */
  readonly psnr: number;
  /** Maximum difference of one channel of one pixel, 0 to 255. */
  readonly max: number;
  /** Mean absolute difference per channel, 0 to 255. */
  readonly mae: number;
}

/**
 * Compares two images of the same size on white and on black, and returns the larger difference.
 *
 * @throws {Error} if the sizes differ
 */
export function difference(one: Pixels, other: Pixels): Difference {
  if (one.width !== other.width || one.height !== other.height) {
    throw new Error(`sizes differ: ${one.width}x${one.height} and ${other.width}x${other.height}`);
  }
  const [white, black] = [255, 0].map((grey) => compare(one.data, other.data, grey)) as [
    Difference,
    Difference,
  ];
  return white.psnr < black.psnr ? white : black;
}

function compare(one: Buffer, other: Buffer, grey: number): Difference {
  let squares = 0;
  let sum = 0;
  let max = 0;
  for (let at = 0; at < one.length; at += 4) {
    const alpha = (one[at + 3] as number) / 255;
    const otherAlpha = (other[at + 3] as number) / 255;
    const shift = grey * (otherAlpha - alpha);
    for (let channel = at; channel < at + 3; channel += 1) {
      const delta = Math.abs(
        (one[channel] as number) * alpha - (other[channel] as number) * otherAlpha + shift,
      );
      squares += delta * delta;
      sum += delta;
      if (delta > max) max = delta;
    }
  }
  const values = one.length * 0.75;
  const psnr = squares === 0 ? Number.POSITIVE_INFINITY : 10 * Math.log10(255 ** 2 / (squares / values));
  return { psnr, max, mae: sum / values };
}

/** Returns the colour of one pixel as [red, green, blue, alpha]. */
export function pixelAt({ width, data }: Pixels, x: number, y: number): number[] {
  const at = (y * width + x) * 4;
  return [...data.subarray(at, at + 4)];
}
