/**
 * @module Reads and changes files, with only a few blocks in memory, and headers at random offsets,
 * with limits on memory, time and the number of reads.
 */
import { closeSync, constants, createWriteStream, openSync, readSync } from 'node:fs';
import { type FileHandle, open, rename, stat } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { isTurnOver, waitForTurn } from './event-loop.ts';

/** Flags for opening a file of a tool: do not follow a symbolic link, nor block on a pipe. */
export const OPEN_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** Bytes of a file to read at once. */
export const BLOCK_BYTES = 64 * 1024;

/** Opens the file at `path` for reads through a window and for large ones, and closes it again. */
export async function withReader<T>(
  path: string,
  use: (bytes: WindowReader, whole: ByteReader) => Promise<T>,
): Promise<T> {
  const fd = openSync(path, OPEN_FLAGS);
  // The file was just written, so reading it from memory takes less time than a round trip to
  // another thread.
  const file: PositionedReader = {
    async read(buffer, offset, length, position) {
      return { bytesRead: readSync(fd, buffer, offset, length, position) };
    },
  };
  try {
    return await use(new WindowReader(file), fileReader(file));
  } finally {
    closeSync(fd);
  }
}

/** Reads bytes. Those beyond the end of the file are 0, and are not counted in `found`. */
export async function readAt(
  file: PositionedReader,
  at: number,
  length: number,
): Promise<{ readonly bytes: Buffer; readonly found: number }> {
  const bytes = Buffer.alloc(length);
  const { bytesRead } = await file.read(bytes, 0, length, at);
  return { bytes, found: bytesRead };
}

/** Reads a file without a window, for few or large reads. Those beyond 2⁵³ return no bytes. */
export const fileReader = (file: PositionedReader): ByteReader => ({
  async read(at, length) {
    if (!Number.isSafeInteger(at)) return NO_BYTES;
    const { bytes, found } = await readAt(file, at, length);
    return bytes.subarray(0, found);
  },
});

/**
 * Writes all bytes at an offset. One call of the system can write fewer, for example on a disk that
 * is almost full.
 *
 * @throws the error of the system, or an error if it writes nothing
 */
export async function writeAt(file: FileHandle, at: number, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, at + done);
    if (bytesWritten === 0) throw new Error(`Wrote ${done} of ${bytes.length} bytes.`);
    done += bytesWritten;
  }
}

/** Encodes an unsigned number of up to 6 bytes, the most significant byte first. */
export function bigEndian(value: number, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  bytes.writeUIntBE(value, 0, length);
  return bytes;
}

/** Encodes an unsigned number of up to 6 bytes, the least significant byte first. */
export const littleEndian = (value: number, length: number): Buffer => bigEndian(value, length).reverse();

/** Yields the bytes of a range in blocks. Ends early if the file does. */
export async function* readRange(file: FileHandle, from: number, to: number): AsyncGenerator<Buffer> {
  for (let at = from; at < to; ) {
    const { bytes, found } = await readAt(file, at, Math.min(BLOCK_BYTES, to - at));
    if (found === 0) return;
    yield bytes.subarray(0, found);
    at += found;
  }
}

/** Limits of a repair that makes a file larger or replaces it. */
export interface RepairContext {
  /** Name of the file in error messages. */
  readonly label: string;
  /** Maximum size of the repaired file, in bytes. */
  readonly maxBytes: number;
  /** Counts bytes that are about to be written in addition to those of the file. */
  readonly store: (bytes: number) => Promise<void>;
  /** Counts bytes of a file that was replaced. */
  readonly release: (bytes: number) => void;
}

/** A file to repair in place. It is open for reading and writing. */
export interface RepairTarget extends RepairContext {
  readonly path: string;
  readonly file: FileHandle;
}

/**
 * Replaces the content of a file by a new file at its path. Both files are on the disk until the
 * new one is complete.
 *
 * @param bytes size of the new content
 * @throws {ServiceError} DISK_FULL if the disk has no space for both
 */
export async function replaceContent(
  { path, file, store, release }: RepairTarget,
  content: Iterable<Buffer> | AsyncIterable<Buffer>,
  bytes: number,
): Promise<void> {
  const { size } = await file.stat();
  await store(bytes);
  await replaceFile(path, content);
  release(size);
}

