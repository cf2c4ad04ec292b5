import type { ImageInfo } from '../plan/types.ts';
import type { WindowReader } from './window-reader.ts';

/** Offset of the image: behind the directory and its only entry. */
const IMAGE_AT = 6 + 16;

/** Range of bitmap header lengths: from BITMAPINFOHEADER to BITMAPV5HEADER. */
const HEADER_BYTES = { min: 40, max: 124 };

/** Reads the size of an icon reduced to one bitmap; the stored height includes the mask. */
export async function readIco(bytes: WindowReader): Promise<Omit<ImageInfo, 'type'>> {
  const header = await bytes.read(IMAGE_AT, 12);
  if (header.length < 12) return {};
  const length = header.readUInt32LE(0);
  if (length < HEADER_BYTES.min || length > HEADER_BYTES.max) return {}; // not a bitmap header
  return {
    width: Math.abs(header.readInt32LE(4)),
    height: Math.abs(header.readInt32LE(8)) / 2,
    profile: 'none',
    metadata: [],
  };
}
