/** @module Completes a cut PNG or short palette, corrects checksums (W3C PNG, third edition). */
import { createWriteStream } from 'node:fs';
import { type FileHandle, open, rename } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants, crc32, createDeflate, createInflate } from 'node:zlib';
import {
  BLOCK_BYTES,
  bigEndian,
  type RepairContext,
  readAt,
  readRange,
  replaceRange,
  WindowReader,
  withReader,
  writeAt,
} from '../containers/file.ts';
import { type Part, pngChunks, readContents } from '../containers/parts.ts';
import type { ImageInfo } from '../image-info.ts';
import { readPng } from './png.ts';
import { pngChunk } from './png-writer.ts';

/** Offset of the bit depth in the file. */
const DEPTH_AT = 24;

/** Samples per pixel by colour type. */
const SAMPLES: Readonly<Record<number, number>> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 };

/** Start and step of columns and rows of each pass of an interlaced PNG (8.1), and of others. */
const ADAM7 = [
  [0, 8, 0, 8],
  [4, 8, 0, 8],
  [0, 4, 4, 8],
  [2, 4, 0, 4],
  [0, 2, 2, 4],
  [1, 2, 0, 2],
  [0, 1, 1, 2],
] as const;
const ONE_PASS = [[0, 1, 0, 1]] as const;

/** Reads the layout of a PNG; undefined if it has no image data. */
async function readLayout(bytes: WindowReader) {
  const header = Buffer.from(await bytes.read(16, 13));
  const samples = SAMPLES[header[9] ?? -1];
  if (header.length < 13 || !samples || header.readUInt32BE(0) === 0) return undefined;
  const [width, rows, interlaced] = [header.readUInt32BE(0), header.readUInt32BE(4), header[12] !== 0];
  const data: Part[] = [];
  /** Range of the complete chunks after the image data, without IEND. */
  let tail = { from: 0, to: 0 };
  for await (const chunk of pngChunks(bytes)) {
    const { name, end } = chunk;
    const isWhole = (await bytes.read(end - 1, 1)).length === 1;
    if (name === 'IDAT') {
      data.push(chunk);
      tail = { from: end, to: end };
    } else if (name === 'IEND' || !isWhole) {
      break;
    } else {
      tail = { ...tail, to: end };
    }
  }
  const [first] = data;
  /** Bytes of all rows before compression, each with the byte that names its filter. */
  let total = 0;
  for (const [left, stepX, top, stepY] of interlaced ? ADAM7 : ONE_PASS) {
    const [across, down] = [Math.ceil((width - left) / stepX), Math.ceil((rows - top) / stepY)];
    if (across > 0 && down > 0)
      total += down * (1 + Math.ceil((across * (header[8] as number) * samples) / 8));
  }
  return first && { rows, total, interlaced, head: first.start, data, tail };
}

type PngLayout = NonNullable<Awaited<ReturnType<typeof readLayout>>>;

/**
 * Replaces the truncated PNG at `path` by a complete one. Keeps the chunks before the image data,
 * and fills the missing rows with zeros. `shownRows` of the result states how many rows were in the
 * file. Only a few blocks are in memory at a time.
 *
 * @returns the properties of the complete PNG; undefined if the file contains no row, is interlaced
 *   and lacks one, or has damaged image data
 */
export async function completePng(path: string, signal: AbortSignal): Promise<ImageInfo | undefined> {
  const output = `${path}.png`;
  const rows = await writeComplete(path, output, signal).catch((error) => {
    if (isDamage(error)) return undefined;
    throw error;
  });
  if (!rows) return undefined;
  await rename(output, path);
  const info = await withReader(path, readPng);
  return { type: 'png', ...info, truncated: true, shownRows: rows };
}

