/** @module Chunks of PNG (W3C PNG, third edition, section 5.3) and of RIFF, for WebP (RFC 9649, section 2.3). */

import { fileReader, OPEN_FLAGS, withFile } from './file.ts';
import { type ByteReader, type Part, walkParts } from './parts.ts';

/** Maximum number of chunks of a PNG to read. */
export const MAX_PNG_CHUNKS = 10_000;
/** Maximum number of chunks of a WebP to read: twice the largest MAX_FRAMES. */
const MAX_RIFF_CHUNKS = 20_000;
/** Maximum number of chunks of a PNG that a tool has written. ImageMagick 6 writes chunks of 8 KiB: 8 GB. */
const MAX_WRITTEN_CHUNKS = 1_000_000;
/** Length of the name and the length of a chunk in bytes. */
const HEAD_BYTES = 8;

/** Yields the chunks of a PNG. */
export function pngChunks(bytes: ByteReader, max = MAX_PNG_CHUNKS): AsyncGenerator<Part> {
  return walkParts(bytes, { from: 8, max }, HEAD_BYTES, (head, start) => {
    if (head.length < HEAD_BYTES) return undefined;
    const length = head.readUInt32BE(0);
    const end = start + HEAD_BYTES + length + 4; // a checksum follows the content
    return { name: head.toString('latin1', 4, 8), start, offset: start + HEAD_BYTES, length, end };
  });
}

/** Yields the chunks of a WebP. */
export function riffChunks(bytes: ByteReader, max = MAX_RIFF_CHUNKS): AsyncGenerator<Part> {
  return walkParts(bytes, { from: 12, max }, HEAD_BYTES, (head, start) => {
    if (head.length < HEAD_BYTES) return undefined;
    const length = head.readUInt32LE(4);
    const offset = start + HEAD_BYTES;
    return {
      name: head.toString('latin1', 0, 4),
      start,
      offset,
      length,
      end: offset + length + (length % 2),
    };
  });
}

/** A chunk in a file that is open while the chunk is used. */
export interface WrittenChunk extends Part {
  readonly body: () => Promise<Buffer>;
}

/**
 * Calls a function with the complete chunks of a PNG that a tool has written. Rejects links, and does not wait for a pipe.
 *
 * @param path can be replaced while the function runs
 */
export function withWrittenChunks<T>(
  path: string,
  use: (chunks: AsyncIterable<WrittenChunk>) => Promise<T>,
): Promise<T> {
  return withFile(path, OPEN_FLAGS, async (file) => {
    const { size } = await file.stat();
    const bytes = fileReader(file);
    async function* chunks(): AsyncGenerator<WrittenChunk> {
      for await (const chunk of pngChunks(bytes, MAX_WRITTEN_CHUNKS)) {
        if (chunk.end > size) return;
        yield { ...chunk, body: () => bytes.read(chunk.offset, chunk.length) };
      }
    }
    return use(chunks());
  });
}
