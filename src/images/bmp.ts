/**
 * @module Reads the headers of a BMP: its file header, and a device-independent bitmap (DIB), which is also an image of an icon
 * that is not a PNG. Accepts the same headers as browsers: Windows (40 to 124 bytes) and OS/2 (12 to 64 bytes).
 */
import { type RepairTarget, readAt, type WindowReader, writeAt } from './containers/file.ts';
import { type ImageFacts, RGB_PIXELS } from './image-info.ts';

/** How a bitmap stores its pixels. */
export interface Dib {
  readonly width: number;
  readonly height: number;
  /** Whether the first stored row is the top one. */
  readonly topDown: boolean;
  readonly bits: 1 | 2 | 4 | 8 | 16 | 24 | 32;
  /** Run-length encoding, with the bits of a pixel. */
  readonly runLength?: 4 | 8 | 24;
  /** Bit masks for 16 and 32 bits per pixel. The mask of a missing channel is 0. */
  readonly masks?: Masks;
  /** Red, green and blue of each index. */
  readonly palette?: Buffer;
  readonly pixelsAt: number;
  /** Position of an embedded colour profile in the file. */
  readonly profile?: { readonly at: number; readonly length: number };
  readonly headerBytes: number;
  /** Whether the palette, if there is one, has exactly one colour for every index. False for true colour with a palette. */
  readonly fullPalette: boolean;
  /** Whether a 1-bit mask for transparency follows the pixels. */
  readonly icon: boolean;
}

/** Bit masks of the channels. */
export interface Masks {
  readonly red: number;
  readonly green: number;
  readonly blue: number;
  readonly alpha: number;
}

const COMPRESSION = { rgb: 0, rle8: 1, rle4: 2, bitFields: 3, rle24: 4, alphaBitFields: 6 } as const;
/** Length of BITMAPCOREHEADER, with 16-bit dimensions and 3-byte palette entries. */
const CORE_HEADER = 12;
const INFO_HEADER = 40;
/** Lengths of Windows headers that contain masks: three, or four with alpha. */
const V2_HEADER = 52;
const V3_HEADER = 56;
const V4_HEADER = 108;
const V5_HEADER = 124;
const MAX_HEADER = 124;
/** Full length of an OS/2 2.x header. Such headers can be truncated to any length from 16 bytes on. */
const OS2_HEADER = 64;
/** "MBED": the profile is in the file (BITMAPV5HEADER, bV5CSType). */
const PROFILE_EMBEDDED = 0x4d424544;
const BITS: readonly number[] = [1, 2, 4, 8, 16, 24, 32];
const CORE_BITS: readonly number[] = [1, 2, 4, 8, 24];

interface DibPlace {
  readonly at: number;
  /** Offset of the pixels that the file header states; 0 if they follow the palette. */
  readonly pixelsAt: number;
  /** Whether the bitmap is part of an icon: with twice the height, and a mask at the end. */
  readonly icon: boolean;
}

/**
 * Reads the header of a bitmap.
 *
 * @returns undefined for an invalid header, which browsers reject, too
 */
export async function readDib(
  bytes: WindowReader,
  { at, pixelsAt, icon }: DibPlace,
): Promise<Dib | undefined> {
  // The masks of the shortest Windows header follow it.
  const header = Buffer.from(await bytes.read(at, MAX_HEADER + 16));
  const length = header.length < 16 ? 0 : header.readUInt32LE(0);
  const isCore = length === CORE_HEADER;
  if ((length < 16 && !isCore) || length > MAX_HEADER) return undefined;
  const isOs2 = length <= OS2_HEADER && ![INFO_HEADER, V2_HEADER, V3_HEADER].includes(length);
  const fields = isCore ? infoHeaderOf(header) : Buffer.alloc(MAX_HEADER + 16);
  if (!isCore) header.copy(fields, 0, 0, isOs2 ? Math.min(length, INFO_HEADER) : header.length);
  const [width, stored] = [fields.readInt32LE(4), fields.readInt32LE(8)];
  const height = Math.floor(Math.abs(stored) / (icon ? 2 : 1));
  const bits = fields.readUInt16LE(14);
  const compression = fields.readUInt32LE(16);
  const used = fields.readUInt32LE(32);
  const runLength = runLengthOf(compression, bits, isOs2);
  const masks = masksOf(fields, length, { bits, compression, isOs2, icon });
  const isKnown = compression === COMPRESSION.rgb || masks !== undefined || runLength !== undefined;
  if (!isKnown || width <= 0 || height === 0 || !(isCore ? CORE_BITS : BITS).includes(bits)) return undefined;
  if (masks && !areValid(masks)) return undefined;
  const paletteAt = at + length + (length === INFO_HEADER ? masksFollow(compression, isOs2) : 0);
  const entry = isCore ? 3 : 4;
  const palette = await readPalette(bytes, { at: paletteAt, bits, used, entry, end: pixelsAt });
  return {
    ...{ width, height, bits: bits as Dib['bits'], topDown: stored < 0, icon, headerBytes: length },
    ...(runLength && { runLength }),
    ...(masks && { masks }),
    ...(palette && { palette: palette.colours }),
    fullPalette: palette ? palette.colours.length === 3 * 2 ** bits && used <= 2 ** bits : used === 0,
    pixelsAt: pixelsAt || paletteAt + (palette?.bytes ?? used * 4),
    ...profileOf(fields, length, at),
  };
}

