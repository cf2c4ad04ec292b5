/** @module Reads numbers of any length in bits. */

/** Encoding of a number after its selector: the number of bits, and a constant to add. */
type Choice = readonly [bits: number, plus: number];
/** Encodings that a selector of two bits chooses from. */
export type Choices = readonly [Choice, Choice, Choice, Choice];

/** The bytes end before the number does. */
export class OutOfBitsError extends Error {
  override readonly name = 'OutOfBitsError';
}

/** Reads bits from the least significant one of each byte, as JPEG XL stores them (ISO/IEC 18181-1, 9.2). */
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

/** Reads bits from the most significant one of each byte, as HEVC and AV1 store them. */
export class HighBits {
  readonly #bytes: Uint8Array;
  #at = 0;

  /** @param bytes the bytes from the first number on */
  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** Reads an unsigned number of up to 32 bits. @throws OutOfBitsError */
  read(count: number): number {
    let value = 0;
    for (let bit = 0; bit < count; bit += 1, this.#at += 1) {
      const byte = this.#bytes[this.#at >> 3];
      if (byte === undefined) throw new OutOfBitsError();
      value = value * 2 + ((byte >> (7 - (this.#at & 7))) & 1);
    }
    return value;
  }

  /** Reads a single bit. @throws OutOfBitsError */
  flag(): boolean {
    return this.read(1) === 1;
  }

  skip(count: number): void {
    this.#at += count;
  }

  /**
   * Reads an Exp-Golomb code: ue(v) of HEVC, uvlc() of AV1. More than 31 leading zeros are no valid code.
   *
   * @throws OutOfBitsError
   */
  readExpGolomb(): number {
    let zeros = 0;
    while (!this.flag()) zeros += 1;
    if (zeros > 31) throw new OutOfBitsError();
    return 2 ** zeros - 1 + this.read(zeros);
  }
}
