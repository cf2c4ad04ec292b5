import type { Picture } from '../plan/types.ts';
import type { Bytes } from './bytes.ts';

/** BITMAPINFOHEADER's length; the fields below stand in it and in all longer headers. */
const INFO_HEADER = 40;
const BI_RGB = 0;

/** Size of a BMP, and whether its fourth byte is none of the picture (BITMAPINFOHEADER, biCompression). */
export async function readBmp(bytes: Bytes): Promise<Omit<Picture, 'type'>> {
  const header = await bytes.at(14, 20);
  if (header.length < 20 || header.readUInt32LE(0) < INFO_HEADER) return {};
  const bits = header.readUInt16LE(14);
  return {
    width: Math.abs(header.readInt32LE(4)),
    height: Math.abs(header.readInt32LE(8)),
    opaque: bits === 32 && header.readUInt32LE(16) === BI_RGB,
    ...(bits <= 8 && { tones: 'palette' }),
    metadata: [],
  };
}