/** Converts a header of OS/2 1.x, whose numbers have 16 bits, to the fields of the others. */
function infoHeaderOf(core: Buffer): Buffer {
  const fields = Buffer.alloc(MAX_HEADER + 16);
  fields.writeUInt32LE(core.readUInt16LE(4), 4);
  fields.writeUInt32LE(core.readUInt16LE(6), 8);
  fields.writeUInt16LE(core.readUInt16LE(10), 14);
  return fields;
}

function runLengthOf(compression: number, bits: number, isOs2: boolean): Dib['runLength'] {
  if (compression === COMPRESSION.rle8 && bits === 8) return 8;
  if (compression === COMPRESSION.rle4 && bits === 4) return 4;
  return isOs2 && compression === COMPRESSION.rle24 && bits === 24 ? 24 : undefined;
}

/** Returns the number of bytes of the masks that follow a header of 40 bytes. */
function masksFollow(compression: number, isOs2: boolean): number {
  if (isOs2) return 0;
  if (compression === COMPRESSION.bitFields) return 12;
  return compression === COMPRESSION.alphaBitFields ? 16 : 0;
}

interface MaskContext {
  readonly bits: number;
  readonly compression: number;
  readonly isOs2: boolean;
  readonly icon: boolean;
}

function masksOf(fields: Buffer, length: number, context: MaskContext): Masks | undefined {
  const { bits, compression, isOs2, icon } = context;
  if (bits !== 16 && bits !== 32) return undefined;
  const mask = (at: number): number => fields.readUInt32LE(INFO_HEADER + at);
  if (compression === COMPRESSION.rgb) {
    if (bits === 16) return { red: 0x7c00, green: 0x3e0, blue: 0x1f, alpha: 0 };
    // Chromium ignores these masks, except whether one for alpha is present.
    const hasAlpha = icon || (length >= V4_HEADER && mask(12) !== 0);
    return { red: 0xff0000, green: 0xff00, blue: 0xff, alpha: hasAlpha ? 0xff000000 : 0 };
  }
  const count = masksFollow(compression, isOs2);
  if (count === 0) return undefined;
  const hasAlpha = length >= V3_HEADER || compression === COMPRESSION.alphaBitFields;
  return { red: mask(0), green: mask(4), blue: mask(8), alpha: hasAlpha ? mask(12) : 0 };
}

/** Checks that each mask is one run of bits, and that no bit belongs to two masks. */
function areValid({ red, green, blue, alpha }: Masks): boolean {
  const all = [red, green, blue, alpha].map((mask) => BigInt(mask));
  const isRun = (mask: bigint): boolean => ((mask + (mask & -mask)) & mask) === 0n;
  const sum = all.reduce((one, other) => one + other);
  return all.every(isRun) && sum === all.reduce((one, other) => one | other);
}

interface PalettePlace {
  readonly at: number;
  readonly bits: number;
  /** Stated number of colours. 0 means all. */
  readonly used: number;
  readonly entry: 3 | 4;
  readonly end: number;
}

