/**
 * @module Compares two pictures of samples: how much alike they look, with the structural
 * similarity (SSIM) of their luma in small windows, and the mean colours of these. Most of a
 * screenshot is flat and always alike, so the worst windows count besides the mean.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { OPEN_FLAGS } from './containers/file.ts';
import type { Size } from './image-info.ts';

/** Two PAM files to compare. */
export interface Comparison {
  readonly one: string;
  readonly other: string;
}

/** Likeness of two pictures. Each value is at most 1, for equal pictures. */
export interface Likeness {
  /** Mean of all windows. */
  readonly mean: number;
  /** Value that {@link LOW_SHARE} of the windows are below. */
  readonly low: number;
  /** Mean of the worst area of {@link AREA} by {@link AREA} windows, such as a word in a photo. */
  readonly area: number;
  /** Whether the first picture has at most {@link MAX_FEW_COLOURS} colours. */
  readonly hasFewColours: boolean;
}

/** Samples of 8 bits, pixel by pixel. */
export interface Samples extends Size {
  /** Samples per pixel: grey or red, green and blue; each also with alpha. */
  readonly channels: 1 | 2 | 3 | 4;
  readonly data: Uint8Array;
}

/** Share of windows that can look worse than {@link Likeness.low}; a line of text has more. */
const LOW_SHARE = 0.02;
const MAX_FEW_COLOURS = 256;
/** Side of an area in windows, and the distance of two areas: 64 and 32 pixels. */
const AREA = 15;
const AREA_STEP = 8;
/** Side of a cell in pixels. A window has two by two cells, and overlaps its neighbours by one. */
const CELL = 4;
/** Constants of SSIM for samples of 8 bits: (0.01 × 255)² and (0.03 × 255)². */
const C1 = 6.5025;
const C2 = 58.5225;
/** Square of the distance of the mean colours of a window (Cb and Cr) that halves its likeness. */
const CHROMA_HALF = 475;
/** Variance of luma below which steps beside a window are visible as blocks, as in a blur. */
const SMOOTH_VARIANCE = 8;
/** Difference of the mean luma or colours of such a window that a conversion to YCbCr can cause. */
const ROUNDING = 1;
/** Square of a further difference that halves the likeness. */
const STEP_HALF = 1;
/**
 * Weight of a further difference of the mean colours: JPEG of quality 60 has visible blocks of
 * colour, that of 75 faint ones.
 */
const COLOUR_STEP = 1.5;
/** Steps of the histogram of windows. */
const STEPS = 4096;
/** Greys on which pictures with transparency are compared. */
const BACKGROUNDS = [255, 0] as const;

/**
 * Compares the pictures of two files.
 *
 * @throws {Error} if a file is no PAM of 8 bits, or if their sizes differ
 */
export function compareFiles({ one, other }: Comparison): Likeness {
  return compareSamples(readSamples(one), readSamples(other));
}

/** The longest header that ImageMagick writes has 80 bytes. */
const MAX_HEADER = 200;

/**
 * Reads a PAM that a tool has written, which can be a link, a pipe, or of any size.
 *
 * @throws {Error} if it is not a file with exactly the samples that its header states
 */
function readSamples(path: string): Samples {
  const file = openSync(path, OPEN_FLAGS);
  try {
    const info = fstatSync(file);
    const head = Buffer.alloc(MAX_HEADER);
    const header = head.toString('latin1', 0, readSync(file, head, 0, MAX_HEADER, 0));
    const [found = '', width, height, depth] =
      /^P7\nWIDTH (\d+)\nHEIGHT (\d+)\nDEPTH ([1-4])\nMAXVAL 255\nTUPLTYPE \w+\nENDHDR\n/.exec(header) ?? [];
    const length = Number(width) * Number(height) * Number(depth);
    if (!info.isFile() || found === '' || info.size !== found.length + length)
      throw new Error(`no picture of 8 bits: ${JSON.stringify(header)}, ${info.size} bytes`);
    const data = Buffer.allocUnsafeSlow(length);
    for (let at = 0; at < length; ) {
      const read = readSync(file, data, at, length - at, found.length + at);
      if (read === 0) throw new Error('the file became shorter');
      at += read;
    }
    return {
      width: Number(width),
      height: Number(height),
      channels: Number(depth) as Samples['channels'],
      data,
    };
  } finally {
    closeSync(file);
  }
}

/**
 * Compares two pictures. Those with transparency are composited over white and over black, and the
 * worse values count.
 *
 * @throws {Error} if the sizes differ
 */
