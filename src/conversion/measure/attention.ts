/**
 * @module Chooses the part that `cover` keeps with `position=attention`. The image is reduced to 32
 * × 32 pixels. Each gets a score: its edges, its likeness to skin, and how red it is. The scores
 * are blurred by the size of the part, whose centre is put at the maximum.
 *
 * The method and its constants are those of vips_smartcrop with VIPS_INTERESTING_ATTENTION
 * (https://github.com/libvips/libvips/blob/master/libvips/conversion/smartcrop.c). Its skin tone is
 * that of smartcrop.js.
 */
import { readFile, rm } from 'node:fs/promises';
import type { ImageInfo } from '../../images/image-info.ts';
import type { Fitting } from '../../tables/fitting.ts';
import { checkResult } from '../output/result.ts';
import { invalidOutputError } from '../output/tool-errors.ts';
import { planJob } from '../plan/index.ts';
import { createJob } from '../plan/job.ts';
import { choosesPart } from '../plan/resize.ts';
import type { ConversionJob, FocalPoint } from '../plan/types.ts';
import { runSteps } from '../steps/run-steps.ts';
import type { Measurement } from './measurement.ts';

/** Pixels per side of the reduced image. */
const SIDE = 32;
const PIXEL_BYTES = SIDE * SIDE * 3;
/** Size in bytes of the reduced image: a BMP with a header of 54 bytes. */
export const REDUCED_BYTES = 54 + PIXEL_BYTES;

/** Writes the reduced image, and chooses the point. */
export const ATTENTION: Measurement<Uint8Array> = {
  isOfResult: true,
  plan: (job) => (choosesPart(job) ? planJob(createReducingJob(job)) : undefined),
  async find(measuring, running) {
    const { stdout } = await runSteps(measuring.plan.steps, measuring, running);
    const { path, bytes } = await checkResult(running.source, measuring, stdout);
    try {
      if (bytes !== REDUCED_BYTES) throw invalidOutputError(`a bitmap of ${bytes} bytes`, running.source);
      return await readFile(path);
    } finally {
      await rm(path, { force: true });
    }
  },
  read: (bitmap, { fittings }) => ({ point: choosePoint(bitmap, fittings[0] as Fitting) }),
};

/**
 * Derives the job that writes the reduced image: the first frame or page, upright, in sRGB, on
 * black, so that transparent pixels do not count.
 */
function createReducingJob({ options, tools, measured, ...job }: ConversionJob): ConversionJob {
  const { rotate, flip, crop, dpi, trim } = options;
  const shown = { rotate, flip, crop, dpi, trim, frames: 'first', pages: 'first' } as const;
  const reduced = { width: SIDE, height: SIDE, fit: 'fill', enlarge: true } as const;
  const encoded = { format: 'bmp', quality: 100, metadata: 'none', background: '#000000' } as const;
  const image: ImageInfo = job.keepsAllFrames ? { ...job.image, orientation: 1 } : job.image; // frames are not rotated
  const { areas } = measured;
  return createJob(image, { ...encoded, ...shown, ...reduced }, tools, 'attention', { areas });
}

/** Returns the centre of the part with the highest score. `bitmap` has {@link REDUCED_BYTES}. */
export function choosePoint(bitmap: Uint8Array, { resized, result }: Fitting): FocalPoint {
  const [across, down] = [result.width / resized.width, result.height / resized.height];
  const scores = blur(scorePixels(bitmap.subarray(-PIXEL_BYTES)), (SIDE * Math.hypot(across, down)) / 10);
  // Of equal scores, the one nearest to the centre: flat images keep it.
  const middle = (SIDE - 1) / 2;
  const distance = (at: number): number => Math.hypot((at % SIDE) - middle, Math.floor(at / SIDE) - middle);
  const best = scores.reduce((found, score, at) => {
    const lead = score - (scores[found] as number);
    return lead > 0 || (lead === 0 && distance(at) < distance(found)) ? at : found;
  }, 0);
  return { x: ((best % SIDE) + 0.5) / SIDE, y: (Math.floor(best / SIDE) + 0.5) / SIDE };
}

