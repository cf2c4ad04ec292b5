/** @module Measures and renders the difference of two rasters of equal size. Pure functions. */

import { ssim } from '@blazediff/ssim';
import type { Raster } from './image.ts';

/** Difference of two rasters of equal size. */
export interface Difference {
  /** Peak signal-to-noise ratio in dB; Infinity if equal. */
  readonly psnr: number;
  /** Structural similarity, at most 1; undefined if a side has fewer than 11 pixels. */
  readonly ssim: number | undefined;
  /** Mean difference of the worst block of 16 by 16 pixels, 0 to 255. Shows local errors that averages hide. */
  readonly patch: number;
  /** Maximum difference of a channel of a pixel, 0 to 255. */
  readonly max: number;
  /** Upper left corner of the worst block, in pixels. */
  readonly at: { readonly x: number; readonly y: number };
}

const BLOCK_PIXELS = 16;
/** Distance of overlapping blocks, in pixels. */
const STEP = 8;
/** Side of the SSIM window, in pixels. Smaller images have no SSIM. */
const WINDOW = 11;
/** Greys, 0 to 255, on which images with transparency are compared. */
const BACKGROUNDS = [255, 0] as const;

/**
 * Measures the difference of two rasters. Composites images with transparency over white and over black and returns the
 * larger difference, so that transparency counts and the colour of transparent pixels does not.
 *
 * @throws {Error} if the sizes differ
 */
export function measureDifference(one: Raster, other: Raster): Difference {
  if (one.width !== other.width || one.height !== other.height) {
    throw new Error(`sizes differ: ${one.width}x${one.height} and ${other.width}x${other.height}`);
  }
  const opaque = isOpaque(one) && isOpaque(other);
  const differences = BACKGROUNDS.slice(0, opaque ? 1 : 2).map((grey) =>
    opaque ? measure(one, other) : measure(compositeOver(one, grey), compositeOver(other, grey)),
  );
  return differences.reduce((a, b) => ({
    ...(a.psnr <= b.psnr ? a : b),
    ssim: a.ssim === undefined || b.ssim === undefined ? undefined : Math.min(a.ssim, b.ssim),
    max: Math.max(a.max, b.max),
    ...(a.patch >= b.patch ? { patch: a.patch, at: a.at } : { patch: b.patch, at: b.at }),
  }));
}

function isOpaque({ data }: Raster): boolean {
  for (let at = 3; at < data.length; at += 4) if (data[at] !== 255) return false;
  return true;
}

/** Composites a raster over a grey background. */
export function compositeOver({ width, height, data }: Raster, grey: number): Raster {
  const result = new Uint8Array(data.length);
  for (let at = 0; at < data.length; at += 4) {
    const alpha = data[at + 3] as number;
    for (let channel = at; channel < at + 3; channel += 1) {
      result[channel] = Math.round(((data[channel] as number) * alpha + grey * (255 - alpha)) / 255);
    }
    result[at + 3] = 255;
  }
  return { width, height, data: result };
}

function measure(one: Raster, other: Raster): Difference {
  const { width, height } = one;
  const columns = Math.ceil(width / STEP);
  const sums = new Float64Array(columns * Math.ceil(height / STEP));
  let squares = 0;
  let max = 0;
  for (let y = 0, at = 0; y < height; y += 1) {
    const row = Math.floor(y / STEP) * columns;
    for (let x = 0; x < width; x += 1, at += 4) {
      let sum = 0;
      for (let channel = at; channel < at + 3; channel += 1) {
        const delta = Math.abs((one.data[channel] as number) - (other.data[channel] as number));
        if (delta === 0) continue;
        sum += delta;
        squares += delta * delta;
        if (delta > max) max = delta;
      }
      const block = row + Math.floor(x / STEP);
      if (sum > 0) sums[block] = (sums[block] as number) + sum;
    }
  }
  const values = width * height * 3;
  return {
    psnr: squares === 0 ? Number.POSITIVE_INFINITY : 10 * Math.log10((255 ** 2 * values) / squares),
    ssim: squares === 0 ? 1 : similarity(one, other),
    max,
    ...worstBlock(sums, columns, one),
  };
}

/** Finds the worst of all overlapping blocks. A spot smaller than {@link STEP} lies entirely within one of them. */
function worstBlock(
  sums: Float64Array,
  columns: number,
  { width, height }: Raster,
): Pick<Difference, 'patch' | 'at'> {
  let patch = 0;
  let at = { x: 0, y: 0 };
  for (let block = 0; block < sums.length; block += 1) {
    const [column, row] = [block % columns, Math.floor(block / columns)];
    const hasRight = column + 1 < columns;
    const sum = [block, block + columns].reduce(
      (total, left) => total + (sums[left] ?? 0) + (hasRight ? (sums[left + 1] ?? 0) : 0),
      0,
    );
    const [x, y] = [column * STEP, row * STEP];
    const area = Math.min(BLOCK_PIXELS, width - x) * Math.min(BLOCK_PIXELS, height - y);
    // A narrow block at the edge is averaged over at least a quarter of a full block.
    const mean = sum / (Math.max(area, STEP * STEP) * 3);
    if (mean > patch) [patch, at] = [mean, { x, y }];
  }
  return { patch, at };
}

/**
 * Computes the structural similarity (SSIM) of the luminance, as MATLAB's ssim.m does.
 *
 * @returns at most 1, for equal images; undefined if a side has fewer than 11 pixels
 */
export function similarity(one: Raster, other: Raster): number | undefined {
  const { width, height } = one;
  if (width < WINDOW || height < WINDOW) return undefined;
  return ssim(one.data, other.data, undefined, width, height);
}

/** Renders the difference: black if equal, otherwise multiplied by `factor`. */
export function renderDifference(one: Raster, other: Raster, factor: number): Raster {
  const data = new Uint8Array(one.data.length).fill(255);
  const [a, b] = [compositeOver(one, 127), compositeOver(other, 127)];
  for (let at = 0; at < data.length; at += 4) {
    const alphaDelta = Math.abs((one.data[at + 3] as number) - (other.data[at + 3] as number));
    for (let channel = at; channel < at + 3; channel += 1) {
      const delta = Math.abs((a.data[channel] as number) - (b.data[channel] as number));
      data[channel] = Math.min(255, Math.max(delta, alphaDelta) * factor);
    }
  }
  return { width: one.width, height: one.height, data };
}