/** Writes the complete PNG. Returns the number of rows in the file; undefined without an image. */
async function writeComplete(path: string, output: string, signal: AbortSignal): Promise<number | undefined> {
  await using file = await open(path, 'r');
  const layout = await readLayout(new WindowReader(file));
  if (!layout) return undefined;
  const { rows, total, interlaced, head, data, tail } = layout;
  /** Bytes of uncompressed image data that the file contains. */
  let found = 0;
  async function* compressed(): AsyncGenerator<Buffer> {
    for (const chunk of data) {
      for await (const block of readData(file, chunk)) {
        if (found < total) yield block;
      }
    }
  }
  async function* filled(blocks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const block of blocks) {
      const wanted = block.subarray(0, total - found);
      found += wanted.length;
      if (wanted.length > 0) yield wanted;
    }
    for (let at = found; at < total; at += BLOCK_BYTES) yield Buffer.alloc(Math.min(BLOCK_BYTES, total - at));
  }
  async function* chunks(blocks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    yield* readRange(file, 0, head);
    for await (const block of blocks) yield pngChunk('IDAT', block);
    yield* readRange(file, tail.from, tail.to);
    yield pngChunk('IEND', Buffer.alloc(0));
  }
  await pipeline(
    Readable.from(compressed(), { objectMode: false }),
    createInflate({ finishFlush: constants.Z_SYNC_FLUSH }),
    filled,
    createDeflate({ level: 1 }),
    chunks,
    createWriteStream(output, { flags: 'wx' }),
    { signal },
  );
  // The rows of an interlaced image are stored in passes, so that some of the bytes show no part of
  // it completely.
  return interlaced ? Math.floor(found / total) * rows : Math.floor((found / total) * rows);
}

/** The checksum of a complete chunk is wrong. */
class ChecksumError extends Error {
  override readonly name = 'ChecksumError';
}

async function* readData(file: FileHandle, { offset, length }: Part): AsyncGenerator<Buffer> {
  let checksum = crc32('IDAT');
  let found = 0;
  for await (const block of readRange(file, offset, offset + length)) {
    checksum = crc32(block, checksum);
    found += block.length;
    yield block;
  }
  const stored = await readAt(file, offset + length, 4);
  if (found === length && stored.found === 4 && stored.bytes.readUInt32BE(0) !== checksum)
    throw new ChecksumError();
}

/**
 * Corrects the checksums of the header and of the image data of the PNG at `path`, if the data is
 * undamaged by its own checksum, Adler-32, and has the size of the image. Returns whether one was
 * wrong.
 */
export async function correctChecksums(path: string): Promise<boolean> {
  await using file = await open(path, 'r+');
  const layout = await readLayout(new WindowReader(file));
  if (!layout || !(await isUndamaged(file, layout))) return false;
  let corrected = false;
  for (const { offset, length } of [HEADER, ...layout.data]) {
    let checksum = 0;
    // The checksum includes the name.
    for await (const block of readRange(file, offset - 4, offset + length)) checksum = crc32(block, checksum);
    const stored = await readAt(file, offset + length, 4);
    if (stored.bytes.readUInt32BE(0) === checksum) continue;
    await writeAt(file, offset + length, bigEndian(checksum, 4));
    corrected = true;
  }
  return corrected;
}

/** Place of IHDR (section 11.2.1). */
const HEADER = { offset: 16, length: 13 } as const;

async function isUndamaged(file: FileHandle, { data, total }: PngLayout): Promise<boolean> {
  let found = 0;
  try {
    await pipeline(
      Readable.from(readContents(file, data), { objectMode: false }),
      createInflate(),
      async (blocks) => {
        for await (const block of blocks) {
          found += block.length;
          if (found > total) throw new ChecksumError(); // instead of unpacking what follows
        }
      },
    );
  } catch (error) {
    if (isDamage(error)) return false;
    throw error;
  }
  return found === total;
}

/** Returns whether image data is damaged: zlib reports `Z_DATA_ERROR` or `Z_NEED_DICT`. */
function isDamage(error: unknown): boolean {
  return error instanceof ChecksumError || String((error as NodeJS.ErrnoException).code).startsWith('Z_');
}

/** Maximum number of colours of a palette (section 11.2.2). */
const MAX_COLOURS = 256;

/**
 * Appends black to the palette of the PNG at `path`. Firefox and sharp show an index beyond the
 * palette black, Chromium 156 in the last colour of the palette.
 *
 * @returns whether it has a palette
 * @throws {ServiceError} DISK_FULL if the disk has no space for the repaired file beside the input
 */
export async function completePalette(path: string, context: RepairContext): Promise<boolean> {
  await using file = await open(path, 'r');
  let palette: Part | undefined;
  for await (const chunk of pngChunks(new WindowReader(file))) {
    if (chunk.name === 'PLTE') palette = chunk;
    if (palette || chunk.name === 'IDAT') break; // the palette precedes the image data
  }
  if (!palette) return false;
  const { offset, length } = palette;
  const [depth = 0] = (await readAt(file, DEPTH_AT, 1)).bytes;
  const stored = await readAt(file, offset, Math.min(length, MAX_COLOURS * 3));
  const colours = Buffer.alloc(2 ** Math.min(8, depth) * 3);
  stored.bytes.copy(colours);
  await replaceRange({ ...context, path, file }, palette, pngChunk('PLTE', colours));
  return true;
}
