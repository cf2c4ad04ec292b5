/**
 * @module Reduces an icon or cursor to its best image: the largest, then the one with the most bits
 * per pixel. A broken smaller image does no harm, and an embedded PNG is converted as a PNG. Reads
 * the header of an icon that was reduced to one bitmap.
 */
import type { FileHandle } from 'node:fs/promises';
import { readDib, strideOf } from './bmp.ts';
import { type RepairTarget, readAt, readRange, replaceContent, WindowReader } from './containers/file.ts';
import { type ImageFacts, RGB_PIXELS } from './image-info.ts';
import { PNG_SIGNATURE } from './png/png-writer.ts';

/** Length of the header of the file and of an entry of its directory. */
const HEADER_BYTES = 6;
const ENTRY_BYTES = 16;
/** Length of BITMAPINFOHEADER, the only header of an icon that ImageMagick reads. */
const BITMAP_HEADER = 40;
/** Offset of the image, after the directory and its only entry. */
const IMAGE_AT = HEADER_BYTES + ENTRY_BYTES;

/** Bits per pixel of the bitmaps that ImageMagick reads in an icon. */
const READ_BITS: readonly number[] = [1, 4, 8, 24, 32];
/** Bit mask of red unless an icon states masks, which ImageMagick ignores. */
const RED = 0xff0000;

/** Reads the size of an icon reduced to one bitmap; the stored height includes the mask. */
export async function readIco(bytes: WindowReader): Promise<ImageFacts> {
  const layout = await readDib(bytes, { at: IMAGE_AT, pixelsAt: 0, icon: true });
  const pixels = { ...RGB_PIXELS, alpha: true }; // by the mask, if not by the pixels
  if (!layout) return { pixels };
  const { width, height, bits, masks, headerBytes, topDown } = layout;
  const isUsual = headerBytes === BITMAP_HEADER && READ_BITS.includes(bits) && !topDown;
  const hasUsualMasks = bits !== 32 || (masks?.red === RED && masks.alpha !== 0);
  return {
    width,
    height,
    profile: 'none',
    metadata: [],
    pixels,
    kinds: isUsual && hasUsualMasks ? [] : ['icon-bitmap'],
  };
}

interface Entry {
  readonly area: number;
  readonly bits: number;
  readonly offset: number;
  readonly length: number;
}

/** Type of a cursor in the directory; an icon has 1. */
const CURSOR = 2;
/** Maximum bytes of a bitmap: almost four times 256 × 256 pixels of 32 bits with their mask. */
const MAX_BITMAP_BYTES = 1024 * 1024;
const MAX_ENTRIES = 1000;

/**
 * Rewrites an icon as its best image, and returns its new type. An invalid icon is left unchanged.
 *
 * @throws {ServiceError} DISK_FULL if the disk has no space for the image beside the icon
 */
export async function keepBestImage(target: RepairTarget): Promise<'png' | 'ico'> {
  const { file } = target;
  const bytes = new WindowReader(file);
  const [best] = (await parseEntries(bytes)).sort(
    (one, other) => other.area - one.area || other.bits - one.bits,
  );
  if (!best || best.length < PNG_SIGNATURE.length) return 'ico';
  const { offset } = best;
  // Some directories state too large a size. Viewers ignore it: a PNG has an end marker, and a
  // bitmap states its size.
  const available = (await file.stat()).size - offset;
  if (PNG_SIGNATURE.equals(await bytes.read(offset, PNG_SIGNATURE.length))) {
    const length = Math.min(best.length, available);
    await replaceContent(target, readRange(file, offset, offset + length), length);
    return 'png';
  }
  const bitmap = await readBitmap(file, best, available);
  if (bitmap) await replaceContent(target, [bitmap], bitmap.length);
  return 'ico';
}

/** Offsets in BITMAPINFOHEADER: bits per pixel, compression, and number of palette colours. */
const BITS_AT = 14;
const ENCODING_AT = 16;
const COLOURS_AT = 32;
/** Maximum width and height of an image in an icon. */
const MAX_SIDE = 256;

/**
 * Reads a bitmap, and returns it as an icon of one image; undefined if it is damaged or too large.
 * If the pixels have alpha, an incomplete mask is filled with zeros.
 *
 * @param available number of bytes from the start of the bitmap to the end of the file
 */
