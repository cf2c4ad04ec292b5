import type { FileHandle } from 'node:fs/promises';

const WINDOW = 64 * 1024;

/** An open file, or what reads like one. */
export type Readable = Pick<FileHandle, 'read'>;

/**
 * Reads a file here and there through one window of 64 KiB, so that walking a
 * file of any size costs the same memory. Past the end there are no bytes.
 */
export class Bytes {
  readonly #file: Readable;
  readonly #window = Buffer.allocUnsafe(WINDOW);
  #start = 0;
  #filled = 0;

  constructor(file: Readable) {
    this.#file = file;
  }

  /** Up to `length` bytes (at most 64 KiB) from `offset` on; fewer where the file ends. Valid until the next call. */
  async at(offset: number, length: number): Promise<Buffer> {
    if (offset < this.#start || offset + length > this.#start + this.#filled) {
      const { bytesRead } = await this.#file.read(this.#window, 0, WINDOW, offset);
      this.#start = offset;
      this.#filled = bytesRead;
    }
    const from = offset - this.#start;
    return this.#window.subarray(from, Math.min(from + length, this.#filled));
  }
}
