/** @module Reads the icons that the service writes: the largest image is a PNG, the others are 32-bit bitmaps. */
import type { Raster } from './image.ts';

const DIRECTORY = 6;
const ENTRY = 16;
const HEADER = 40;

/** An image of an icon: the bytes of a PNG, or pixels. */
export type IconImage = { readonly png: Buffer } | { readonly raster: Raster };

/**
 * Reads all images of an icon.
 *
 * @throws {Error} if an image has another encoding, or is truncated
 */
export function readIcon(file: Buffer): IconImage[] {
  return Array.from({ length: file.readUInt16LE(4) }, (_, at) => {
    const entry = file.subarray(DIRECTORY + at * ENTRY);
    const start = entry.readUInt32LE(12);
    const image = file.subarray(start, start + entry.readUInt32LE(8));
    return image[0] === 0x89 ? { png: image } : { raster: decodeBitmap(image) };
  });
}

/** Decodes a 32-bit bitmap: BGRA, rows from the bottom. The mask after it is redundant. */
function decodeBitmap(image: Buffer): Raster {
  const bits = image.readUInt16LE(14);
  if (bits !== 32) throw new Error(`unsupported icon with ${bits} bits per pixel`);
  const width = image.readInt32LE(4);
  const height = image.readInt32LE(8) / 2;
  if (image.length < HEADER + width * height * 4) throw new Error('truncated icon');
  const data = new Uint8Array(width * height * 4);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const from = HEADER + ((height - 1 - y) * width + x) * 4;
      const [blue = 0, green = 0, red = 0, alpha = 0] = image.subarray(from, from + 4);
      data.set([red, green, blue, alpha], (y * width + x) * 4);
    }
  }
  return { width, height, data };
}
