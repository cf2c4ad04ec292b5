/** @module Reads the bit-packed numbers of JPEG XL, least significant bit first (ISO/IEC 18181-1, 9.2). */

/** Encoding of a number after its selector: the number of bits, and a constant to add. */
type Choice = readonly [bits: number, plus: number];
/** Encodings that a selector of two bits chooses from. */
export type Choices = readonly [Choice, Choice, Choice, Choice];

/** The bytes end before the number does. */
export class OutOfBitsError extends Error {
  override readonly name = 'OutOfBitsError';
}

/** Reads numbers of any length in bits. */
export class Bits {
  readonly #bytes: Uint8Array;
  #at = 0;

  /** @param bytes start with the first number */
  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /**
   * Reads an unsigned number of up to 32 bits.
   *
   * @throws {OutOfBitsError}
   */
  read(count: number): number {
    let value = 0;
    for (let bit = 0; bit < count; bit += 1, this.#at += 1) {
      const byte = this.#bytes[this.#at >> 3];
      if (byte === undefined) throw new OutOfBitsError();
      value += ((byte >> (this.#at & 7)) & 1) * 2 ** bit;
    }
    return value;
  }

  /**
   * Reads a single bit.
   *
   * @throws {OutOfBitsError}
   */
  flag(): boolean {
    return this.read(1) === 1;
  }

  /**
   * Reads a number whose encoding a selector of two bits chooses (`U32` in the standard).
   *
   * @throws {OutOfBitsError}
   */
  pick(choices: Choices): number {
    const [bits, plus] = choices[this.read(2)] as Choice;
    return this.read(bits) + plus;
  }

  /**
   * Skips this number of bits.
   *
   * @throws {OutOfBitsError}
   */
  skip(count: number): void {
    for (let left = count; left > 0; left -= 32) this.read(Math.min(left, 32));
  }
}
