/** @module Reads numbers of any length in bits. */

/** The four encodings of a number that a selector of two bits chooses from. Each has a number of bits, and a constant to add. */
export type Choices = readonly number[];

/** The bytes end before the number does. */
export class OutOfBitsError extends Error {
  override readonly name = 'OutOfBitsError';
}

abstract class BitReader {
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
  abstract read(count: number): number;

  /**
   * Reads a single bit.
   *
   * @throws {OutOfBitsError}
   */
  flag(): boolean {
    return this.read(1) === 1;
  }

  /**
   * Skips this number of bits.
   *
   * @throws {OutOfBitsError}
   */
  skip(count: number): void {
    for (let left = count; left > 0; left -= 32) this.read(Math.min(left, 32));
  }

  /** Returns the byte that has the next bit, and the number of its bits that were read already. */
  protected next(): { readonly byte: number; readonly used: number } {
    const byte = this.#bytes[this.#at >> 3];
    if (byte === undefined) throw new OutOfBitsError();
    const used = this.#at & 7;
    this.#at += 1;
    return { byte, used };
  }
}

/** Reads bits from the least significant one of each byte, as JPEG XL stores them (ISO/IEC 18181-1, 9.2). */
export class LowBits extends BitReader {
  read(count: number): number {
    let value = 0;
    for (let bit = 0; bit < count; bit += 1) {
      const { byte, used } = this.next();
      value += ((byte >> used) & 1) * 2 ** bit;
    }
    return value;
  }

  /**
   * Reads a number whose encoding a selector of two bits chooses (`U32` in the standard).
   *
   * @throws {OutOfBitsError}
   */
  pick(...choices: Choices): number {
    const at = 2 * this.read(2);
    return this.read(choices[at] as number) + (choices[at + 1] as number);
  }
}

/** Reads bits from the most significant one of each byte, as HEVC and AV1 store them. */
export class HighBits extends BitReader {
  read(count: number): number {
    let value = 0;
    for (let bit = 0; bit < count; bit += 1) {
      const { byte, used } = this.next();
      value = value * 2 + ((byte >> (7 - used)) & 1);
    }
    return value;
  }

  /**
   * Reads an Exp-Golomb code: ue(v) of HEVC, uvlc() of AV1. More than 31 leading zeros are no valid code.
   *
   * @throws {OutOfBitsError}
   */
  readExpGolomb(): number {
    let zeros = 0;
    while (!this.flag()) zeros += 1;
    if (zeros > 31) throw new OutOfBitsError();
    return 2 ** zeros - 1 + this.read(zeros);
  }
}
