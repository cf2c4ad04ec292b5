/** @module Decoded images, and decoders of the BMPs and icons that imagemill writes. */
import { z } from 'zod';
import type { Size } from '../../images/image-info.ts';

/** RGBA pixels, 8 bits per channel, in sRGB. Fully transparent pixels are black. */
export interface Raster extends Size {
  readonly data: Uint8Array;
}

export interface DecodedImage {
  /** The frames of an animation, or the pages of a PDF; at least one. */
  readonly frames: readonly Raster[];
  readonly facts: ImageMetadata;
}

/** Schema of {@link ImageMetadata} in a baseline. */
export const imageMetadata = z.object({
  /** Size of the first frame or page, in pixels or, for PDF, points. */
  width: z.number(),
  height: z.number(),
  frames: z.number(),
  /** Duration of each frame in ms. */
  delays: z.array(z.number()).readonly().optional(),
  /** Loop count; 0 is infinite. */
  plays: z.number().optional(),
  alpha: z.boolean(),
  /** Bits per channel, if more than 8. */
  depth: z.number().optional(),
  /** Digest of the embedded colour profile: the first 32 bits of SHA-256, in hex. */
  profile: z.string().optional(),
  /** Kinds of metadata in the file: `exif`, `iptc`, `xmp`. */
  metadata: z.array(z.string()).readonly().optional(),
});

/** Properties of an image other than its pixels. */
export type ImageMetadata = Readonly<z.infer<typeof imageMetadata>>;

/**
 * Sets the colour of fully transparent pixels to black in place, since it is invisible.
 *
 * @returns whether any pixel is not opaque
 */
export function clearHidden(data: Uint8Array): boolean {
  let alpha = false;
  for (let at = 3; at < data.length; at += 4) {
    if (data[at] === 255) continue;
    alpha = true;
    if (data[at] === 0) data.fill(0, at - 3, at);
  }
  return alpha;
}

/** Makes each pixel opaque or transparent. */
export function roundAlpha(data: Uint8Array): void {
  for (let at = 3; at < data.length; at += 4) data[at] = (data[at] as number) < 128 ? 0 : 255;
  clearHidden(data);
}

/** Returns an opaque image of a file without metadata. */
export function withoutMetadata(frames: readonly Raster[]): DecodedImage {
  const [{ width, height }] = frames as [Raster];
  return { frames, facts: { width, height, frames: frames.length, alpha: false } };
}

/** Joins the frames or pages of a file. It has the properties of the first. */
export function joinImages(images: readonly DecodedImage[]): DecodedImage {
  const [{ facts }] = images as [DecodedImage];
  const all = images.map((image) => image.facts);
  const depth = all.some((one) => one.depth !== undefined) ? 16 : undefined;
  const alpha = all.some((one) => one.alpha);
  return {
    frames: images.flatMap(({ frames }) => frames),
    facts: { ...facts, depth, alpha, frames: images.length },
  };
}

/** Composites a raster over a background colour; a grey if it has only one value. */
export function compositeOver({ width, height, data }: Raster, red: number, green = red, blue = red): Raster {
  const result = new Uint8Array(data.length);
  for (let at = 0; at < data.length; at += 4) {
    const alpha = data[at + 3] as number;
    const over = (value: number | undefined, below: number): number =>
      Math.round(((value as number) * alpha + below * (255 - alpha)) / 255);
    result[at] = over(data[at], red);
    result[at + 1] = over(data[at + 1], green);
    result[at + 2] = over(data[at + 2], blue);
    result[at + 3] = 255;
  }
  return { width, height, data: result };
}

/** Side of a detail in pixels, and the factor of its enlargement. */
export const DETAIL = { side: 48, factor: 4 };

/** Cuts out the detail around a block of 16 × 16 pixels, whose upper left corner is `at`. */
export function cutDetail({ width, height, data }: Raster, at: { x: number; y: number }): Raster {
  const [w, h] = [Math.min(DETAIL.side, width), Math.min(DETAIL.side, height)];
  const margin = (DETAIL.side - 16) / 2;
  const left = Math.max(0, Math.min(at.x - margin, width - w));
  const top = Math.max(0, Math.min(at.y - margin, height - h));
  const detail = new Uint8Array(w * h * 4);
  for (let row = 0; row < h; row += 1) {
    const from = ((top + row) * width + left) * 4;
    detail.set(data.subarray(from, from + w * 4), row * w * 4);
  }
  return { width: w, height: h, data: detail };
}

