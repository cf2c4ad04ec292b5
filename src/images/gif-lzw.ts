/** @module Counts, decodes and encodes the compressed pixels of a GIF: variable-length LZW codes (GIF89a, appendix F). */

const MAX_CODE_BITS = 12;

/**
 * Creates a decoder, which receives the compressed data piece by piece and returns the number of pixels so far.
 *
 * @param minCodeBits "LZW minimum code size", the byte before the data
 * @param target receives the decoded pixels, as far as there is space. Without it, they are only counted.
 */
export function createPixelDecoder(minCodeBits: number, target?: Uint8Array): (piece: Uint8Array) => number {
  const clear = 1 << Math.min(minCodeBits, MAX_CODE_BITS - 1);
  const end = clear + 1;
  const lengths = new Uint16Array(1 << MAX_CODE_BITS).fill(1);
  /** The pixel sequence of each code: its last pixel, the code of all pixels before it, and its first pixel. */
  const lasts = Uint8Array.from(lengths, (_, code) => code);
  const prefixes = new Uint16Array(lengths.length);
  const firsts = Uint8Array.from(lasts);
  let pixels = 0;
  let isOver = false;
  let [codeBits, next, previous] = [minCodeBits + 1, clear + 2, -1];
  let [bits, bitCount] = [0, 0];

  function write(sequence: number, to: Uint8Array): void {
    let code = sequence;
    for (let at = pixels + (lengths[code] as number) - 1; at >= pixels; at -= 1) {
      if (at < to.length) to[at] = lasts[code] as number;
      code = prefixes[code] as number;
    }
  }

  function decode(code: number): void {
    if (code === clear) {
      [codeBits, next, previous] = [minCodeBits + 1, clear + 2, -1];
      return;
    }
    const isKnown = code < (previous < 0 ? clear : next);
    if (code === end || (!isKnown && (code !== next || previous < 0))) {
      isOver = true; // the end code, or an invalid code
      return;
    }
    if (previous >= 0 && next < lengths.length) {
      lengths[next] = (lengths[previous] as number) + 1;
      lasts[next] = firsts[isKnown ? code : previous] as number;
      prefixes[next] = previous;
      firsts[next] = firsts[previous] as number;
      next += 1;
      if (next === 1 << codeBits && codeBits < MAX_CODE_BITS) codeBits += 1;
    }
    if (target && pixels < target.length) write(code, target);
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

/** Maximum length of a sub-block, in bytes (GIF89a, section 15). */
const MAX_BLOCK_BYTES = 255;

/**
 * Encodes pixels as sub-blocks with one code per pixel. A clear code resets the table before its codes would need another bit.
 *
 * @param minCodeBits number of bits of a pixel: at least 2
 * @returns the sub-blocks with their terminator
 */
export function encodePixels(pixels: Uint8Array, minCodeBits: number): Buffer {
  const [clear, codeBits] = [1 << minCodeBits, minCodeBits + 1];
  const codesPerTable = clear - 2;
  const codes = pixels.length + Math.ceil(pixels.length / codesPerTable) + 1;
  const data = new Uint8Array(Math.ceil((codes * codeBits) / 8));
  let [at, bits, bitCount] = [0, 0, 0];
  for (let index = 0; index <= pixels.length; index += 1) {
    if (index < pixels.length && index % codesPerTable === 0) {
      bits |= clear << bitCount;
      bitCount += codeBits;
    }
    bits |= (pixels[index] ?? clear + 1) << bitCount; // the end follows the last pixel
    bitCount += codeBits;
    for (; bitCount >= 8; bitCount -= 8) {
      data[at] = bits;
      at += 1;
      bits >>>= 8;
    }
  }
  if (bitCount > 0) data[at] = bits;
  const blocks: Uint8Array[] = [];
  for (let start = 0; start < data.length; start += MAX_BLOCK_BYTES) {
    const block = data.subarray(start, start + MAX_BLOCK_BYTES);
    blocks.push(Uint8Array.of(block.length), block);
  }
  return Buffer.concat([...blocks, Uint8Array.of(0)]);
}
