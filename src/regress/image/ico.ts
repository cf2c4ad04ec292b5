import type { Raster } from './image.ts';

/** Reads the icons that are written here: a PNG for the largest picture, and bitmaps of 32 bits a pixel. */

const DIRECTORY = 6;
const ENTRY = 16;
const HEADER = 40;

/** One picture of an icon: the bytes of a PNG, or pixels. */
export type IconPicture = { readonly png: Buffer } | { readonly raster: Raster };

/** @throws Error when a picture is of another kind, or cut off */
export function picturesOf(file: Buffer): IconPicture[] {
  return Array.from({ length: file.readUInt16LE(4) }, (_, at) => {
    const entry = file.subarray(DIRECTORY + at * ENTRY);
    const start = entry.readUInt32LE(12);
    const image = file.subarray(start, start + entry.readUInt32LE(8));
    return image[0] === 0x89 ? { png: image } : { raster: decodeBitmap(image) };
  });
}

/** Rows from the bottom up, blue first; the mask behind them says nothing that the fourth byte does not. */
function decodeBitmap(image: Buffer): Raster {
  const bits = image.readUInt16LE(14);
  if (bits !== 32) throw new Error(`an icon of ${bits} bits, which is not read here`);
  const width = image.readInt32LE(4);
  const height = image.readInt32LE(8) / 2;
  if (image.length < HEADER + width * height * 4) throw new Error('an icon that is cut off');
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
