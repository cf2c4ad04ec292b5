/** @module Reads the header of an icon that was reduced to one bitmap. */

import { type Dib, readDib } from './bmp-header.ts';
import type { WindowReader } from './containers/window-reader.ts';
import type { ImageFacts } from './image-info.ts';

/** Offset of the image, after the directory and its only entry. */
const IMAGE_AT = 6 + 16;
/** Length of BITMAPINFOHEADER, the only header of an icon that ImageMagick reads. */
const INFO_HEADER = 40;

/** Reads how an icon reduced to one bitmap stores its pixels; undefined if its header is invalid. */
export function readIconLayout(bytes: WindowReader): Promise<Dib | undefined> {
  return readDib(bytes, { at: IMAGE_AT, pixelsAt: 0, icon: true });
}

/** Reads the size of an icon reduced to one bitmap; the stored height includes the mask. */
export async function readIco(bytes: WindowReader): Promise<ImageFacts<'ico'>> {
  const layout = await readIconLayout(bytes);
  if (!layout) return {};
  const { width, height, bits, masks, fullPalette, headerBytes } = layout;
  const isPlain = headerBytes === INFO_HEADER && bits !== 16 && bits !== 2 && fullPalette && !layout.topDown;
  const hasUsualMasks = bits !== 32 || (masks?.red === 0xff0000 && masks.alpha === 0xff000000);
  return {
    ...{ width, height, profile: 'none', metadata: [] },
    ...(!isPlain || !hasUsualMasks ? { decoder: 'bmp' } : {}),
  };
}
