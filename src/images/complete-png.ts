/** @module Completes a truncated PNG. */

import { createWriteStream } from 'node:fs';
import { type FileHandle, open, rename } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants, crc32, createDeflate, createInflate } from 'node:zlib';
import { WindowReader } from './containers/window-reader.ts';
import type { ImageInfo, ShownPart } from './image-info.ts';
import { inspect } from './inspect.ts';
import { type PngDataChunk, type PngLayout, readPngLayout } from './png-data.ts';
import { BLOCK_BYTES, pngChunk, readRange } from './png-file.ts';

/**
 * Replaces the truncated PNG at `path` by a complete one. Keeps the chunks before the image data, and fills the missing rows
 * with zeros. `shownPart` of the result states which rows were in the file. Only a few blocks are in memory at a time.
 *
 * @returns the properties of the complete PNG; undefined if the file contains no row, or if its image data is damaged
 */
export async function completePng(
  path: string,
  _image: ImageInfo,
  signal: AbortSignal,
): Promise<ImageInfo | undefined> {
  const output = `${path}.png`;
  const file = await open(path);
  let shownPart: ShownPart | undefined;
  try {
    const layout = await readPngLayout(new WindowReader(file));
    if (!layout) return undefined;
    const bytes = await writeComplete(file, layout, output, signal);
    shownPart = findShownPart(layout, bytes);
  } catch (error) {
    if (isDamage(error)) return undefined;
    throw error;
  } finally {
    await file.close();
  }
  if (!shownPart) return undefined;
  await rename(output, path);
  return { ...(await inspect(path, 'png')), truncated: true, shownPart };
}

/**
 * Writes the complete PNG.
 *
 * @returns the number of bytes of uncompressed image data that the file contains
 */
async function writeComplete(
  file: FileHandle,
  layout: PngLayout,
  output: string,
  signal: AbortSignal,
): Promise<number> {
  const { passes, head, tail } = layout;
  const total = passes.reduce((sum, { rows, rowBytes }) => sum + rows * rowBytes, 0);
  let found = 0;
  async function* compressed(): AsyncGenerator<Buffer> {
    for (const chunk of layout.data) {
      for await (const block of readChunk(file, chunk)) {
        if (found < total) yield block;
      }
    }
  }
  async function* filled(data: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const block of data) {
      const wanted = block.subarray(0, total - found);
      found += wanted.length;
      if (wanted.length > 0) yield wanted;
    }
    for (let at = found; at < total; at += BLOCK_BYTES) yield Buffer.alloc(Math.min(BLOCK_BYTES, total - at));
  }
  async function* chunks(data: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    yield* readRange(file, 0, head);
    for await (const block of data) yield pngChunk('IDAT', block);
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
  return found;
}

/** The checksum of a complete chunk is wrong. */
class ChecksumError extends Error {
  override readonly name = 'ChecksumError';
}

/** Reads the content of a chunk, as far as it is in the file. */
async function* readChunk(file: FileHandle, { at, length }: PngDataChunk): AsyncGenerator<Buffer> {
  let checksum = crc32('IDAT');
  let found = 0;
  for await (const block of readRange(file, at, at + length)) {
    checksum = crc32(block, checksum);
    found += block.length;
    yield block;
  }
  const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, at + length);
  if (found === length && bytesRead === 4 && buffer.readUInt32BE(0) !== checksum) throw new ChecksumError();
}

/** Returns whether an error means damaged image data: zlib reports it as `Z_DATA_ERROR` or `Z_NEED_DICT`. */
function isDamage(error: unknown): boolean {
  return error instanceof ChecksumError || String((error as NodeJS.ErrnoException).code).startsWith('Z_');
}

/** Distance of the known pixels after each pass of Adam7 except the last. */
const STEPS = [8, 8, 4, 4, 2, 2] as const;

/** Returns the part of the image that this number of bytes contains; undefined if they contain no row. */
function findShownPart({ passes, interlaced }: PngLayout, bytes: number): ShownPart | undefined {
  let left = bytes;
  let pass = 0;
  for (const { rows, rowBytes } of passes.slice(0, -1)) {
    if (left < rows * rowBytes) break;
    left -= rows * rowBytes;
    pass += 1;
  }
  const { rowBytes } = passes.at(-1) as { rowBytes: number };
  const rows = rowBytes === 0 ? 0 : Math.floor(left / rowBytes);
  if (!interlaced) return rows === 0 ? undefined : { rows };
  const step = STEPS[pass - 1];
  if (!step) return undefined;
  // The last pass has every second row. The rows between them are complete already.
  return pass === STEPS.length ? { rows: 2 * rows + 1, step } : { rows: 0, step };
}
