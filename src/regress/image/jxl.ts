/** @module Decodes JPEG XL with jxl-oxide, which shares no code with libjxl. */
import { readFileSync } from 'node:fs';
import { initSync, JxlImage } from 'jxl-oxide-wasm';
import { findInPackage } from '../../folders.ts';

/** A frame of a JPEG XL. */
export interface JxlFrame {
  /** Has the depth and the colour profile of the JPEG XL. */
  readonly png: Buffer;
  /** Duration in ms. */
  readonly delay: number;
}

let isLoaded = false;

/**
 * Loads the decoder, and makes its encoder of PNGs, which takes most of the time, search less for repeated bytes. Pixels are the same
 * in any case. In a version without the table, the encoder is not changed, and slower.
 */
function load(): void {
  const { memory } = initSync({ module: readFileSync(findInPackage('jxl-oxide-wasm/module.wasm')) });
  const at = Buffer.from(memory.buffer).indexOf(Buffer.from(Uint16Array.from(SEARCHES).buffer));
  if (at >= 0) new DataView(memory.buffer).setUint16(at + DEFAULT_LEVEL * 2, GREEDY, true);
  isLoaded = true;
}

/** Table of miniz_oxide: how long each level searches. Version 0.12.5 of jxl-oxide has no other way to return pixels than a PNG. */
export const SEARCHES = [0, 1, 6, 32, 16, 32, 128, 256, 512, 768, 1500];
const DEFAULT_LEVEL = 6;
/** Its flag for taking the first match, with one search. */
const GREEDY = 0x4001;

/**
 * Decodes all frames of a JPEG XL, which it also turns upright.
 *
 * @throws {Error} if the file is damaged or truncated
 */
export function decodeJxl(file: Buffer): { readonly frames: readonly JxlFrame[]; readonly plays: number } {
  if (!isLoaded) load();
  const image = new JxlImage();
  try {
    image.feedBytes(file);
    if (!image.tryInit() || !image.loaded) throw new Error('the JPEG XL is truncated');
    const frames = Array.from({ length: image.numLoadedKeyframes }, (_, at) => {
      const frame = image.render(at);
      return { delay: frame.duration, png: Buffer.from(frame.encodeToPng()) };
    });
    return { frames, plays: image.numLoops ?? 0 };
  } finally {
    image.free();
  }
}