export function compareSamples(one: Samples, other: Samples): Likeness {
  if (one.width !== other.width || one.height !== other.height)
    throw new Error(`sizes differ: ${one.width}x${one.height} and ${other.width}x${other.height}`);
  const hasAlpha = [one, other].some(({ channels }) => channels % 2 === 0);
  const likenesses = BACKGROUNDS.slice(0, hasAlpha ? 2 : 1).map((grey) =>
    summarize(measureCells(one, other, grey), one.width, one.height),
  );
  return {
    mean: Math.min(...likenesses.map(({ mean }) => mean)),
    low: Math.min(...likenesses.map(({ low }) => low)),
    area: Math.min(...likenesses.map(({ area }) => area)),
    hasFewColours: hasFewColours(one),
  };
}

/** Sums of the cells of two pictures, row by row. */
interface Cells {
  readonly columns: number;
  readonly rows: number;
  /** Values of {@link FIELDS} for each cell. */
  readonly sums: Int32Array;
}

/** Number of values of a cell: luma of both, squares, product, differences of blue and red. */
const FIELDS = 7;

/** Weights of red, green and blue in luma (BT.601), in 256ths. */
const [RED, GREEN, BLUE] = [77, 150, 29] as const;
/** Luma counts in 16ths: squares of a cell have fewer than 31 bits, which V8 adds fastest. */
const LUMA_SHIFT = 4;
const LUMA_UNIT = 2 ** LUMA_SHIFT;

function measureCells(one: Samples, other: Samples, grey: number): Cells {
  const { width, height } = one;
  const [columns, rows] = [Math.ceil(width / CELL), Math.ceil(height / CELL)];
  const sums = new Int32Array(columns * rows * FIELDS);
  const [a, b] = [toRows(one, grey), toRows(other, grey)];
  for (let y = 0; y < height; y += 1)
    addRow(sums, Math.floor(y / CELL) * columns * FIELDS, a(y), b(y), width);
  return { columns, rows, sums };
}

/** Adds a row of pixels of both pictures to its cells. */
function addRow(sums: Int32Array, first: number, rowA: Uint8Array, rowB: Uint8Array, width: number): void {
  let to = first;
  for (let left = 0; left < width; left += CELL) {
    const end = Math.min(left + CELL, width) * 3;
    let luma1 = 0;
    let luma2 = 0;
    let square1 = 0;
    let square2 = 0;
    let product = 0;
    let blue = 0;
    let red = 0;
    for (let at = left * 3; at < end; at += 3) {
      const r1 = rowA[at] as number;
      const b1 = rowA[at + 2] as number;
      const r2 = rowB[at] as number;
      const b2 = rowB[at + 2] as number;
      const y1 = (RED * r1 + GREEN * (rowA[at + 1] as number) + BLUE * b1) >> LUMA_SHIFT;
      const y2 = (RED * r2 + GREEN * (rowB[at + 1] as number) + BLUE * b2) >> LUMA_SHIFT;
      luma1 += y1;
      luma2 += y2;
      square1 += y1 * y1;
      square2 += y2 * y2;
      product += y1 * y2;
      blue += b1 - b2;
      red += r1 - r2;
    }
    sums[to] = (sums[to] as number) + luma1;
    sums[to + 1] = (sums[to + 1] as number) + luma2;
    sums[to + 2] = (sums[to + 2] as number) + square1;
    sums[to + 3] = (sums[to + 3] as number) + square2;
    sums[to + 4] = (sums[to + 4] as number) + product;
    sums[to + 5] = (sums[to + 5] as number) + blue;
    sums[to + 6] = (sums[to + 6] as number) + red;
    to += FIELDS;
  }
}

/** Creates a function that returns a row in RGB over a grey, each time in the same memory. */
function toRows({ width, channels, data }: Samples, grey: number): (y: number) => Uint8Array {
  if (channels === 3) return (y) => data.subarray(y * width * 3, (y + 1) * width * 3);
  const row = new Uint8Array(width * 3);
  const hasAlpha = channels % 2 === 0;
  const [green, blue] = channels > 2 ? [1, 2] : [0, 0];
  return (y) => {
    let at = y * width * channels;
    for (let to = 0; to < row.length; to += 3) {
      const alpha = hasAlpha ? (data[at + channels - 1] as number) : 255;
      const rest = grey * (255 - alpha);
      row[to] = divide((data[at] as number) * alpha + rest);
      row[to + 1] = divide((data[at + green] as number) * alpha + rest);
      row[to + 2] = divide((data[at + blue] as number) * alpha + rest);
      at += channels;
    }
    return row;
  };
}

