/** @module Reads headers at random offsets, with limits on memory, time and the number of reads. */
import { setImmediate } from 'node:timers/promises';

const WINDOW_BYTES = 64 * 1024;
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
export interface PositionedReader {
  read(
    buffer: Buffer,
    offset: number,
    length: number,
    position: number,
  ): Promise<{ readonly bytesRead: number }>;
}

/**
 * Reads a file at random offsets through one window of 64 KiB, so that the memory does not depend on the size of the
 * file. Reads beyond the end, or beyond 2⁵³, which Node.js rejects, return no bytes.
 */
export class WindowReader {
  readonly #file: PositionedReader;
  readonly #window = Buffer.allocUnsafe(WINDOW_BYTES);
  #start = 0;
  #filled = 0;
  #reads = 0;
  #refills = 0;

  constructor(file: PositionedReader) {
    this.#file = file;
  }

  /**
   * Reads up to `length` bytes (at most 64 KiB) from `offset`; fewer at the end of the file. Valid until the next call.
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
      const { bytesRead } = await this.#file.read(this.#window, 0, WINDOW_BYTES, offset);
      this.#start = offset;
      this.#filled = bytesRead;
    }
    const from = offset - this.#start;
    return this.#window.subarray(from, Math.min(from + length, this.#filled));
  }
}

/** Time after which all work together yields to the event loop, in ms. */
const TURN_MS = 5;
let turnStarted = 0;
let nextTurn: Promise<void> | undefined;

/** Returns whether work must wait for the next turn of the event loop, because the last wait was too long ago. */
export function isTurnOver(): boolean {
  return performance.now() - turnStarted > TURN_MS;
}

/** Waits for the next turn of the event loop. */
export function waitForTurn(): Promise<void> {
  nextTurn ??= setImmediate().then(() => {
    nextTurn = undefined;
    turnStarted = performance.now();
  });
  return nextTurn;
}
