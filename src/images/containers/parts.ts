/** @module Walks through the parts that files of many formats consist of, one after the other. */

/** A part of a file, such as a chunk or a box. In a truncated file, it can extend beyond the end. */
export interface Part {
  readonly name: string;
  /** Offset of its first byte, which is that of its length or name. */
  readonly start: number;
  /** Offset of its content. */
  readonly offset: number;
  /** Length of its content in bytes. */
  readonly length: number;
  /** Offset of the next part. */
  readonly end: number;
}

/** A file whose bytes can be read at any offset. Returns fewer bytes at its end. */
export interface ByteReader {
  read(offset: number, length: number): Promise<Buffer>;
}

/** Range of the parts, and their maximum number. */
export interface Walk {
  readonly from: number;
  /** Offset at which the last part ends at the latest. Default: the end of the file. */
  readonly to?: number;
  /** Maximum number of parts. Later ones are ignored. */
  readonly max: number;
}

/**
 * Yields the parts of a file, up to the first one without a valid start.
 *
 * @param headBytes maximum length of the start of a part
 * @param partAt parses the start of the part at an offset; returns undefined if it is invalid
 */
export async function* walkParts(
  bytes: ByteReader,
  { from, to = Number.POSITIVE_INFINITY, max }: Walk,
  headBytes: number,
  partAt: (head: Buffer, start: number) => Part | undefined,
): AsyncGenerator<Part> {
  for (let start = from, count = 0; count < max && start < to; count += 1) {
    const part = partAt(await bytes.read(start, headBytes), start);
    if (!part) return;
    yield part;
    start = part.end;
  }
}

/** Reads from bytes in memory. */
export const bufferReader = (buffer: Buffer): ByteReader => ({
  read: async (offset, length) => buffer.subarray(offset, offset + length),
});