/** Replaces the bytes between two offsets of a file, as {@link replaceContent} does. */
export async function replaceRange(
  target: RepairTarget,
  { start, end }: { readonly start: number; readonly end: number },
  content: Buffer,
): Promise<void> {
  const { file } = target;
  const { size } = await file.stat();
  const whole = withEdits(file, size, [{ at: start, removed: end - start, bytes: content }]);
  await replaceContent(target, whole, start + content.length + Math.max(0, size - end));
}

/** Bytes of a file that others replace. */
export interface Edit {
  readonly at: number;
  /** Number of bytes that are replaced. */
  readonly removed: number;
  readonly bytes: Buffer;
}

/**
 * Applies edits to the file at `path`, in place unless bytes before its end move.
 *
 * @param edit returns the edits, in the order of the file
 * @returns the new size in bytes
 */
export async function editFile(
  { path, bytes: size }: { readonly path: string; readonly bytes: number },
  edit: (file: FileHandle) => Promise<Edit[]> | Edit[],
): Promise<number> {
  await using file = await open(path, 'r+');
  const edits = await edit(file);
  if (edits.every(({ at, removed, bytes }) => at === size || removed === bytes.length)) {
    for (const { at, bytes } of edits) await writeAt(file, at, bytes);
  } else {
    await replaceFile(path, withEdits(file, size, edits));
  }
  return (await stat(path)).size;
}

async function* withEdits(file: FileHandle, size: number, edits: readonly Edit[]): AsyncGenerator<Buffer> {
  let done = 0;
  for (const { at, removed, bytes } of edits) {
    yield* readRange(file, done, at);
    yield bytes;
    done = at + removed;
  }
  yield* readRange(file, done, size);
}

async function replaceFile(path: string, content: Iterable<Buffer> | AsyncIterable<Buffer>): Promise<void> {
  const output = `${path}.new`;
  await pipeline(content, createWriteStream(output, { flags: 'wx', mode: 0o600 }));
  await rename(output, path);
}

const NO_BYTES = Buffer.alloc(0);

/** Maximum number of reads: ten thousand pages take four each. */
const MAX_READS = 100_000;
/** Maximum number of windows of 64 KiB: twenty times a file of 10 MiB. */
const MAX_REFILLS = 3_200;

/** A file takes too many reads. Only crafted files do. */
export class HeaderTooComplexError extends Error {
  override readonly name = 'HeaderTooComplexError';
}

/** A file whose bytes can be read at any offset. Returns fewer bytes at its end. */
export interface ByteReader {
  read(offset: number, length: number): Promise<Buffer>;
}

export const bufferReader = (buffer: Buffer): ByteReader => ({
  read: async (offset, length) => buffer.subarray(offset, offset + length),
});

/** An open file, or an object with the same `read`. */
interface PositionedReader {
  read(
    buffer: Buffer,
    offset: number,
    length: number,
    position: number,
  ): Promise<{ readonly bytesRead: number }>;
}

/**
 * Reads a file at random offsets through one window of 64 KiB, so that the memory does not depend
 * on the size of the file. Reads beyond the end, or beyond 2⁵³, which Node.js rejects, return no
 * bytes.
 */
export class WindowReader {
  readonly #file: PositionedReader;
  readonly #window = Buffer.allocUnsafe(BLOCK_BYTES);
  #start = 0;
  #filled = 0;
  #reads = 0;
  #refills = 0;

  constructor(file: PositionedReader) {
    this.#file = file;
  }

  /**
   * Reads up to `length` bytes (at most 64 KiB) from `offset`; fewer at the end of the file. Valid
   * until the next call.
   *
   * @throws {HeaderTooComplexError} if the file takes too many reads
   */
  async read(offset: number, length: number): Promise<Buffer> {
    this.#reads += 1;
    if (this.#reads > MAX_READS || this.#refills > MAX_REFILLS) throw new HeaderTooComplexError();
    if (isTurnOver()) await waitForTurn();
    if (!Number.isSafeInteger(offset)) return NO_BYTES;
    if (offset < this.#start || offset + length > this.#start + this.#filled) {
      this.#refills += 1;
      const { bytesRead } = await this.#file.read(this.#window, 0, BLOCK_BYTES, offset);
      this.#start = offset;
      this.#filled = bytesRead;
    }
    const from = offset - this.#start;
    return this.#window.subarray(from, Math.min(from + length, this.#filled));
  }
}
