/**
 * @module Reads the headers of a BMP: its file header, and a device-independent bitmap (DIB), which
 * is also an image of an icon that is not a PNG. Accepts the same headers as browsers: Windows (40
 * to 124 bytes) and OS/2 (12 to 64 bytes).
 */
import { readProfile } from './colour/icc.ts';
import { littleEndian, type RepairTarget, readAt, WindowReader, writeAt } from './containers/file.ts';
import { type ImageFacts, type PixelFormat, RGB_PIXELS, type Size } from './image-info.ts';
import type { Kind } from './kinds.ts';
import { resolutionOf, UNIT } from './resolution.ts';

/** How a bitmap stores its pixels. */
export interface Dib extends Size {
  /** Whether the first stored row is the top one. */
  readonly topDown: boolean;
  readonly bits: number;
  readonly isRunLengthEncoded: boolean;
  /** Bit masks for 16 and 32 bits per pixel. The mask of a missing channel is 0. */
  readonly masks?: Masks | undefined;
  /** Whether the compression is that of Windows CE, with a mask for alpha (BI_ALPHABITFIELDS). */
  readonly alphaBitFields: boolean;
  /** Number of colours in the palette. 0 for true colour. */
  readonly colours: number;
  readonly pixelsAt: number;
  /** Position of an embedded colour profile in the file. */
  readonly profile?: PixelFormat['profile'];
  readonly headerBytes: number;
  /** Pixels per metre, of the width and of the height. */
  readonly perMetre: readonly [x: number, y: number];
}

