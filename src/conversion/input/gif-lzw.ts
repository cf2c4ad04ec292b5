/** @module Counts the pixels in the compressed data of a GIF (GIF89a, appendix F). */

const MAX_CODE_BITS = 12;

/**
 * Creates a function that takes the compressed data piece by piece. It keeps only how many pixels each code stands for.
 *
 * @param minCodeBits the number in front of the data
 * @returns the number of pixels so far
 */
export function createPixelCounter(minCodeBits: number): (piece: Uint8Array) => number {
  const clear = 1 << Math.min(minCodeBits, MAX_CODE_BITS - 1);
  const end = clear + 1;
  const lengths = new Uint16Array(1 << MAX_CODE_BITS).fill(1);
  let pixels = 0;
  let isOver = false;
  let [codeBits, next, previous] = [minCodeBits + 1, clear + 2, -1];
  let [bits, bitCount] = [0, 0];

  function decode(code: number): void {
    if (code === clear) {
      [codeBits, next, previous] = [minCodeBits + 1, clear + 2, -1];
      return;
    }
    const isKnown = code < (previous < 0 ? clear : next);
    if (code === end || (!isKnown && (code !== next || previous < 0))) {
      isOver = true; // the end, or damaged
      return;
    }
    if (previous >= 0 && next < lengths.length) {
      lengths[next] = (lengths[previous] as number) + 1;
      next += 1;
      if (next === 1 << codeBits && codeBits < MAX_CODE_BITS) codeBits += 1;
    }
    pixels += lengths[code] as number;
    previous = code;
  }

  return (piece) => {
    for (const byte of piece) {
      if (isOver) break;
      bits |= byte << bitCount;
      bitCount += 8;
      while (bitCount >= codeBits && !isOver) {
        const code = bits & ((1 << codeBits) - 1);
        bits >>>= codeBits;
        bitCount -= codeBits;
        decode(code);
      }
    }
    return pixels;
  };
}
