/** @module Reads numbers of any length in bits. */

/** Four encodings, one of which a selector of two bits chooses: bits, and a constant to add. */
export type Choices = readonly number[];

/**
 * Which bit of a byte is the first: the least significant one, as in JPEG XL (ISO/IEC 18181-1,
 * 9.2), or the most significant one, as in HEVC and AV1.
 */
type BitOrder = 'low' | 'high';

/** The bytes end before the number does. */
class OutOfBitsError extends Error {
  override readonly name = 'OutOfBitsError';
}

/** Calls `read` with a reader. Returns undefined if the bytes end before a number does. */
export function readBits<T>(bytes: Uint8Array, order: BitOrder, read: (bits: BitReader) => T): T | undefined {
  try {
    return read(new BitReader(bytes, order));
  } catch (error) {
    if (error instanceof OutOfBitsError) return undefined;
    throw error;
  }
}

/** Reads bits. Its methods throw an {@link OutOfBitsError} beyond the end of the bytes. */
export class BitReader {
  readonly #bytes: Uint8Array;
  readonly #order: BitOrder;
  #at = 0;

  constructor(bytes: Uint8Array, order: BitOrder) {
    this.#bytes = bytes;
    this.#order = order;
  }

  /** Reads an unsigned number of up to 32 bits. */
  read(count: number): number {
    let value = 0;
    for (let done = 0; done < count; done += 1) {
      const byte = this.#bytes[this.#at >> 3];
      if (byte === undefined) throw new OutOfBitsError();
      const used = this.#at & 7;
      if (this.#order === 'low') value += ((byte >> used) & 1) * 2 ** done;
      else value = value * 2 + ((byte >> (7 - used)) & 1);
      this.#at += 1;
    }
    return value;
  }

  /** Reads a single bit. */
  flag(): boolean {
    return this.read(1) === 1;
  }

  /** Skips bits, also beyond the end of the bytes. */
  skip(count: number): void {
    this.#at += count;
  }

  /** Reads a number whose encoding a selector of two bits chooses (`U32` of JPEG XL). */
  pick(...choices: Choices): number {
    const at = 2 * this.read(2);
    return this.read(choices[at] as number) + (choices[at + 1] as number);
  }

  /** Reads an Exp-Golomb code: ue(v) of HEVC, uvlc() of AV1, of at most 31 leading zeros. */
  readExpGolomb(): number {
    let zeros = 0;
    while (!this.flag()) zeros += 1;
    if (zeros > 31) throw new OutOfBitsError();
    return 2 ** zeros - 1 + this.read(zeros);
  }
}