interface Masks {
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
/** The longest header. */
const V5_HEADER = 124;
/** Full length of an OS/2 2.x header, which can be truncated to any length from 16 bytes on. */
const OS2_HEADER = 64;
/** "MBED": the profile is in the file (BITMAPV5HEADER, bV5CSType). */
const PROFILE_EMBEDDED = 0x4d424544;
const BITS = [1, 2, 4, 8, 16, 24, 32];
const CORE_BITS = [1, 2, 4, 8, 24];

interface DibPlace {
  readonly at: number;
  /** Offset of the pixels that the file header states; 0 if they follow the palette. */
  readonly pixelsAt: number;
  /** Whether the bitmap is part of an icon: with twice the height, and a mask at the end. */
  readonly icon: boolean;
}

/** Reads the header of a bitmap; undefined for an invalid one, which browsers reject, too. */
export async function readDib(
  bytes: WindowReader,
  { at, pixelsAt, icon }: DibPlace,
): Promise<Dib | undefined> {
  // The masks of the shortest Windows header follow it.
  const header = Buffer.from(await bytes.read(at, V5_HEADER + 16));
  const length = header.length < 16 ? 0 : header.readUInt32LE(0);
  const isCore = length === CORE_HEADER;
  if ((length < 16 && !isCore) || length > V5_HEADER) return undefined;
  const isOs2 = length <= OS2_HEADER && ![INFO_HEADER, V2_HEADER, V3_HEADER].includes(length);
  const fields = isCore ? infoHeaderOf(header) : Buffer.alloc(V5_HEADER + 16);
  if (!isCore) header.copy(fields, 0, 0, isOs2 ? Math.min(length, INFO_HEADER) : header.length);
  const [width, stored] = [fields.readInt32LE(4), fields.readInt32LE(8)];
  const height = Math.floor(Math.abs(stored) / (icon ? 2 : 1));
  const bits = fields.readUInt16LE(14);
  const compression = fields.readUInt32LE(16);
  const used = fields.readUInt32LE(32);
  const isRunLengthEncoded =
    (compression === COMPRESSION.rle8 && bits === 8) ||
    (compression === COMPRESSION.rle4 && bits === 4) ||
    (compression === COMPRESSION.rle24 && bits === 24 && isOs2);
  const masks = masksOf(fields, length, { bits, compression, isOs2, icon });
  const isKnown = compression === COMPRESSION.rgb || masks !== undefined || isRunLengthEncoded;
  if (!isKnown || width <= 0 || height === 0 || !(isCore ? CORE_BITS : BITS).includes(bits)) return undefined;
  const paletteAt = at + length + (length === INFO_HEADER ? masksFollow(compression, isOs2) : 0);
  const entry = isCore ? 3 : 4;
  const available = pixelsAt > paletteAt ? Math.floor((pixelsAt - paletteAt) / entry) : used || 2 ** bits;
  const stated = bits > 8 ? used : used || 2 ** bits;
  return {
    width,
    height,
    bits,
    topDown: stored < 0,
    headerBytes: length,
    perMetre: [fields.readUInt32LE(24), fields.readUInt32LE(28)],
    isRunLengthEncoded,
    masks,
    alphaBitFields: compression === COMPRESSION.alphaBitFields,
    colours: bits > 8 ? 0 : Math.min(stated, 2 ** bits, available),
    pixelsAt: pixelsAt || paletteAt + stated * entry,
    profile: profileOf(fields, length, at),
  };
}

/** Converts a header of OS/2 1.x, whose numbers have 16 bits, to the fields of the others. */
function infoHeaderOf(core: Buffer): Buffer {
  const fields = Buffer.alloc(V5_HEADER + 16);
  fields.writeUInt32LE(core.readUInt16LE(4), 4);
  fields.writeUInt32LE(core.readUInt16LE(6), 8);
  fields.writeUInt16LE(core.readUInt16LE(10), 14);
  return fields;
}

/** Returns the number of bytes of the masks that follow a header of 40 bytes. */
function masksFollow(compression: number, isOs2: boolean): number {
  if (isOs2) return 0;
  if (compression === COMPRESSION.bitFields) return 12;
  return compression === COMPRESSION.alphaBitFields ? 16 : 0;
}

function masksOf(
  fields: Buffer,
  length: number,
  { bits, compression, isOs2, icon }: { bits: number; compression: number; isOs2: boolean; icon: boolean },
): Masks | undefined {
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

function profileOf(fields: Buffer, length: number, at: number): Dib['profile'] {
  if (length < V5_HEADER || fields.readUInt32LE(56) !== PROFILE_EMBEDDED) return undefined;
  return { at: at + fields.readUInt32LE(112), length: fields.readUInt32LE(116) };
}

/** Returns the number of bytes of an uncompressed row, padded to a multiple of 4. */
export function strideOf({ width, bits }: { readonly width: number; readonly bits: number }): number {
  return Math.ceil((width * bits) / 32) * 4;
}

const FILE_HEADER = 14;
/** Place in the file header of the offset of the pixels. */
const PIXELS_AT = 10;

/** Reads how a BMP stores its pixels; undefined if its header is invalid. */
async function readBmpLayout(bytes: WindowReader): Promise<Dib | undefined> {
  const header = await bytes.read(0, FILE_HEADER);
  if (header.length < FILE_HEADER) return undefined;
  return readDib(bytes, { at: FILE_HEADER, pixelsAt: header.readUInt32LE(PIXELS_AT), icon: false });
}

/** Reads the size of a BMP, its profile, and whether ImageMagick misreads it. */
export async function readBmp(bytes: WindowReader): Promise<ImageFacts> {
  const layout = await readBmpLayout(bytes);
  if (!layout) return {};
  const { width, height, bits, masks, perMetre, profile: place } = layout;
  const profile = place ? await readProfile(bytes, place.at, place.length, 'rgb') : 'none';
  return {
    width,
    height,
    ...resolutionOf(...perMetre, UNIT.metre),
    metadata: [],
    profile,
    pixels: { ...RGB_PIXELS, bits: Math.min(bits, 8), alpha: (masks?.alpha ?? 0) !== 0, profile: place },
    opaque: bits === 32 && masks?.alpha === 0,
    paletteKind: bits <= 8 ? 'palette' : undefined,
    externalProfile: profile === 'srgb' || profile === 'other', // ImageMagick ignores it
    kinds: kindsOf(layout),
  };
}

/** Lengths of the headers that ImageMagick 6 and 7 read: OS/2 1.x, Windows 3 to 98, Photoshop. */
const READ_HEADERS: readonly number[] = [CORE_HEADER, INFO_HEADER, V3_HEADER, V4_HEADER, V5_HEADER];

function kindsOf({ bits, masks, headerBytes, alphaBitFields, isRunLengthEncoded }: Dib): Kind[] {
  return [
    ...(READ_HEADERS.includes(headerBytes) ? [] : ['bmp-header' as const]),
    ...(masks && !isScaled(bits, masks) ? ['bmp-masks' as const] : []),
    ...(bits === 2 ? ['bmp-2-bits' as const] : []),
    ...(alphaBitFields ? ['bmp-alpha-bit-fields' as const] : []),
    ...(isRunLengthEncoded ? ['bmp-runs' as const] : []),
  ];
}

/**
 * Returns whether ImageMagick scales the values of all channels to the full range. It does so for 5
 * bits, 6 bits of green, and 8 bits or more. Each mask must be one run of bits, and no bit may
 * belong to two masks.
 */
function isScaled(bits: number, { red, green, blue, alpha }: Masks): boolean {
  const all = [red, green, blue, alpha];
  const [r, g, b, a] = all.map((mask) => /^(1+)0*$/.exec(mask.toString(2))?.[1]?.length ?? 0);
  const sum = all.reduce((one, other) => one + other);
  if (sum !== all.reduce((one, other) => (one | other) >>> 0)) return false;
  if (bits === 16) return r === 5 && (g === 5 || g === 6) && b === 5 && alpha === 0;
  return [r, g, b, alpha === 0 ? 8 : a].every((width = 0) => width >= 8);
}

/** Offset of the four-byte file size in a BMP (BITMAPFILEHEADER). */
const LENGTH_AT = 2;
/** Offset of the number of planes in a header of OS/2 1.x and in all others. */
const PLANES_AT = { core: FILE_HEADER + 8, other: FILE_HEADER + 12 } as const;
/** Place of the endpoints and gammas of colours (BITMAPV4HEADER, bV4Endpoints to bV4GammaBlue). */
const CALIBRATION = { at: FILE_HEADER + 60, length: 48 } as const;

/** Offset of the compression, of the number of colours, and of the masks. */
const COMPRESSION_AT = FILE_HEADER + 16;
const COLOURS_AT = FILE_HEADER + 32;
const MASKS_AT = FILE_HEADER + INFO_HEADER;

/**
 * Corrects fields of a BMP that viewers ignore. Many files state a wrong size, and ImageMagick 6
 * rejects a size that is larger than the file. Both versions reject a number of planes other than
 * 1, more colours than indices, and a missing offset of the pixels, and ignore alpha without bit
 * fields. Browsers ignore calibrated colours in a BMP, but ImageMagick would copy them to a PNG
 * that keeps metadata, where browsers apply them. Adds missing padding of the last row.
 */
export async function repairBmp({ file }: RepairTarget): Promise<undefined> {
  await writeAt(file, LENGTH_AT, Buffer.alloc(4));
  const header = (await readAt(file, FILE_HEADER, 4)).bytes.readUInt32LE();
  await writeAt(file, header === CORE_HEADER ? PLANES_AT.core : PLANES_AT.other, Buffer.of(1, 0));
  if (header >= V4_HEADER) await writeAt(file, CALIBRATION.at, Buffer.alloc(CALIBRATION.length));
  const layout = await readBmpLayout(new WindowReader(file));
  if (!layout) return;
  const { bits, width, height, colours, masks, pixelsAt, isRunLengthEncoded } = layout;
  await writeAt(file, PIXELS_AT, littleEndian(pixelsAt, 4));
  if (header >= INFO_HEADER) await writeAt(file, COLOURS_AT, littleEndian(colours, 4));
  if (header >= V3_HEADER && masks?.alpha) {
    await writeAt(file, COMPRESSION_AT, littleEndian(COMPRESSION.bitFields, 4));
    for (const [at, mask] of [masks.red, masks.green, masks.blue, masks.alpha].entries())
      await writeAt(file, MASKS_AT + at * 4, littleEndian(mask, 4));
  }
  const { size } = await file.stat();
  const padding = strideOf(layout) - Math.ceil((width * bits) / 8);
  const missing = pixelsAt + strideOf(layout) * height - size;
  if (!isRunLengthEncoded && missing > 0 && missing <= padding)
    await writeAt(file, size, Buffer.alloc(missing));
}