/** Reads the palette. It is shorter than its header states if the pixels start before its end. */
async function readPalette(
  bytes: WindowReader,
  { at, bits, used, entry, end }: PalettePlace,
): Promise<{ colours: Buffer; bytes: number } | undefined> {
  if (bits > 8) return undefined;
  const all = 2 ** bits;
  const stated = used === 0 ? all : used;
  const available = end > at ? Math.floor((end - at) / entry) : stated;
  const count = Math.min(stated, all, available);
  const stored = await bytes.read(at, count * entry);
  const colours = Buffer.alloc(Math.floor(stored.length / entry) * 3);
  for (let index = 0; index * 3 < colours.length; index += 1) {
    const [blue = 0, green = 0, red = 0] = stored.subarray(index * entry);
    colours.set([red, green, blue], index * 3);
  }
  return { colours, bytes: stated * entry };
}

function profileOf(fields: Buffer, length: number, at: number): Pick<Dib, 'profile'> {
  if (length < V5_HEADER || fields.readUInt32LE(56) !== PROFILE_EMBEDDED) return {};
  return { profile: { at: at + fields.readUInt32LE(112), length: fields.readUInt32LE(116) } };
}

/** Returns the number of bytes of an uncompressed row, padded to a multiple of 4. */
export function strideOf({ width, bits }: { readonly width: number; readonly bits: number }): number {
  return Math.ceil((width * bits) / 32) * 4;
}

const FILE_HEADER = 14;
/** Place in the file header of the offset of the pixels. */
const PIXELS_AT = 10;

/** Reads how a BMP stores its pixels; undefined if its header is invalid. */
export async function readBmpLayout(bytes: WindowReader): Promise<Dib | undefined> {
  const header = await bytes.read(0, FILE_HEADER);
  if (header.length < FILE_HEADER) return undefined;
  return readDib(bytes, { at: FILE_HEADER, pixelsAt: header.readUInt32LE(PIXELS_AT), icon: false });
}

/** Reads the size of a BMP, and whether ImageMagick decodes it correctly. */
export async function readBmp(bytes: WindowReader): Promise<ImageFacts<'bmp'>> {
  const layout = await readBmpLayout(bytes);
  if (!layout) return { decoder: 'bmp' }; // the decoder rejects it
  const { width, height, bits, masks, profile } = layout;
  // The pixels then follow the palette, as in browsers. ImageMagick rejects such a file.
  const statesNoOffset = (await bytes.read(PIXELS_AT, 4)).readUInt32LE() === 0;
  return {
    ...{ width, height, metadata: [] },
    pixels: { ...RGB_PIXELS, bits: Math.min(bits, 8), alpha: (masks?.alpha ?? 0) !== 0, profile },
    opaque: bits === 32 && masks?.alpha === 0,
    ...(bits <= 8 && { paletteKind: 'palette' }),
    ...(statesNoOffset || !isPlain(layout) || !(await isComplete(bytes, layout)) ? { decoder: 'bmp' } : {}),
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

/** Offset of the four-byte file size in a BMP (BITMAPFILEHEADER). */
const LENGTH_AT = 2;
/** Offset of the number of planes in a header of OS/2 1.x and in all others. */
const PLANES_AT = { core: FILE_HEADER + 8, other: FILE_HEADER + 12 } as const;
/** Position of the endpoints and gammas of calibrated colours (BITMAPV4HEADER, bV4Endpoints to bV4GammaBlue). */
const CALIBRATION = { at: FILE_HEADER + 60, length: 48 } as const;

/**
 * Resets fields of a BMP that viewers ignore. Many files state a wrong size, and ImageMagick 6 rejects a size that is larger
 * than the file. Both versions reject a number of planes other than 1. Browsers ignore calibrated colours in a BMP, but
 * ImageMagick would copy them to a PNG that keeps metadata, where browsers apply them.
 */
export async function repairBmp({ file }: RepairTarget): Promise<undefined> {
  await writeAt(file, LENGTH_AT, Buffer.alloc(4));
  const header = (await readAt(file, FILE_HEADER, 4)).bytes.readUInt32LE();
  await writeAt(file, header === CORE_HEADER ? PLANES_AT.core : PLANES_AT.other, Buffer.of(1, 0));
  if (header >= V4_HEADER) await writeAt(file, CALIBRATION.at, Buffer.alloc(CALIBRATION.length));
}
