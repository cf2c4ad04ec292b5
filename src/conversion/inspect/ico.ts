import type { ImageInfo } from '../plan/types.ts';
import type { WindowReader } from './window-reader.ts';

/** A directory and its one entry: what is behind them is the image. */
const IMAGE_AT = 6 + 16;

/** How long a bitmap's own header is: from BITMAPINFOHEADER to BITMAPV5HEADER. */
const HEADER_BYTES = { least: 40, most: 124 };

/** Size of an icon that has been reduced to one bitmap; its height counts the mask, too. */
export async function readIco(bytes: WindowReader): Promise<Omit<ImageInfo, 'type'>> {
  const header = await bytes.read(IMAGE_AT, 12);
  if (header.length < 12) return {};
  const length = header.readUInt32LE(0);
  if (length < HEADER_BYTES.least || length > HEADER_BYTES.most) return {}; // no bitmap: its words are no size
  return {
    width: Math.abs(header.readInt32LE(4)),
    height: Math.abs(header.readInt32LE(8)) / 2,
    profile: 'none',
    metadata: [],
  };
}
