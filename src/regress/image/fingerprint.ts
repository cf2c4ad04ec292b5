/**
 * @module Fingerprints: an image in about a hundred characters, for baselines without result files.
 * Each cell of a grid has the mean of each colour over white, the mean of alpha, and the sharpness,
 * which shows a change of the resize filter.
 */

import { createHash } from 'node:crypto';
import { compositeOver, type DecodedImage, type Raster } from './image.ts';

/** Cells per side of the grid. */
const GRID = 4;
/** Values per cell: red, green, blue, alpha, sharpness. */
const VALUES = 5;
/** Steps per doubling of sharpness, which is stored as a logarithm: one step is 2.2%. */
const STEPS = 32;
/** Maximum number of fingerprints of an animation or PDF. */
const MAX_FRAMES = 3;

export interface Distance {
  /** Maximum difference of a mean colour, 0 to 255. */
  readonly means: number;
  /** Maximum change of sharpness, as a fraction: 0.1 is 10% more or less. */
  readonly sharpness: number;
}

/** Returns a digest of all pixels: the first 128 bits of SHA-256, in hex. */
export function digestOf({ frames }: DecodedImage): string {
  const hash = createHash('sha256');
  for (const { width, height, data } of frames) hash.update(`${width}x${height}`).update(data);
  return hash.digest('hex').slice(0, 32);
}

/** Returns the fingerprints of the first, the middle and the last frame, in base64. */
export function fingerprintsOf({ frames }: DecodedImage): string[] {
  const indexes = Array.from({ length: MAX_FRAMES }, (_, at) => Math.floor((at * (frames.length - 1)) / 2));
  return [...new Set(indexes)].map((at) => fingerprint(frames[at] as Raster));
}

function fingerprint(raster: Raster): string {
  const { width, height, data } = compositeOver(raster, 255);
  const values = Buffer.alloc(GRID * GRID * VALUES);
  for (let cell = 0; cell < GRID * GRID; cell += 1) {
    const [left, right] = span(cell % GRID, width);
    const [top, bottom] = span(Math.floor(cell / GRID), height);
    const sums = [0, 0, 0, 0];
    let squares = 0;
    for (let y = top; y < bottom; y += 1) {
      for (let x = left; x < right; x += 1) {
        const at = (y * width + x) * 4;
        for (let channel = 0; channel < 3; channel += 1) {
          const value = data[at + channel] as number;
          sums[channel] = (sums[channel] as number) + value;
          if (x + 1 < width) squares += (value - (data[at + 4 + channel] as number)) ** 2;
          if (y + 1 < height) squares += (value - (data[at + 4 * width + channel] as number)) ** 2;
        }
        sums[3] = (sums[3] as number) + (raster.data[at + 3] as number);
      }
    }
    const pixels = Math.max(1, (right - left) * (bottom - top));
    const sharpness = Math.log2(1 + Math.sqrt(squares / pixels)) * STEPS;
    values.set(
      [...sums.map((sum) => Math.round(sum / pixels)), Math.min(255, Math.round(sharpness))],
      cell * VALUES,
    );
  }
  return values.toString('base64');
}

/** Returns the first pixel of a cell and the one after its last: at least one, also if tiny. */
function span(cell: number, side: number): [number, number] {
  const from = Math.min(side - 1, Math.floor((cell * side) / GRID));
  return [from, Math.max(from + 1, Math.floor(((cell + 1) * side) / GRID))];
}

/** Measures the distance of two images by their fingerprints. */
export function distance(one: readonly string[], other: readonly string[]): Distance {
  let means = 0;
  let steps = 0;
  for (const [frame, text] of one.entries()) {
    const [a, b] = [Buffer.from(text, 'base64'), Buffer.from(other[frame] ?? '', 'base64')];
    for (const [at, value] of a.entries()) {
      const delta = Math.abs(value - (b[at] ?? 0));
      if (at % VALUES === VALUES - 1) steps = Math.max(steps, delta);
      else means = Math.max(means, delta);
    }
  }
  return { means, sharpness: 2 ** (steps / STEPS) - 1 };
}
