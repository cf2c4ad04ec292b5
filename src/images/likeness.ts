/**
 * @module Compares two pictures of samples: how much alike they look, with the structural similarity (SSIM) of their luma in small
 * windows, and the mean colours of these. Most of a screenshot is flat and always alike, so the worst windows count besides the mean.
 */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';

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
export interface Samples {
  readonly width: number;
  readonly height: number;
  /** Samples per pixel: grey or red, green and blue; each also with alpha. */
  readonly channels: 1 | 2 | 3 | 4;
  readonly data: Uint8Array;
}

/** Share of the windows that can look worse than {@link Likeness.low}: a line of text in a screenshot has more. */
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
/** Variance of the luma of a window below which steps beside it are visible as blocks, such as in a blurred background. */
const SMOOTH_VARIANCE = 8;
/** Difference of the mean luma of such a window that a conversion to YCbCr can cause. */
const ROUNDING = 1;
/** Square of a further difference that halves the likeness. */
const STEP_HALF = 1;
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
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
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
 * Compares two pictures. Those with transparency are composited over white and over black, and the worse values count.
 *
 * @throws {Error} if the sizes differ
 */
export function compareSamples(one: Samples, other: Samples): Likeness {
  if (one.width !== other.width || one.height !== other.height)
    throw new Error(`sizes differ: ${one.width}x${one.height} and ${other.width}x${other.height}`);
  const hasAlpha = [one, other].some(({ channels }) => channels % 2 === 0);
  const likenesses = BACKGROUNDS.slice(0, hasAlpha ? 2 : 1).map((grey) =>
    summarize(measureCells(one, other, grey)),
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
  readonly sums: Float64Array;
}

/** Number of values of a cell: the pixels, the luma of both, its squares and its product, and the differences of Cb and Cr. */
const FIELDS = 8;

/** Weights of red, green and blue in luma (BT.601), in 256ths. */
const [RED, GREEN, BLUE] = [77, 150, 29] as const;

function measureCells(one: Samples, other: Samples, grey: number): Cells {
  const { width, height } = one;
  const [columns, rows] = [Math.ceil(width / CELL), Math.ceil(height / CELL)];
  const sums = new Float64Array(columns * rows * FIELDS);
  const [a, b] = [toRows(one, grey), toRows(other, grey)];
  for (let y = 0; y < height; y += 1) {
    const [rowA, rowB] = [a(y), b(y)];
    let to = Math.floor(y / CELL) * columns * FIELDS;
    for (let left = 0; left < width; left += CELL) {
      const end = Math.min(left + CELL, width);
      let [s1, s2, s11, s22, s12, cb, cr] = [0, 0, 0, 0, 0, 0, 0];
      for (let x = left; x < end; x += 1) {
        const at = x * 3;
        const r1 = rowA[at] as number;
        const b1 = rowA[at + 2] as number;
        const r2 = rowB[at] as number;
        const b2 = rowB[at + 2] as number;
        const y1 = (RED * r1 + GREEN * (rowA[at + 1] as number) + BLUE * b1) / 256;
        const y2 = (RED * r2 + GREEN * (rowB[at + 1] as number) + BLUE * b2) / 256;
        s1 += y1;
        s2 += y2;
        s11 += y1 * y1;
        s22 += y2 * y2;
        s12 += y1 * y2;
        cb += b1 - y1 - b2 + y2;
        cr += r1 - y1 - r2 + y2;
      }
      sums[to] = (sums[to] as number) + end - left;
      sums[to + 1] = (sums[to + 1] as number) + s1;
      sums[to + 2] = (sums[to + 2] as number) + s2;
      sums[to + 3] = (sums[to + 3] as number) + s11;
      sums[to + 4] = (sums[to + 4] as number) + s22;
      sums[to + 5] = (sums[to + 5] as number) + s12;
      sums[to + 6] = (sums[to + 6] as number) + cb;
      sums[to + 7] = (sums[to + 7] as number) + cr;
      to += FIELDS;
    }
  }
  return { columns, rows, sums };
}

/** Creates a function that returns a row in red, green and blue, over a grey. The same memory is used for each. */
function toRows({ width, channels, data }: Samples, grey: number): (y: number) => Uint8Array {
  if (channels === 3) return (y) => data.subarray(y * width * 3, (y + 1) * width * 3);
  const row = new Uint8Array(width * 3);
  const hasAlpha = channels % 2 === 0;
  const [green, blue] = channels > 2 ? [1, 2] : [0, 0];
  return (y) => {
    for (let x = 0; x < width; x += 1) {
      const at = (y * width + x) * channels;
      const alpha = hasAlpha ? (data[at + channels - 1] as number) / 255 : 1;
      const rest = grey * (1 - alpha) + 0.5;
      row[x * 3] = (data[at] as number) * alpha + rest;
      row[x * 3 + 1] = (data[at + green] as number) * alpha + rest;
      row[x * 3 + 2] = (data[at + blue] as number) * alpha + rest;
    }
    return row;
  };
}

/** Returns the mean likeness of the windows, and that of the worst. */
function summarize({ columns, rows, sums }: Cells): Omit<Likeness, 'hasFewColours'> {
  const counts = new Uint32Array(STEPS + 1);
  let [total, windows] = [0, 0];
  const [across, down] = [Math.max(1, columns - 1), Math.max(1, rows - 1)];
  const all = new Float32Array(across * down);
  const right = columns > 1 ? FIELDS : 0;
  const below = rows > 1 ? columns * FIELDS : 0;
  for (let row = 0; row < down; row += 1) {
    for (let column = 0; column < across; column += 1) {
      const at = (row * columns + column) * FIELDS;
      const sum = (field: number): number =>
        (sums[at + field] as number) +
        (sums[at + right + field] as number) +
        (sums[at + below + field] as number) +
        (sums[at + right + below + field] as number);
      const count = sum(0);
      const [m1, m2] = [sum(1) / count, sum(2) / count];
      const variance = sum(3) / count - m1 * m1 + sum(4) / count - m2 * m2;
      const covariance = sum(5) / count - m1 * m2;
      const similarity =
        ((2 * m1 * m2 + C1) * (2 * covariance + C2)) / ((m1 * m1 + m2 * m2 + C1) * (variance + C2));
      const [cb, cr] = [(sum(6) / count) * 0.564, (sum(7) / count) * 0.713];
      const isSmooth = sum(3) / count - m1 * m1 < SMOOTH_VARIANCE;
      const step = isSmooth ? Math.max(0, Math.abs(m1 - m2) - ROUNDING) : 0;
      const likeness =
        similarity *
        (CHROMA_HALF / (CHROMA_HALF + cb * cb + cr * cr)) *
        (STEP_HALF / (STEP_HALF + step * step));
      all[windows] = likeness;
      total += likeness;
      windows += 1;
      const bin = Math.floor(Math.min(1, Math.max(0, likeness)) * STEPS);
      counts[bin] = (counts[bin] as number) + 1;
    }
  }
  let step = 0;
  for (let below = 0; step < STEPS; step += 1) {
    below += counts[step] as number;
    if (below > LOW_SHARE * windows) break;
  }
  return { mean: total / windows, low: step / STEPS, area: worstArea(all, across, down) };
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
