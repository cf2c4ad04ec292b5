/** @module Reads numbers of any length in bits. */

/** How a number is stored: after a selector of two bits, so many bits and what is added to them. */
type Choice = readonly [bits: number, plus: number];
/** As many as a selector of two bits can name. */
export type Choices = readonly [Choice, Choice, Choice, Choice];

/** The bytes ended before the number did. */
export class OutOfBits extends Error {
  override readonly name = 'OutOfBits';
}

/** Reads bits from the least significant one of each byte, as JPEG XL stores them (ISO/IEC 18181-1, 9.2). */
export class Bits {
  readonly #bytes: Uint8Array;
  #at = 0;

  /** @param bytes those from the first number on */
  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** An unsigned number of up to 32 bits. @throws OutOfBits */
  read(count: number): number {
    let value = 0;
    for (let bit = 0; bit < count; bit += 1, this.#at += 1) {
      const byte = this.#bytes[this.#at >> 3];
      if (byte === undefined) throw new OutOfBits();
      value += ((byte >> (this.#at & 7)) & 1) * 2 ** bit;
    }
    return value;
  }

  /** A single bit. @throws OutOfBits */
  flag(): boolean {
    return this.read(1) === 1;
  }

  /** A number that says by a selector how it is stored: U32 of the standard. @throws OutOfBits */
  pick(choices: Choices): number {
    const [bits, plus] = choices[this.read(2)] as Choice;
    return this.read(bits) + plus;
  }

  /** @throws OutOfBits */
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

  /** Reads an unsigned number of up to 32 bits. @throws OutOfBits */
  read(count: number): number {
    let value = 0;
    for (let bit = 0; bit < count; bit += 1, this.#at += 1) {
      const byte = this.#bytes[this.#at >> 3];
      if (byte === undefined) throw new OutOfBits();
      value = value * 2 + ((byte >> (7 - (this.#at & 7))) & 1);
    }
    return value;
  }

  /** Reads a single bit. @throws OutOfBits */
  flag(): boolean {
    return this.read(1) === 1;
  }

  skip(count: number): void {
    this.#at += count;
  }

  /**
   * Reads an Exp-Golomb code: ue(v) of HEVC, uvlc() of AV1. More than 31 leading zeros are no valid code.
   *
   * @throws OutOfBits
   */
  readExpGolomb(): number {
    let zeros = 0;
    while (!this.flag()) zeros += 1;
    if (zeros > 31) throw new OutOfBits();
    return 2 ** zeros - 1 + this.read(zeros);
  }
}
