import { createHash } from 'node:crypto';
import sharp, { type Metadata } from 'sharp';
import type { OutputType } from '../../formats.ts';
import { decodeBmp } from './bmp.ts';
import { picturesOf } from './ico.ts';
import { clearHidden, type DecodedImage, type ImageMetadata, type Raster } from './image.ts';
import { pngOfJxl } from './jxl.ts';
import { drawPages } from './pdf.ts';

/** Decoders that are not the tools under test. */

type Decode = (file: Buffer) => Promise<DecodedImage>;

const DECODERS: Readonly<Record<OutputType, Decode>> = {
  webp: decodeWithSharp,
  png: decodeWithSharp,
  jpg: decodeWithSharp,
  gif: decodeWithSharp,
  bmp: async (file) => plain([decodeBmp(file)]),
  avif: decodeWithSharp,
  tiff: decodeWithSharp,
  jxl: async (file) => decodeWithSharp(await pngOfJxl(file)),
  ico: byLargest,
  pdf: async (file) => plain(await drawPages(file)),
};

/**
 * The picture in a converted file, with all its frames or pages.
 *
 * @throws Error with what the decoder says of a file that it cannot read
 */
export function decode(file: Buffer, type: OutputType): Promise<DecodedImage> {
  return DECODERS[type](file);
}

/** The largest picture of an icon, which its writer puts first. */
async function byLargest(file: Buffer): Promise<DecodedImage> {
  const [first] = picturesOf(file);
  if (!first) throw new Error('an icon without a picture');
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

/** What the file says of itself besides its pixels. */
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

function plain(frames: readonly Raster[]): DecodedImage {
  const [{ width, height }] = frames as [Raster];
  return { frames, facts: { width, height, frames: frames.length, alpha: false } };
}

export interface EncodedImage {
  readonly bytes: Buffer;
  readonly width: number;
  readonly height: number;
}

/**
 * A raster as WebP for people to look at, at most `most` pixels a side; without loss where that is small.
 *
 * @param enlarge makes small ones larger by this whole factor, each pixel a square
 */
export async function encode(raster: Raster, most: number, enlarge = 1): Promise<EncodedImage> {
  const { width, height, data } = raster;
  const side = (pixels: number) => (enlarge > 1 ? pixels * enlarge : Math.min(pixels, most));
  const kernel = enlarge > 1 ? 'nearest' : 'lanczos3';
  const { data: bytes, info } = await sharp(data, { raw: { width, height, channels: 4 } })
    .resize(side(width), side(height), { fit: 'inside', kernel })
    .webp(width * height <= 200 * 200 ? { lossless: true } : { quality: 82 })
    .toBuffer({ resolveWithObject: true });
  return { bytes, width: info.width, height: info.height };
}
