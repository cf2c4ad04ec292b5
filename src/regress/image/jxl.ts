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
 * Instructions of the encoder of PNGs, miniz_oxide: `4096, 528384, level, select` chooses its flags. The second constant includes the
 * flag for storing bytes instead of compressing them, which is for level 0.
 */
export const CHOICE = Buffer.from('4180204180a02020011b', 'hex');
/** The constants exchanged: the level in use, which is 6, stores. */
const EXCHANGED = Buffer.from('4180a02041802020011b', 'hex');

/**
 * Loads the decoder. Version 0.12.5 returns pixels only as PNG, and their compression would take most of the time, so that it is turned
 * off. In a version without these instructions, it is not, and the decoder is slower.
 */
function load(): void {
  const module = readFileSync(findInPackage('jxl-oxide-wasm/module.wasm'));
  const at = module.indexOf(CHOICE);
  if (at >= 0) EXCHANGED.copy(module, at);
  initSync({ module });
  isLoaded = true;
}

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
