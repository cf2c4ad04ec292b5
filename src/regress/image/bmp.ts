/** @module Decodes the BMPs that imagemill writes: uncompressed, with 24 bits per pixel or with a palette. */

import type { Raster } from './image.ts';

/** Length of the file header in bytes. */
const FILE_HEADER_BYTES = 14;

/**
 * Decodes a BMP.
 *
 * @throws {Error} if the BMP is of another kind or truncated
 */
export function decodeBmp(file: Buffer): Raster {
  const bits = file.readUInt16LE(28);
  const compression = file.readUInt32LE(30);
  if (![1, 4, 8, 24].includes(bits) || compression !== 0) {
    throw new Error(`unsupported BMP with ${bits} bits per pixel and compression ${compression}`);
  }
  const start = file.readUInt32LE(10);
  const palette = file.subarray(FILE_HEADER_BYTES + file.readUInt32LE(FILE_HEADER_BYTES), start);
  const width = file.readInt32LE(18);
  const signedHeight = file.readInt32LE(22);
  const height = Math.abs(signedHeight);
  const stride = ((width * bits + 31) >> 5) << 2;
  if (file.length < start + stride * height) throw new Error('the BMP is truncated');
  const data = new Uint8Array(width * height * 4).fill(255);
  for (let y = 0; y < height; y += 1) {
    const row = start + stride * (signedHeight > 0 ? height - 1 - y : y);
    for (let x = 0; x < width; x += 1) {
      const [colours, from] = bits === 24 ? [file, row + x * 3] : [palette, indexAt(file, row, x, bits) * 4];
      const to = (y * width + x) * 4;
      for (let channel = 0; channel < 3; channel += 1) data[to + channel] = colours[from + 2 - channel] ?? 0;
    }
  }
  return { width, height, data };
}

/** Returns the palette index of a pixel. */
function indexAt(file: Buffer, row: number, x: number, bits: number): number {
  const perByte = 8 / bits;
  const byte = file[row + Math.floor(x / perByte)] as number;
  return (byte >> (bits * (perByte - 1 - (x % perByte)))) & (2 ** bits - 1);
}
