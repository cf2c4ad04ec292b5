/** @module Measures and renders the difference of two rasters of equal size. Pure functions. */

import { ssim } from '@blazediff/ssim';
import { differenceCiede2000, modeLab65, modeRgb, useMode } from 'culori/fn';
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
  /** Maximum number of pixels of a block of 16 by 16 that differ by more than the tolerance. */
  readonly area: number;
  /**
   * Mean ΔE 2000 (ISO/CIE 11664-6) of the area of 128 by 128 pixels whose colours are shifted most. Compares mean colours of
   * blocks, in which the noise of encoders and dithering cancel out.
   */
  readonly deltaE: number;
  /** Upper left corner of the worst block, in pixels. */
  readonly at: { readonly x: number; readonly y: number };
}

const BLOCK_PIXELS = 16;
/** Distance of overlapping blocks, in pixels. */
const STEP = 8;
/** Side of the area for the mean ΔE 2000, in blocks, and the distance of two such areas. */
const SHIFT_AREA = { blocks: 8, step: 4 };
/** Difference of a channel that rounding causes, once in a resize and once in a conversion of colours. */
export const ROUNDING = 2;
/** Side of the SSIM window, in pixels. Smaller images have no SSIM. */
const WINDOW = 11;
/** Greys, 0 to 255, on which images with transparency are compared. */
const BACKGROUNDS = [255, 0] as const;

/**
 * Measures the difference of two rasters. Composites images with transparency over white and over black and returns the
 * larger difference, so that transparency counts and the colour of transparent pixels does not.
 *
 * @param tolerance difference of a channel, 0 to 255, up to which a pixel does not count for `area`
 * @throws {Error} if the sizes differ
 */
