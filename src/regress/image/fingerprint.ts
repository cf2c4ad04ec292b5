import { createHash } from 'node:crypto';
import { compositeOver } from './difference.ts';
import type { DecodedImage, Raster } from './image.ts';

/**
 * A picture in about a hundred characters, for a baseline without pictures. Of each part of a grid: the mean of each
 * colour on white, the mean of transparency, and how sharp it is, which is where another way to resize shows.
 */

const GRID = 4;
/** Red, green, blue, alpha, sharpness. */
const VALUES = 5;
/** Sharpness is kept as a logarithm: one step is 2.2%. */
const STEPS = 32;
/** Of many frames these stand for all. */
const MAX_FRAMES = 3;

export interface Distance {
  /** The largest difference of a mean, 0 to 255. */
  readonly means: number;
  /** The largest change of sharpness, as a share: 0.1 is 10% more or less. */
  readonly sharpness: number;
}

/** A digest of all pixels, 128 bits. */
export function digestOf({ frames }: DecodedImage): string {
  const hash = createHash('sha256');
  for (const { width, height, data } of frames) hash.update(`${width}x${height}`).update(data);
  return hash.digest('hex').slice(0, 32);
}

/** Of the first frame, the one in the middle and the last. */
export function fingerprintsOf({ frames }: DecodedImage): string[] {
  const places = Array.from({ length: MAX_FRAMES }, (_, at) => Math.floor((at * (frames.length - 1)) / 2));
  return [...new Set(places)].map((at) => fingerprint(frames[at] as Raster));
}

function fingerprint(raster: Raster): string {
  const { width, height, data } = compositeOver(raster, 255);
  const values = Buffer.alloc(GRID * GRID * VALUES);
  for (let part = 0; part < GRID * GRID; part += 1) {
    const [left, right] = span(part % GRID, width);
    const [top, bottom] = span(Math.floor(part / GRID), height);
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
      part * VALUES,
    );
  }
  return values.toString('base64');
}

/** Where a part of the grid begins and ends; at least one pixel, so that tiny pictures have parts, too. */
function span(part: number, side: number): [number, number] {
  const from = Math.min(side - 1, Math.floor((part * side) / GRID));
  return [from, Math.max(from + 1, Math.floor(((part + 1) * side) / GRID))];
}

/** How far two pictures are apart as far as their fingerprints tell. */
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