/** Divides by 255 and rounds, as quickly as integers permit. */
const divide = (value: number): number => ((value + 128) * 257) >> 16;

/** Returns the mean likeness of the windows, and that of the worst. */
function summarize(cells: Cells, width: number, height: number): Omit<Likeness, 'hasFewColours'> {
  const across = Math.max(1, cells.columns - 1);
  const down = Math.max(1, cells.rows - 1);
  const all = new Float32Array(across * down);
  for (let row = 0; row < down; row += 1) {
    const high = sideOf(row, height);
    for (let column = 0; column < across; column += 1)
      all[row * across + column] = compareWindow(cells, row, column, high * sideOf(column, width));
  }
  const counts = new Uint32Array(STEPS + 1);
  let total = 0;
  for (const likeness of all) {
    total += likeness;
    const bin = Math.floor(Math.min(1, Math.max(0, likeness)) * STEPS);
    counts[bin] = (counts[bin] as number) + 1;
  }
  let step = 0;
  for (let below = 0; step < STEPS; step += 1) {
    below += counts[step] as number;
    if (below > LOW_SHARE * all.length) break;
  }
  return { mean: total / all.length, low: step / STEPS, area: worstArea(all, across, down) };
}

/** Returns the length of a side of a window in pixels. The only cell of a side counts twice. */
const sideOf = (cell: number, length: number): number =>
  length <= CELL ? 2 * length : Math.min(2 * CELL, length - cell * CELL);

/** Returns the likeness of a window, the first cell of which is given. */
function compareWindow({ columns, rows, sums }: Cells, row: number, column: number, pixels: number): number {
  const at = (row * columns + column) * FIELDS;
  const right = columns > 1 ? FIELDS : 0;
  const below = rows > 1 ? columns * FIELDS : 0;
  const mean = (field: number): number =>
    ((sums[at + field] as number) +
      (sums[at + right + field] as number) +
      (sums[at + below + field] as number) +
      (sums[at + right + below + field] as number)) /
    pixels;
  const m1 = mean(0) / LUMA_UNIT;
  const m2 = mean(1) / LUMA_UNIT;
  const variance1 = mean(2) / LUMA_UNIT ** 2 - m1 * m1;
  const variance2 = mean(3) / LUMA_UNIT ** 2 - m2 * m2;
  const covariance = mean(4) / LUMA_UNIT ** 2 - m1 * m2;
  const similarity =
    ((2 * m1 * m2 + C1) * (2 * covariance + C2)) / ((m1 * m1 + m2 * m2 + C1) * (variance1 + variance2 + C2));
  const cb = (mean(5) - m1 + m2) * 0.564;
  const cr = (mean(6) - m1 + m2) * 0.713;
  const colour = COLOUR_STEP * (Math.max(Math.abs(cb), Math.abs(cr)) - ROUNDING);
  const step = variance1 < SMOOTH_VARIANCE ? Math.max(0, Math.abs(m1 - m2) - ROUNDING, colour) : 0;
  return (
    similarity * (CHROMA_HALF / (CHROMA_HALF + cb * cb + cr * cr)) * (STEP_HALF / (STEP_HALF + step * step))
  );
}

/** Returns the least mean of an area of windows. */
function worstArea(windows: Float32Array, across: number, down: number): number {
  const [width, height] = [Math.min(AREA, across), Math.min(AREA, down)];
  let worst = 1;
  for (let top = 0; top <= down - height; top += AREA_STEP) {
    for (let left = 0; left <= across - width; left += AREA_STEP) {
      let sum = 0;
      for (let row = top; row < top + height; row += 1)
        for (let at = row * across + left; at < row * across + left + width; at += 1)
          sum += windows[at] as number;
      worst = Math.min(worst, sum / width / height);
    }
  }
  return worst;
}

function hasFewColours({ channels, data }: Samples): boolean {
  if (channels === 1) return true;
  const found = new Set<number>();
  let last = -1;
  for (let at = 0; at < data.length; at += channels) {
    let colour = 0;
    for (let channel = 0; channel < channels; channel += 1)
      colour = colour * 256 + (data[at + channel] as number);
    if (colour === last) continue;
    last = colour;
    found.add(colour);
    if (found.size > MAX_FEW_COLOURS) return false;
  }
  return true;
}
