import type { Raster } from './image.ts';
import { similarity } from './similarity.ts';

/** How far two pictures of one size are apart. Pure. */

export interface Difference {
  /** Peak signal-to-noise ratio in dB; Infinity when equal. */
  readonly psnr: number;
  /** Structural similarity, up to 1; undefined for pictures of less than 11 pixels a side. */
  readonly ssim: number | undefined;
  /** Mean difference, 0 to 255, of the 16 by 16 pixels that differ most: what is wrong in one place only. */
  readonly patch: number;
  /** The largest difference of one channel of one pixel, 0 to 255. */
  readonly max: number;
  /** Where the patch is: its left upper corner. */
  readonly at: { readonly x: number; readonly y: number };
}

const BLOCK_PIXELS = 16;
const STEP = 8;
/** What lies behind transparency is not known: so it is looked at on both. */
const BACKGROUNDS = [255, 0] as const;

/**
 * The larger difference of those on white and on black, so that transparency counts, and hidden colour does not.
 *
 * @throws Error when the sizes differ
 */
export function measureDifference(one: Raster, other: Raster): Difference {
  if (one.width !== other.width || one.height !== other.height) {
    throw new Error(`sizes differ: ${one.width}x${one.height} and ${other.width}x${other.height}`);
  }
  const opaque = isOpaque(one) && isOpaque(other);
  const seen = BACKGROUNDS.slice(0, opaque ? 1 : 2).map((grey) =>
    opaque ? measure(one, other) : measure(compositeOver(one, grey), compositeOver(other, grey)),
  );
  return seen.reduce((a, b) => ({
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

/** The picture as it looks on a background of one grey. */
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

/** Of all patches that begin at a step, so that what is smaller than a step is whole in one of them. */
function worstBlock(
  sums: Float64Array,
  columns: number,
  { width, height }: Raster,
): Pick<Difference, 'patch' | 'at'> {
  let patch = 0;
  let at = { x: 0, y: 0 };
  for (let block = 0; block < sums.length; block += 1) {
    const [column, row] = [block % columns, Math.floor(block / columns)];
    const beside = column + 1 < columns;
    const sum = [block, block + columns].reduce(
      (total, left) => total + (sums[left] ?? 0) + (beside ? (sums[left + 1] ?? 0) : 0),
      0,
    );
    const [x, y] = [column * STEP, row * STEP];
    const area = Math.min(BLOCK_PIXELS, width - x) * Math.min(BLOCK_PIXELS, height - y);
    // What is left of a patch at the edge counts for no more than a quarter of one would.
    const mean = sum / (Math.max(area, STEP * STEP) * 3);
    if (mean > patch) [patch, at] = [mean, { x, y }];
  }
  return { patch, at };
}

/** The difference made visible: black where nothing differs, times `factor` elsewhere. */
export function renderDifference(one: Raster, other: Raster, factor: number): Raster {
  const data = new Uint8Array(one.data.length).fill(255);
  const [a, b] = [compositeOver(one, 127), compositeOver(other, 127)];
  for (let at = 0; at < data.length; at += 4) {
    const shift = Math.abs((one.data[at + 3] as number) - (other.data[at + 3] as number));
    for (let channel = at; channel < at + 3; channel += 1) {
      const delta = Math.abs((a.data[channel] as number) - (b.data[channel] as number));
      data[channel] = Math.min(255, Math.max(delta, shift) * factor);
    }
  }
  return { width: one.width, height: one.height, data };
}
