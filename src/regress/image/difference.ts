/** @module Measures the difference of two rasters of equal size. Pure functions. */

import { ssim } from '@blazediff/ssim';
import { differenceCiede2000, modeLab65, modeRgb, type Rgb, useMode } from 'culori/fn';
import { compositeOver, type Raster } from './image.ts';

export interface Difference {
  /** Peak signal-to-noise ratio in dB; Infinity if equal. */
  readonly psnr: number;
  /** Structural similarity, at most 1; undefined if a side has fewer than 11 pixels. */
  readonly ssim: number | undefined;
  /** Mean difference of the worst block of 16 × 16, 0 to 255, which averages would hide. */
  readonly patch: number;
  /** Maximum difference of a channel of a pixel, 0 to 255. */
  readonly max: number;
  /** Maximum number of pixels of a block of 16 by 16 that differ by more than the tolerance. */
  readonly area: number;
  /**
   * Mean ΔE 2000 (ISO/CIE 11664-6) of the area of 128 by 128 pixels whose colours are shifted most.
   * Compares mean colours of blocks, in which the noise of encoders and dithering cancel out.
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
/** Difference of a channel by rounding: in a resize, and in a conversion of colours. */
export const ROUNDING = 2;
/** Side of the SSIM window, in pixels. Smaller images have no SSIM. */
const WINDOW = 11;
/** Greys, 0 to 255, on which images with transparency are compared. */
const BACKGROUNDS = [255, 0] as const;

/**
 * Measures the difference of two rasters. Composites images with transparency over white and over
 * black and returns the larger difference, so that transparency counts and the colour of
 * transparent pixels does not.
 *
 * @param opaque whether all pixels are known to be opaque
 * @param tolerance difference of a channel, 0 to 255, up to which a pixel does not count for `area`
 * @throws {Error} if the sizes differ
 */
export function measureDifference(
  one: Raster,
  other: Raster,
  opaque: boolean,
  tolerance = ROUNDING,
): Difference {
  if (one.width !== other.width || one.height !== other.height) {
    throw new Error(`sizes differ: ${one.width}x${one.height} and ${other.width}x${other.height}`);
  }
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

/** Sums of the pixels of cells of {@link STEP} by {@link STEP}, row by row. */
interface Cells {
  readonly columns: number;
  readonly rows: number;
  /** Values of {@link FIELDS} for each cell. */
  readonly sums: Float64Array;
}

/**
 * Positions of the values of a cell: the differences of all channels, their squares, the pixels
 * that differ by more than the tolerance, the largest difference of a channel, and red, green and
 * blue in both images.
 */
const FIELDS = { delta: 0, squares: 1, differing: 2, largest: 3, before: 4, after: 7, count: 10 } as const;

function measure(one: Raster, other: Raster, tolerance: number): Difference {
  const { width, height } = one;
  const [columns, rows] = [Math.ceil(width / STEP), Math.ceil(height / STEP)];
  const cells = { columns, rows, sums: new Float64Array(columns * rows * FIELDS.count) };
  let [squares, max] = [0, 0];
  for (let cell = 0; cell < columns * rows; cell += 1) {
    measureCell(cells, cell, one, other, tolerance);
    squares += cells.sums[cell * FIELDS.count + FIELDS.squares] as number;
    max = Math.max(max, cells.sums[cell * FIELDS.count + FIELDS.largest] as number);
  }
  return {
    psnr:
      squares === 0 ? Number.POSITIVE_INFINITY : 10 * Math.log10((255 ** 2 * width * height * 3) / squares),
    ssim: squares === 0 ? 1 : similarityOf(cells, one, other),
    max,
    deltaE: squares === 0 ? 0 : colourShift(cells, one),
    ...worstBlocks(cells, one),
  };
}

/**
 * Sums the pixels of a cell. Has no loop over channels, and no branches: they would depend on the
 * noise of encoders, and take most of the time.
 */
function measureCell(cells: Cells, cell: number, one: Raster, other: Raster, tolerance: number): void {
  const [before, after] = [one.data, other.data];
  const { width } = one;
  const left = (cell % cells.columns) * STEP;
  const top = Math.floor(cell / cells.columns) * STEP;
  const right = Math.min(left + STEP, width);
  const bottom = Math.min(top + STEP, one.height);
  let [sum, squares, differing, max] = [0, 0, 0, 0];
  let [r1, g1, b1, r2, g2, b2] = [0, 0, 0, 0, 0, 0];
  for (let y = top; y < bottom; y += 1) {
    const end = (y * width + right) * 4;
    for (let at = (y * width + left) * 4; at < end; at += 4) {
      const red1 = before[at] as number;
      const green1 = before[at + 1] as number;
      const blue1 = before[at + 2] as number;
      const red2 = after[at] as number;
      const green2 = after[at + 1] as number;
      const blue2 = after[at + 2] as number;
      r1 += red1;
      g1 += green1;
      b1 += blue1;
      r2 += red2;
      g2 += green2;
      b2 += blue2;
      const red = absolute(red1 - red2);
      const green = absolute(green1 - green2);
      const blue = absolute(blue1 - blue2);
      sum += red + green + blue;
      squares += red * red + green * green + blue * blue;
      const largest = larger(larger(red, green), blue);
      differing += (tolerance - largest) >>> 31;
      max = larger(max, largest);
    }
  }
  cells.sums.set([sum, squares, differing, max, r1, g1, b1, r2, g2, b2], cell * FIELDS.count);
}

/** Returns the absolute value of an integer of 32 bits, without a branch. */
const absolute = (value: number): number => (value ^ (value >> 31)) - (value >> 31);

/** Returns the larger one of two integers of 31 bits, without a branch. */
const larger = (one: number, other: number): number => one - ((one - other) & ((one - other) >> 31));

/** Finds the worst overlapping block. A spot below {@link STEP} is entirely in one of them. */
function worstBlocks(cells: Cells, { width, height }: Raster): Pick<Difference, 'patch' | 'at' | 'area'> {
  const { columns, rows } = cells;
  let [patch, area, worst] = [0, 0, 0];
  for (let cell = 0; cell < columns * rows; cell += 1) {
    const block = { row: Math.floor(cell / columns), column: cell % columns };
    const across = Math.min(BLOCK_PIXELS, width - block.column * STEP);
    // A narrow block at the edge is averaged over at least a quarter of a full block.
    const pixels = Math.max(across * Math.min(BLOCK_PIXELS, height - block.row * STEP), STEP * STEP);
    const mean = sumOf(cells, block, FIELDS.delta) / (pixels * 3);
    if (mean > patch) [patch, worst] = [mean, cell];
    area = Math.max(area, sumOf(cells, block, FIELDS.differing));
  }
  const at = { x: (worst % columns) * STEP, y: Math.floor(worst / columns) * STEP };
  return { patch, area, at };
}

/** Upper left cell of a block of two by two cells. */
type Block = Readonly<{ row: number; column: number }>;

function sumOf({ columns, rows, sums }: Cells, { row, column }: Block, field: number): number {
  let sum = 0;
  for (let y = row; y < Math.min(row + 2, rows); y += 1)
    for (let x = column; x < Math.min(column + 2, columns); x += 1)
      sum += sums[(y * columns + x) * FIELDS.count + field] as number;
  return sum;
}

useMode(modeRgb);
useMode(modeLab65);
const deltaE2000 = differenceCiede2000();

/** Returns the largest mean ΔE 2000 of an area, weighted; see {@link Difference.deltaE}. */
function colourShift(cells: Cells, { width, height }: Raster): number {
  const [across, down] = [Math.ceil(cells.columns / 2), Math.ceil(cells.rows / 2)];
  const pixels = new Float64Array(across * down);
  const shifts = new Float64Array(across * down);
  for (let row = 0; row < down; row += 1) {
    for (let column = 0; column < across; column += 1) {
      const [x, y] = [column * BLOCK_PIXELS, row * BLOCK_PIXELS];
      const count = Math.min(BLOCK_PIXELS, width - x) * Math.min(BLOCK_PIXELS, height - y);
      const meanOf = (field: number): Rgb => {
        const mean = (at: number) => sumOf(cells, { row: row * 2, column: column * 2 }, at) / count / 255;
        return { mode: 'rgb', r: mean(field), g: mean(field + 1), b: mean(field + 2) };
      };
      const shift = deltaE2000(meanOf(FIELDS.before), meanOf(FIELDS.after));
      pixels[row * across + column] = count;
      shifts[row * across + column] = count * shift;
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

/** Returns the first block of each area along a side. The last area ends at the edge. */
function starts(blocks: number): number[] {
  const last = Math.max(0, blocks - SHIFT_AREA.blocks);
  return [
    ...Array.from({ length: Math.ceil(last / SHIFT_AREA.step) }, (_, at) => at * SHIFT_AREA.step),
    last,
  ];
}

/** Returns the SSIM; of large images, that of the mean colours of the cells. */
function similarityOf(cells: Cells, one: Raster, other: Raster): number | undefined {
  const factor = reductionOf(one);
  if (factor < STEP) return similarity(one, other, factor);
  const [a, b] = [toRaster(cells, FIELDS.before, one), toRaster(cells, FIELDS.after, one)];
  return similarity(a, b, Math.round(factor / STEP));
}

/** Returns the mean colours of the whole cells. */
function toRaster({ columns, sums }: Cells, field: number, { width, height }: Raster): Raster {
  const [across, down] = [Math.floor(width / STEP), Math.floor(height / STEP)];
  const data = new Uint8Array(across * down * 4);
  for (let at = 0; at < across * down; at += 1) {
    const cell = Math.floor(at / across) * columns + (at % across);
    for (let channel = 0; channel < 3; channel += 1)
      data[at * 4 + channel] = (sums[cell * FIELDS.count + field + channel] as number) / STEP ** 2 + 0.5;
  }
  return { width: across, height: down, data };
}

/**
 * Computes the structural similarity (SSIM) of the luminance, as MATLAB's ssim.m does.
 *
 * @param factor how much smaller the images are that are compared
 * @returns at most 1, for equal images; undefined if a side has fewer than 11 pixels
 */
function similarity(one: Raster, other: Raster, factor: number): number | undefined {
  if (one.width < WINDOW || one.height < WINDOW) return undefined;
  const [a, b] = factor > 1 ? [shrink(one, factor), shrink(other, factor)] : [one, other];
  return ssim(a.data, b.data, undefined, a.width, a.height);
}

/** The library would reduce images, too, with a filter of all pixels, in ten times the time. */
const reductionOf = ({ width, height }: Raster): number =>
  Math.max(1, Math.round(Math.min(width, height) / SSIM_SIDE));

/** Shorter side of the images that SSIM compares, in pixels, about. */
const SSIM_SIDE = 256;

/** Returns means around each `factor`-th pixel, in half the time of arrays and `Math.round`. */
function shrink({ width, height, data }: Raster, factor: number): Raster {
  const [across, down] = [Math.floor(width / factor), Math.floor(height / factor)];
  const result = new Uint8Array(across * down * 4);
  const half = Math.floor(factor / 2);
  const pixels = factor * factor;
  for (let row = 0; row < down; row += 1) {
    const top = Math.max(0, row * factor - half);
    for (let column = 0; column < across; column += 1) {
      const left = Math.max(0, column * factor - half);
      let r = 0;
      let g = 0;
      let b = 0;
      for (let y = top; y < top + factor; y += 1) {
        const end = (y * width + left + factor) * 4;
        for (let at = end - factor * 4; at < end; at += 4) {
          r += data[at] as number;
          g += data[at + 1] as number;
          b += data[at + 2] as number;
        }
      }
      const to = (row * across + column) * 4;
      result[to] = r / pixels + 0.5;
      result[to + 1] = g / pixels + 0.5;
      result[to + 2] = b / pixels + 0.5;
    }
  }
  return { width: across, height: down, data: result };
}
