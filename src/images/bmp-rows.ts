/** @module Decodes the uncompressed rows of a bitmap to red, green, blue and alpha. */

import type { FileHandle } from 'node:fs/promises';
import { type Dib, type Masks, strideOf } from './bmp.ts';
import { readAt } from './containers/file.ts';

/** Bytes per read. Decoding them takes about 1 ms. */
const BLOCK_BYTES = 128 * 1024;
export const PIXEL_BYTES = 4;

/** Completeness of the pixel data. */
export interface Truncation {
  cut: boolean;
  shown: boolean;
}

type DecodeRow = (from: Buffer, to: Buffer) => void;

/**
 * Yields blocks of decoded rows, in their stored order. Rows beyond the end of the file are transparent.
 *
 * @param truncation is set to the completeness of the rows
 */
export async function* decodeRows(
  file: FileHandle,
  dib: Dib,
  truncation: Truncation,
): AsyncGenerator<Buffer> {
  const { width, height, icon, pixelsAt } = dib;
  const stride = strideOf(dib);
  const maskStride = strideOf({ width, bits: 1 });
  const hasOwnAlpha = await hasAlpha(file, dib);
  const decode = rowDecoder(dib, hasOwnAlpha);
  const perBlock = Math.max(1, Math.floor(BLOCK_BYTES / stride));
  for (let row = 0; row < height; row += perBlock) {
    const rows = Math.min(perBlock, height - row);
    const stored = await readAt(file, pixelsAt + row * stride, rows * stride);
    const mask =
      icon && !hasOwnAlpha
        ? await readAt(file, pixelsAt + height * stride + row * maskStride, rows * maskStride)
        : undefined;
    const block = Buffer.alloc(rows * width * PIXEL_BYTES);
    for (let at = 0; at < rows; at += 1) {
      const to = block.subarray(at * width * PIXEL_BYTES, (at + 1) * width * PIXEL_BYTES);
      const from = stored.bytes.subarray(at * stride, (at + 1) * stride);
      // The padding of the last row can be missing.
      if (at * stride + Math.ceil((width * dib.bits) / 8) > stored.found) truncation.cut = true;
      else truncation.shown = true;
      if (at * stride >= stored.found) continue;
      decode(from, to);
      clearBeyond(to, Math.floor(((stored.found - at * stride) * 8) / dib.bits));
      if (mask) applyMask(to, mask.bytes.subarray(at * maskStride));
    }
    yield block;
  }
}

function clearBeyond(row: Buffer, pixels: number): void {
  if (pixels * PIXEL_BYTES < row.length) row.fill(0, pixels * PIXEL_BYTES);
}

function applyMask(row: Buffer, mask: Buffer): void {
  for (let x = 0; x * PIXEL_BYTES < row.length; x += 1) {
    if (((mask[x >> 3] as number) >> (7 - (x & 7))) & 1) row[x * PIXEL_BYTES + 3] = 0;
  }
}

/**
 * Returns whether a pixel can be transparent by its own bits. A BMP that states an alpha mask is transparent where these bits are
 * 0, even everywhere, as Chromium 156 and image-rs show it. The alpha of an icon counts if it is not 0 everywhere.
 * Otherwise, the mask after the pixels is the transparency (BMPImageReader::DecodeBMP of Chromium).
 */
async function hasAlpha(file: FileHandle, dib: Dib): Promise<boolean> {
  const { masks, bits, height, pixelsAt, icon } = dib;
  if (!masks || masks.alpha === 0) return false;
  if (!icon) return true;
  const bytes = strideOf(dib) * height;
  for (let at = 0; at < bytes; at += BLOCK_BYTES) {
    const { bytes: block, found } = await readAt(file, pixelsAt + at, BLOCK_BYTES);
    const step = bits / 8;
    for (let pixel = 0; pixel + step <= Math.min(found, bytes - at); pixel += step) {
      if (((step === 2 ? block.readUInt16LE(pixel) : block.readUInt32LE(pixel)) & masks.alpha) !== 0)
        return true;
    }
    if (found === 0) return false;
  }
  return false;
}

function rowDecoder({ bits, palette, masks }: Dib, hasOwnAlpha: boolean): DecodeRow {
  if (masks) return maskedDecoder(bits === 16 ? 2 : 4, hasOwnAlpha ? masks : { ...masks, alpha: 0 });
  return palette ? indexedDecoder(bits, palette) : decodeBgr;
}

function decodeBgr(from: Buffer, to: Buffer): void {
  for (let source = 0, at = 0; at < to.length; at += PIXEL_BYTES, source += 3) {
    to[at] = from[source + 2] as number;
    to[at + 1] = from[source + 1] as number;
    to[at + 2] = from[source] as number;
    to[at + 3] = 255;
  }
}

/** Decodes palette indices. An index without a colour is black, as in browsers. */
function indexedDecoder(bits: number, palette: Buffer): DecodeRow {
  const colours = Buffer.alloc(256 * 3);
  palette.copy(colours);
  const perByte = 8 / bits;
  const last = 2 ** bits - 1;
  return (from, to) => {
    for (let x = 0, at = 0; at < to.length; at += PIXEL_BYTES, x += 1) {
      const shift = 8 - bits - (x % perByte) * bits;
      const index = (((from[Math.floor(x / perByte)] as number) >> shift) & last) * 3;
      to[at] = colours[index] as number;
      to[at + 1] = colours[index + 1] as number;
      to[at + 2] = colours[index + 2] as number;
      to[at + 3] = 255;
    }
  };
}

function maskedDecoder(step: 2 | 4, { red, green, blue, alpha }: Masks): DecodeRow {
  const channels = [red, green, blue, alpha].map(channelOf);
  const [r, g, b, a] = channels as [Channel, Channel, Channel, Channel];
  return (from, to) => {
    for (let source = 0, at = 0; at < to.length; at += PIXEL_BYTES, source += step) {
      const pixel = step === 2 ? from.readUInt16LE(source) : from.readUInt32LE(source);
      to[at] = r.values[(pixel >>> r.shift) & r.last] as number;
      to[at + 1] = g.values[(pixel >>> g.shift) & g.last] as number;
      to[at + 2] = b.values[(pixel >>> b.shift) & b.last] as number;
      to[at + 3] = alpha === 0 ? 255 : (a.values[(pixel >>> a.shift) & a.last] as number);
    }
  };
}

/** Extracts a channel from a pixel: its highest 8 bits at most. */
interface Channel {
  readonly shift: number;
  /** Largest value. Also the mask of the shifted pixel. */
  readonly last: number;
  /** Value from 0 to 255 for each stored value. */
  readonly values: Uint8Array;
}

function channelOf(mask: number): Channel {
  if (mask === 0) return { shift: 0, last: 0, values: Uint8Array.of(0) };
  const low = 31 - Math.clz32(mask & -mask);
  const width = 32 - Math.clz32(mask) - low;
  const bits = Math.min(8, width);
  const last = 2 ** bits - 1;
  const values = Uint8Array.from({ length: last + 1 }, (_, value) => Math.round((value * 255) / last));
  return { shift: low + width - bits, last, values };
}
