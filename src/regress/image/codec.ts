/**
 * @module Decodes results with libraries that are independent of the tools under test (JPEG XL with djxl, which is not), and
 * encodes images for the report.
 */

import { createHash } from 'node:crypto';
import sharp, { type Metadata } from 'sharp';
import type { OutputType } from '../../formats.ts';
import { decodeBmp } from './bmp.ts';
import { readIcon } from './ico.ts';
import { clearHidden, type DecodedImage, type ImageMetadata, type Raster } from './image.ts';
import { jxlToPng } from './jxl.ts';
import { renderPages } from './pdf.ts';

type Decode = (file: Buffer) => Promise<DecodedImage>;

const DECODERS: Readonly<Record<OutputType, Decode>> = {
  webp: decodeWithSharp,
  png: decodeWithSharp,
  jpg: decodeWithSharp,
  gif: decodeWithSharp,
  bmp: async (file) => withoutMetadata([decodeBmp(file)]),
  avif: decodeWithSharp,
  tiff: decodeWithSharp,
  jxl: async (file) => decodeWithSharp(await jxlToPng(file)),
  ico: decodeIcon,
  pdf: async (file) => withoutMetadata(await renderPages(file)),
};

/**
 * Decodes a converted file with all frames or pages.
 *
 * @throws {Error} with the decoder's message if the file cannot be decoded
 */
export function decode(file: Buffer, type: OutputType): Promise<DecodedImage> {
  return DECODERS[type](file);
}

/** Decodes the largest image of an icon, which the service writes first. */
async function decodeIcon(file: Buffer): Promise<DecodedImage> {
  const [first] = readIcon(file);
  if (!first) throw new Error('icon without images');
  if ('png' in first) return decodeWithSharp(first.png);
  const { width, height, data } = first.raster;
  return { frames: [first.raster], facts: { width, height, frames: 1, alpha: clearHidden(data) } };
}

async function decodeWithSharp(file: Buffer): Promise<DecodedImage> {
  const metadata = await sharp(file, { animated: true }).metadata();
  const { data, info } = await sharp(file, { animated: true })
    .toColourspace('srgb')
    .ensureAlpha()
    .raw({ depth: 'uchar' })
    .toBuffer({ resolveWithObject: true });
  const alpha = clearHidden(data);
  const count = metadata.pages ?? 1;
  const height = info.height / count;
  const size = info.width * height * 4;
  const frames = Array.from({ length: count }, (_, at) => ({
    width: info.width,
    height,
    data: data.subarray(at * size, (at + 1) * size),
  }));
  return { frames, facts: { width: info.width, height, frames: count, alpha, ...toMetadata(metadata) } };
}

/** Converts sharp's metadata; absent properties stay undefined. */
function toMetadata({
  pages = 1,
  delay = [],
  loop = 0,
  depth,
  icc,
  exif,
  iptc,
  xmp,
}: Metadata): Partial<ImageMetadata> {
  const metadata = Object.entries({ exif, iptc, xmp }).flatMap(([kind, bytes]) => (bytes ? [kind] : []));
  return {
    ...(pages > 1 && { delays: delay, plays: loop }),
    ...(depth === 'ushort' && { depth: 16 }),
    ...(icc && { profile: createHash('sha256').update(icc).digest('hex').slice(0, 8) }),
    ...(metadata.length > 0 && { metadata }),
  };
}

function withoutMetadata(frames: readonly Raster[]): DecodedImage {
  const [{ width, height }] = frames as [Raster];
  return { frames, facts: { width, height, frames: frames.length, alpha: false } };
}

/** A WebP file and its size in pixels. */
export interface EncodedImage {
  readonly bytes: Buffer;
  readonly width: number;
  readonly height: number;
}

/**
 * Encodes a raster as WebP for display: lossless up to 200 × 200 pixels, lossy with quality 82 above.
 *
 * @param maxSide maximum width and height in pixels, if not enlarged
 * @param enlarge integer factor of nearest-neighbour scaling; 1 does not enlarge
 */
export async function encode(raster: Raster, maxSide: number, enlarge = 1): Promise<EncodedImage> {
  const { width, height, data } = raster;
  const side = (pixels: number) => (enlarge > 1 ? pixels * enlarge : Math.min(pixels, maxSide));
  const kernel = enlarge > 1 ? 'nearest' : 'lanczos3';
  const { data: bytes, info } = await sharp(data, { raw: { width, height, channels: 4 } })
    .resize(side(width), side(height), { fit: 'inside', kernel })
    .webp(width * height <= 200 * 200 ? { lossless: true } : { quality: 82 })
    .toBuffer({ resolveWithObject: true });
  return { bytes, width: info.width, height: info.height };
}