/** Renders the difference: black if equal, otherwise multiplied by `factor`. */
export function renderDifference(one: Raster, other: Raster, factor: number): Raster {
  const data = new Uint8Array(one.data.length).fill(255);
  const [a, b] = [compositeOver(one, 127), compositeOver(other, 127)];
  for (let at = 0; at < data.length; at += 4) {
    const alphaDelta = Math.abs((one.data[at + 3] as number) - (other.data[at + 3] as number));
    for (let channel = at; channel < at + 3; channel += 1) {
      const delta = Math.abs((a.data[channel] as number) - (b.data[channel] as number));
      data[channel] = Math.min(255, Math.max(delta, alphaDelta) * factor);
    }
  }
  return { width: one.width, height: one.height, data };
}

/** Lengths of the headers in bytes: of a BMP file, and of the bitmap in an icon. */
const [FILE_HEADER_BYTES, ICON_BITMAP_BYTES] = [14, 40];

/** @throws {Error} if the BMP is of another kind or truncated */
export function decodeBmp(file: Buffer): Raster {
  const bits = file.readUInt16LE(28);
  const compression = file.readUInt32LE(30);
  if (![1, 4, 8, 24].includes(bits) || compression !== 0) {
    throw new Error(`unsupported BMP with ${bits} bits per pixel and compression ${compression}`);
  }
  const start = file.readUInt32LE(10) - FILE_HEADER_BYTES;
  return decodeBitmap(file.subarray(FILE_HEADER_BYTES), start, file.readInt32LE(22), 'the BMP is truncated');
}

/**
 * Decodes the bitmap of a BMP or an icon.
 *
 * @param start offset of the pixels
 * @param signedHeight below 0 if the rows are stored from the top
 * @param truncated message of the error if pixels are missing
 */
function decodeBitmap(bitmap: Buffer, start: number, signedHeight: number, truncated: string): Raster {
  const bits = bitmap.readUInt16LE(14);
  const palette = bitmap.subarray(bitmap.readUInt32LE(0), start);
  const width = bitmap.readInt32LE(4);
  const height = Math.abs(signedHeight);
  const stride = ((width * bits + 31) >> 5) << 2;
  if (bitmap.length < start + stride * height) throw new Error(truncated);
  const data = new Uint8Array(width * height * 4).fill(255);
  for (let y = 0; y < height; y += 1) {
    const row = start + stride * (signedHeight > 0 ? height - 1 - y : y);
    for (let x = 0; x < width; x += 1) {
      const [colours, from] =
        bits >= 24 ? [bitmap, row + (x * bits) / 8] : [palette, indexAt(bitmap, row, x, bits) * 4];
      const to = (y * width + x) * 4;
      for (let channel = 0; channel < 3; channel += 1) data[to + channel] = colours[from + 2 - channel] ?? 0;
      if (bits === 32) data[to + 3] = colours[from + 3] as number;
    }
  }
  return { width, height, data };
}

function indexAt(file: Buffer, row: number, x: number, bits: number): number {
  const perByte = 8 / bits;
  const byte = file[row + Math.floor(x / perByte)] as number;
  return (byte >> (bits * (perByte - 1 - (x % perByte)))) & (2 ** bits - 1);
}

const DIRECTORY = 6;
const ENTRY = 16;

/**
 * Reads all images of an icon: the bytes of a PNG, or pixels.
 *
 * @throws {Error} if an image has another encoding, or is truncated
 */
export function readIcon(file: Buffer): ({ readonly png: Buffer } | { readonly raster: Raster })[] {
  return Array.from({ length: file.readUInt16LE(4) }, (_, at) => {
    const entry = file.subarray(DIRECTORY + at * ENTRY);
    const start = entry.readUInt32LE(12);
    const image = file.subarray(start, start + entry.readUInt32LE(8));
    if (image[0] === 0x89) return { png: image };
    const bits = image.readUInt16LE(14);
    if (bits !== 32) throw new Error(`unsupported icon with ${bits} bits per pixel`);
    // The mask after the pixels, which is counted in the height, is redundant.
    return { raster: decodeBitmap(image, ICON_BITMAP_BYTES, image.readInt32LE(8) / 2, 'truncated icon') };
  });
}