type Triple = readonly [number, number, number];

/** Minimum luminance in percent of white for skin and colour: noise in dark parts has any hue. */
const MIN_LUMINANCE = 5;
/** Direction of skin tones in CIE XYZ. */
const SKIN: Triple = [0.78, 0.57, 0.44];
const EDGE_WEIGHT = 5;

/** @param pixels blue, green and red of each pixel, rows from the bottom, as in a BMP */
function scorePixels(pixels: Uint8Array): number[] {
  const colours = Array.from({ length: SIDE * SIDE }, (_, at): Triple => {
    const from = ((SIDE - 1 - Math.floor(at / SIDE)) * SIDE + (at % SIDE)) * 3;
    const [blue = 0, green = 0, red = 0] = pixels.subarray(from, from + 3);
    return toXyz(red, green, blue);
  });
  const luminance = colours.map(([, y]) => y);
  return colours.map((colour, at) => {
    const [x, y] = [at % SIDE, Math.floor(at / SIDE)];
    const own = luminance[at] as number;
    const around = [[-1, 0] as const, [1, 0] as const, [0, -1] as const, [0, 1] as const].map(
      ([right, down]) => valueAt(luminance, x + right, y + down),
    );
    const edge = EDGE_WEIGHT * Math.abs(4 * own - around.reduce((sum, value) => sum + value));
    return own > MIN_LUMINANCE ? edge + skinScore(colour) + redness(colour) : edge;
  });
}

/** Returns the value of a pixel. Those at the border continue beyond it. */
function valueAt(values: readonly number[], x: number, y: number): number {
  const clamp = (at: number): number => Math.min(SIDE - 1, Math.max(0, at));
  return values[clamp(y) * SIDE + clamp(x)] as number;
}

/** White of sRGB (D65) in CIE XYZ. */
const WHITE: Triple = [95.047, 100, 108.883];

/** Converts sRGB (IEC 61966-2-1), 0 to 255, to CIE XYZ in percent. */
function toXyz(...channels: Triple): Triple {
  const [red, green, blue] = channels.map((channel) => {
    const value = channel / 255;
    return 100 * (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  }) as [number, number, number];
  return [
    0.4124 * red + 0.3576 * green + 0.1805 * blue,
    0.2126 * red + 0.7152 * green + 0.0722 * blue,
    0.0193 * red + 0.1192 * green + 0.9505 * blue,
  ];
}

/** Returns 100 for skin, and less for other colours. */
function skinScore(colour: Triple): number {
  const length = Math.hypot(...colour);
  return 100 - 100 * Math.hypot(...colour.map((value, at) => value / length - (SKIN[at] as number)));
}

/** Returns a* of CIELAB: saturated red and magenta are above 0, green is below. */
function redness(colour: Triple): number {
  const [x = 0, y = 0] = colour.map((value, at) => {
    const share = value / (WHITE[at] as number);
    return share > 216 / 24389 ? Math.cbrt(share) : (841 / 108) * share + 4 / 29;
  });
  return 500 * (x - y);
}

/** Weights of the blur below this one are left out, as in libvips. */
const MIN_WEIGHT = 0.2;

/** Blurs both directions by a Gaussian function, at least by one pixel. */
function blur(values: readonly number[], sigma: number): number[] {
  const weight = (distance: number): number => Math.exp(-(distance ** 2) / (2 * Math.max(1, sigma) ** 2));
  const reach = Array.from({ length: SIDE }, (_, distance) => distance).filter(
    (distance) => weight(distance) >= MIN_WEIGHT,
  );
  const offsets = [...reach.slice(1).map((distance) => -distance), ...reach];
  const blurred = (from: readonly number[], right: number, down: number): number[] =>
    from.map((_, at) => {
      const [x, y] = [at % SIDE, Math.floor(at / SIDE)];
      return offsets.reduce((sum, by) => sum + weight(by) * valueAt(from, x + by * right, y + by * down), 0);
    });
  return blurred(blurred(values, 1, 0), 0, 1);
}