export function measureDifference(one: Raster, other: Raster, tolerance = ROUNDING): Difference {
  if (one.width !== other.width || one.height !== other.height) {
    throw new Error(`sizes differ: ${one.width}x${one.height} and ${other.width}x${other.height}`);
  }
  const opaque = isOpaque(one) && isOpaque(other);
  const differences = BACKGROUNDS.slice(0, opaque ? 1 : 2).map((grey) =>
    opaque
      ? measure(one, other, tolerance)
      : measure(compositeOver(one, grey), compositeOver(other, grey), tolerance),
  );
  return differences.reduce((a, b) => ({
    ...(a.psnr <= b.psnr ? a : b),
    ssim: a.ssim === undefined || b.ssim === undefined ? undefined : Math.min(a.ssim, b.ssim),
    max: Math.max(a.max, b.max),
    area: Math.max(a.area, b.area),
    deltaE: Math.max(a.deltaE, b.deltaE),
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

/** Sums of the pixels of cells of {@link STEP} by {@link STEP}, row by row. */
interface Cells {
  readonly columns: number;
  readonly rows: number;
  /** Differences of all channels. */
  readonly deltas: Float64Array;
  /** Pixels that differ by more than the tolerance. */
  readonly differing: Float64Array;
  /** Red, green and blue of each cell in both images. */
  readonly colours: readonly [Float64Array, Float64Array];
}

function measure(one: Raster, other: Raster, tolerance: number): Difference {
  const { width, height } = one;
  const [columns, rows] = [Math.ceil(width / STEP), Math.ceil(height / STEP)];
  const count = columns * rows;
  const colours = [new Float64Array(count * 3), new Float64Array(count * 3)] as const;
  const cells = {
    columns,
    rows,
    deltas: new Float64Array(count),
    differing: new Float64Array(count),
    colours,
  };
  let squares = 0;
  let max = 0;
  const [before, after] = [one.data, other.data];
  for (let y = 0, at = 0; y < height; y += 1) {
    for (let column = 0; column < columns; column += 1) {
      const cell = Math.floor(y / STEP) * columns + column;
      const end = at + Math.min(STEP, width - column * STEP) * 4;
      // Sums in local variables and no loop over channels, because both take most of the time.
      let [sum, differing, r1, g1, b1, r2, g2, b2] = [0, 0, 0, 0, 0, 0, 0, 0];
      for (; at < end; at += 4) {
        const red = before[at] as number;
        const green = before[at + 1] as number;
        const blue = before[at + 2] as number;
        r1 += red;
        g1 += green;
        b1 += blue;
        const dr = Math.abs(red - (after[at] as number));
        const dg = Math.abs(green - (after[at + 1] as number));
        const db = Math.abs(blue - (after[at + 2] as number));
        r2 += after[at] as number;
        g2 += after[at + 1] as number;
        b2 += after[at + 2] as number;
        sum += dr + dg + db;
        squares += dr * dr + dg * dg + db * db;
        const largest = Math.max(dr, dg, db);
        if (largest > tolerance) differing += 1;
        if (largest > max) max = largest;
      }
      (cells.deltas[cell] as number) += sum;
      (cells.differing[cell] as number) += differing;
      addColour(colours[0], cell, r1, g1, b1);
      addColour(colours[1], cell, r2, g2, b2);
    }
  }
  const values = width * height * 3;
  return {
    psnr: squares === 0 ? Number.POSITIVE_INFINITY : 10 * Math.log10((255 ** 2 * values) / squares),
    ssim: squares === 0 ? 1 : similarity(one, other),
    max,
    deltaE: squares === 0 ? 0 : colourShift(cells, one),
    ...worstBlocks(cells, one),
  };
}

function addColour(colours: Float64Array, cell: number, red: number, green: number, blue: number): void {
  (colours[cell * 3] as number) += red;
  (colours[cell * 3 + 1] as number) += green;
  (colours[cell * 3 + 2] as number) += blue;
}

/** Finds the worst of all overlapping blocks. A spot smaller than {@link STEP} lies entirely within one of them. */
function worstBlocks(
  { columns, rows, deltas, differing }: Cells,
  { width, height }: Raster,
): Pick<Difference, 'patch' | 'at' | 'area'> {
  let [patch, area, at] = [0, 0, { x: 0, y: 0 }];
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const block = { columns, row, column, rows };
      const [x, y] = [column * STEP, row * STEP];
      const pixels = Math.min(BLOCK_PIXELS, width - x) * Math.min(BLOCK_PIXELS, height - y);
      // A narrow block at the edge is averaged over at least a quarter of a full block.
      const mean = sumOf(deltas, block) / (Math.max(pixels, STEP * STEP) * 3);
      if (mean > patch) [patch, at] = [mean, { x, y }];
      area = Math.max(area, sumOf(differing, block));
    }
  }
  return { patch, area, at };
}

/** Upper left cell of a block of two by two cells. */
type Block = Pick<Cells, 'columns' | 'rows'> & { readonly row: number; readonly column: number };

/** Sums the values of the cells of a block. `channels` values belong to each cell. */
function sumOf(values: Float64Array, block: Block, channels = 1, channel = 0): number {
  const { columns, rows, row, column } = block;
  let sum = 0;
  for (let y = row; y < Math.min(row + 2, rows); y += 1)
    for (let x = column; x < Math.min(column + 2, columns); x += 1)
      sum += values[(y * columns + x) * channels + channel] as number;
  return sum;
}

useMode(modeRgb);
useMode(modeLab65);
const deltaE2000 = differenceCiede2000();

/** Returns the largest mean ΔE 2000 of an area, weighted by pixels; see {@link Difference.deltaE}. */
function colourShift({ columns, rows, colours }: Cells, { width, height }: Raster): number {
  const [across, down] = [Math.ceil(columns / 2), Math.ceil(rows / 2)];
  const pixels = new Float64Array(across * down);
  const shifts = new Float64Array(across * down);
  for (let row = 0; row < down; row += 1) {
    for (let column = 0; column < across; column += 1) {
      const [x, y] = [column * BLOCK_PIXELS, row * BLOCK_PIXELS];
      const count = Math.min(BLOCK_PIXELS, width - x) * Math.min(BLOCK_PIXELS, height - y);
      const block = { columns, rows, row: row * 2, column: column * 2 };
      const [before, after] = colours.map((sums) => {
        const [r, g, b] = [0, 1, 2].map((channel) => sumOf(sums, block, 3, channel) / count / 255);
        return { mode: 'rgb', r: r as number, g: g as number, b: b as number } as const;
      });
      pixels[row * across + column] = count;
      shifts[row * across + column] = count * deltaE2000(before as Rgb, after as Rgb);
    }
  }
  let worst = 0;
  for (const top of starts(down)) {
    for (const left of starts(across)) {
      let [sum, count] = [0, 0];
      for (let row = top; row < Math.min(top + SHIFT_AREA.blocks, down); row += 1) {
        for (let column = left; column < Math.min(left + SHIFT_AREA.blocks, across); column += 1) {
          sum += shifts[row * across + column] as number;
          count += pixels[row * across + column] as number;
        }
      }
      worst = Math.max(worst, sum / count);
    }
  }
  return worst;
}

type Rgb = Parameters<typeof deltaE2000>[0];

/** Returns the first block of each area along a side. The last area ends at the edge. */
function starts(blocks: number): number[] {
  const last = Math.max(0, blocks - SHIFT_AREA.blocks);
  return [
    ...Array.from({ length: Math.ceil(last / SHIFT_AREA.step) }, (_, at) => at * SHIFT_AREA.step),
    last,
  ];
}

/**
 * Computes the structural similarity (SSIM) of the luminance, as MATLAB's ssim.m does.
 *
 * @returns at most 1, for equal images; undefined if a side has fewer than 11 pixels
 */
export function similarity(one: Raster, other: Raster): number | undefined {
  const { width, height } = one;
  if (width < WINDOW || height < WINDOW) return undefined;
  // The library would do this, too, with a filter of all pixels, in ten times the time.
  const factor = Math.max(1, Math.round(Math.min(width, height) / SSIM_SIDE));
  const [a, b] = factor > 1 ? [shrink(one, factor), shrink(other, factor)] : [one, other];
  return ssim(a.data, b.data, undefined, a.width, a.height);
}

/** Shorter side of the images that SSIM compares, in pixels, about. */
const SSIM_SIDE = 256;

/** Returns the mean of the pixels around each `factor`-th pixel. */
function shrink({ width, height, data }: Raster, factor: number): Raster {
  const [across, down] = [Math.floor(width / factor), Math.floor(height / factor)];
  const result = new Uint8Array(across * down * 4);
  const half = Math.floor(factor / 2);
  for (let row = 0; row < down; row += 1) {
    const top = Math.max(0, row * factor - half);
    for (let column = 0; column < across; column += 1) {
      const left = Math.max(0, column * factor - half);
      let [r, g, b] = [0, 0, 0];
      for (let y = top; y < top + factor; y += 1) {
        const end = (y * width + left + factor) * 4;
        for (let at = end - factor * 4; at < end; at += 4) {
          r += data[at] as number;
          g += data[at + 1] as number;
          b += data[at + 2] as number;
        }
      }
      result.set(
        [r, g, b].map((sum) => Math.round(sum / factor ** 2)),
        (row * across + column) * 4,
      );
    }
  }
  return { width: across, height: down, data: result };
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
