/** @module Reads the header of a BMP. */

import { type Dib, readDib, strideOf } from './bmp-header.ts';
import type { WindowReader } from './containers/window-reader.ts';
import type { ImageFacts } from './image-info.ts';

/** Length of the file header, BITMAPFILEHEADER. */
const FILE_HEADER = 14;

/** Reads how a BMP stores its pixels; undefined if its header is invalid. */
export async function readBmpLayout(bytes: WindowReader): Promise<Dib | undefined> {
  const header = await bytes.read(0, FILE_HEADER);
  if (header.length < FILE_HEADER) return undefined;
  return readDib(bytes, { at: FILE_HEADER, pixelsAt: header.readUInt32LE(10), icon: false });
}

/** Reads the size of a BMP, and whether ImageMagick decodes it correctly. */
export async function readBmp(bytes: WindowReader): Promise<ImageFacts<'bmp'>> {
  const layout = await readBmpLayout(bytes);
  if (!layout) return { decoder: 'bmp' }; // the decoder rejects it
  const { width, height, bits } = layout;
  return {
    ...{ width, height, metadata: [] },
    opaque: bits === 32 && layout.masks?.alpha === 0,
    ...(bits <= 8 && { paletteKind: 'palette' }),
    ...(!isPlain(layout) || !(await isComplete(bytes, layout)) ? { decoder: 'bmp' } : {}),
  };
}

/**
 * Checks for the common kinds, which ImageMagick decodes correctly and fastest. It misreads or rejects some of all
 * others: unusual bit masks, alpha, profiles, run-length encoding with gaps, 2 bits per pixel, palettes with too few or too many
 * colours, and palettes beside true colour.
 */
function isPlain({ bits, runLength, masks, fullPalette, profile, headerBytes }: Dib): boolean {
  if (runLength || profile || !fullPalette || bits === 2 || bits === 16) return false;
  if (!USUAL_HEADERS.includes(headerBytes)) return false;
  return bits !== 32 || (masks?.alpha === 0 && masks.red === 0xff0000 && headerBytes === 40);
}

/** Lengths of the headers of OS/2 1.x, and of Windows 3, 95 and 98. */
const USUAL_HEADERS: readonly number[] = [12, 40, 108, 124];

async function isComplete(bytes: WindowReader, layout: Dib): Promise<boolean> {
  const end = layout.pixelsAt + strideOf(layout) * layout.height;
  return (await bytes.read(end - 1, 1)).length === 1;
}