async function readBitmap(
  file: FileHandle,
  { offset, length: stated }: Entry,
  available: number,
): Promise<Buffer | undefined> {
  const { bytes: header } = await readAt(file, offset, BITMAP_HEADER);
  const { pixels, mask } = storedBytes(header);
  const bits = header.readUInt16LE(BITS_AT);
  const isPossible = stated <= available && stated >= pixels;
  const length = isPossible ? stated : pixels + mask;
  const needed = bits === 32 ? pixels : length;
  if (available < needed || length < BITMAP_HEADER || length > MAX_BITMAP_BYTES) return undefined;
  const { bytes: bitmap } = await readAt(file, offset, length);
  // With more than 8 bits, a bitmap needs no palette. A damaged number of colours would move the
  // pixels.
  const hasPalette = pixels + mask + 4 * header.readUInt32LE(COLOURS_AT) <= length;
  if (bits > 8 && pixels > 0 && !hasPalette) bitmap.writeUInt32LE(0, COLOURS_AT);
  return singleIcon(alphaFromMask(bitmap));
}

/**
 * Calculates from a header the number of bytes up to the end of the pixels, and of the mask that
 * follows. Both are 0 if the bitmap is compressed or has an impossible size.
 */
function storedBytes(header: Buffer): { readonly pixels: number; readonly mask: number } {
  const [width, height] = [header.readInt32LE(4), header.readInt32LE(8) / 2];
  const bits = header.readUInt16LE(BITS_AT);
  const isPossible = width > 0 && height > 0 && Math.max(width, height) <= MAX_SIDE && bits <= 32;
  if (!isPossible || header.readUInt32LE(ENCODING_AT) !== 0) return { pixels: 0, mask: 0 };
  const bytesOf = (bits: number): number => strideOf({ width, bits }) * height;
  const colours = bits > 8 ? 0 : Math.min(header.readUInt32LE(COLOURS_AT) || 2 ** bits, 2 ** bits);
  return { pixels: header.readUInt32LE(0) + 4 * colours + bytesOf(bits), mask: bytesOf(1) };
}

async function parseEntries(bytes: WindowReader): Promise<Entry[]> {
  const head = await bytes.read(0, HEADER_BYTES);
  const count = head.length < HEADER_BYTES ? 0 : Math.min(head.readUInt16LE(4), MAX_ENTRIES);
  // The directory of a cursor has the hot spot in the place of the bits.
  const isCursor = count > 0 && head.readUInt16LE(2) === CURSOR;
  const directory = Buffer.from(await bytes.read(HEADER_BYTES, count * ENTRY_BYTES));
  const entries: Entry[] = [];
  for (let at = 0; at + ENTRY_BYTES <= directory.length; at += ENTRY_BYTES) {
    const entry = directory.subarray(at, at + ENTRY_BYTES);
    const offset = entry.readUInt32LE(12);
    entries.push({
      area: (entry[0] || 256) * (entry[1] || 256),
      bits: (isCursor ? 0 : entry.readUInt16LE(6)) || storedBits(await bytes.read(offset, 16)),
      offset,
      length: entry.readUInt32LE(8),
    });
  }
  return entries;
}

/** Reads the bits per pixel from the bitmap, for writers that omit them in the directory. */
function storedBits(header: Buffer): number {
  if (header.length < 16) return 0;
  return header[0] === PNG_SIGNATURE[0] ? 32 : header.readUInt16LE(14);
}

function singleIcon(image: Buffer): Buffer {
  const head = Buffer.alloc(HEADER_BYTES + ENTRY_BYTES);
  head.writeUInt16LE(1, 2);
  head.writeUInt16LE(1, 4);
  head[HEADER_BYTES] = image.readInt32LE(4) & 0xff;
  head[HEADER_BYTES + 1] = (image.readInt32LE(8) / 2) & 0xff;
  head.writeUInt16LE(1, HEADER_BYTES + 4);
  head.writeUInt16LE(image.readUInt16LE(14), HEADER_BYTES + 6);
  head.writeUInt32LE(image.length, HEADER_BYTES + 8);
  head.writeUInt32LE(head.length, HEADER_BYTES + 12);
  return Buffer.concat([head, image]);
}

/**
 * Sets the alpha of a 32-bit image from its mask if all alpha bytes are 0, as in icons from before
 * alpha was supported. The mask follows the pixels, one bit each.
 */
function alphaFromMask(image: Buffer): Buffer {
  const width = image.readInt32LE(4);
  const height = image.readInt32LE(8) / 2;
  const pixels = image.subarray(image.readUInt32LE(0));
  const bytes = width * height * 4;
  if (image.readUInt16LE(14) !== 32 || !(bytes > 0) || pixels.length < bytes) return image;
  for (let at = 3; at < bytes; at += 4) if (pixels[at] !== 0) return image;

  const repaired = Buffer.from(image);
  const repairedPixels = repaired.subarray(image.readUInt32LE(0));
  const mask = pixels.subarray(bytes);
  const stride = strideOf({ width, bits: 1 });
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const covered = ((mask[y * stride + (x >> 3)] ?? 0) >> (7 - (x & 7))) & 1;
      repairedPixels[(y * width + x) * 4 + 3] = covered ? 0 : 255;
    }
  }
  return repaired;
}
