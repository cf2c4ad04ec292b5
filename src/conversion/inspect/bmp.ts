import type { ImageInfo } from '../plan/types.ts';
import type { WindowReader } from './window-reader.ts';

/** Length of BITMAPINFOHEADER; all longer headers begin with its fields. */
const INFO_HEADER = 40;
const BI_RGB = 0;
const BI_BITFIELDS = 3;

/** Length of the OS/2 header BITMAPCOREHEADER, which has 16-bit dimensions. */
const CORE_HEADER = 12;

/** Reads the size of a BMP, and whether its fourth byte is unused (BITMAPINFOHEADER, biCompression). */
export async function readBmp(bytes: WindowReader): Promise<Omit<ImageInfo, 'type'>> {
  const header = await bytes.read(14, 56);
  if (header.length < 20) return {};
  const length = header.readUInt32LE(0);
  if (length === CORE_HEADER) return { width: header.readUInt16LE(4), height: header.readUInt16LE(6) };
  if (length < INFO_HEADER) return {};
  const bits = header.readUInt16LE(14);
  return {
    width: Math.abs(header.readInt32LE(4)),
    height: Math.abs(header.readInt32LE(8)),
    ...(hasBitAlpha(header, length, bits) && { oneBitAlpha: true }),
    opaque: bits === 32 && header.readUInt32LE(16) === BI_RGB,
    ...(bits <= 8 && { paletteKind: 'palette' }),
    metadata: [],
  };
}

/** Checks for 16 bits per pixel with a 1-bit alpha mask, which BITMAPV3INFOHEADER and later headers have. */
function hasBitAlpha(header: Buffer, length: number, bits: number): boolean {
  if (bits !== 16 || length < 56 || header.length < 56 || header.readUInt32LE(16) !== BI_BITFIELDS)
    return false;
  const mask = header.readUInt32LE(52);
  return mask !== 0 && (mask & (mask - 1)) === 0;
}
