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

function load(): void {
  initSync({ module: readFileSync(findInPackage('jxl-oxide-wasm/module.wasm')) });
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
