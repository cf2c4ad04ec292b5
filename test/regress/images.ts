/** @module Images for the tests of regress: the scene of the fixtures, and modifications of it. */

import { open, scene } from '../../scripts/fixtures/scene.ts';
import type { DecodedImage, Raster } from '../../src/regress/image/image.ts';

const drawn = scene();

/** Returns a copy of the scene of the fixtures. */
export const original = (): Raster => ({ ...drawn, data: drawn.data.slice() });

/** Recomputes each pixel of an area, by default of all, from its coordinates. */
export function redrawn(
  raster: Raster,
  colour: (x: number, y: number) => readonly number[],
  { left, top, width, height } = { left: 0, top: 0, width: raster.width, height: raster.height },
): Raster {
  const data = Uint8Array.from(raster.data);
  for (let y = top; y < top + height; y += 1) {
    for (let x = left; x < left + width; x += 1) {
      const at = (y * raster.width + x) * 4;
      // One by one: faster than data.set for four values.
      const values = colour(x, y);
      for (let channel = 0; channel < values.length; channel += 1)
        data[at + channel] = values[channel] as number;
    }
  }
  return { ...raster, data };
}

/** Returns the RGBA values of a pixel. */
export function pixel({ width, data }: Raster, x: number, y: number): number[] {
  const at = (y * width + x) * 4;
  return [data[at], data[at + 1], data[at + 2], data[at + 3]] as number[];
}

/** Shifts an image to the right by some pixels. */
export const shifted = (raster: Raster, by = 1): Raster =>
  redrawn(raster, (x, y) => pixel(raster, Math.max(0, x - by), y));

/** Blurs an image. `sigma` is in pixels. */
export async function blurred(raster: Raster, sigma: number): Promise<Raster> {
  return { ...raster, data: await open(raster).blur(sigma).raw().toBuffer() };
}

/** Creates an opaque image of one grey, 0 to 255. */
export const uniform = (value: number, width = 64, height = 64): Raster =>
  redrawn({ width, height, data: new Uint8Array(width * height * 4) }, () => [value, value, value, 255]);

/** Wraps frames as the result of a decoder. */
export function image(frames: readonly Raster[], facts: Partial<DecodedImage['facts']> = {}): DecodedImage {
  const [{ width, height }] = frames as [Raster];
  return { frames, facts: { width, height, frames: frames.length, alpha: false, ...facts } };
}
