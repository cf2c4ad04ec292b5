import { setImmediate } from 'node:timers/promises';

const WINDOW_BYTES = 64 * 1024;
const NO_BYTES = Buffer.alloc(0);

/** More looks than an honest file of any setting needs: ten thousand pages take four each. */
const MAX_READS = 100_000;
/** And windows, of 64 KiB: twenty times a file of 10 MiB. */
const MAX_REFILLS = 3_200;
/** How long all readers together may keep the event loop until others get their turn, in ms. */
const TURN_MS = 5;
let turnStarted = 0;
let nextTurn: Promise<void> | undefined;

/** Waits for the next turn of the event loop, which all readers begin together. */
function waitForTurn(): Promise<void> {
  nextTurn ??= setImmediate().then(() => {
    nextTurn = undefined;
    turnStarted = performance.now();
  });
  return nextTurn;
}

/** A file that is made so that looking through it takes for ever. */
export class HeaderTooComplexError extends Error {
  override readonly name = 'EndlessFile';
}

/** An open file, or what reads like one. */
export interface PositionedReader {
  read(
    buffer: Buffer,
    offset: number,
    length: number,
    position: number,
  ): Promise<{ readonly bytesRead: number }>;
}

/**
 * Reads a file here and there through one window of 64 KiB, so that walking a
 * file of any size costs the same memory. Past the end there are no bytes, and
 * no file reaches past 2⁵³, where Node refuses to read.
 */
export class WindowReader {
  readonly #file: PositionedReader;
  readonly #window = Buffer.allocUnsafe(WINDOW_BYTES);
  #start = 0;
  #filled = 0;
  #looks = 0;
  #windows = 0;

  constructor(file: PositionedReader) {
    this.#file = file;
  }

  /** Up to `length` bytes (at most 64 KiB) from `offset` on; fewer where the file ends. Valid until the next call. @throws EndlessFile */
  async read(offset: number, length: number): Promise<Buffer> {
    this.#looks += 1;
    if (this.#looks > MAX_READS || this.#windows > MAX_REFILLS) throw new HeaderTooComplexError();
    if (performance.now() - turnStarted > TURN_MS) await waitForTurn();
    if (!Number.isSafeInteger(offset)) return NO_BYTES;
    if (offset < this.#start || offset + length > this.#start + this.#filled) {
      this.#windows += 1;
      const { bytesRead } = await this.#file.read(this.#window, 0, WINDOW_BYTES, offset);
      this.#start = offset;
      this.#filled = bytesRead;
    }
    const from = offset - this.#start;
    return this.#window.subarray(from, Math.min(from + length, this.#filled));
  }
}
