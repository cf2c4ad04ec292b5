/** @module Reference implementation of Lanczos resizing. */
import type { Pixels } from './pixels.ts';

/**
 * Resizes with a Lanczos filter over all source pixels in double precision, without shortcuts. (sharp shrinks before it
 * resizes, as the service does, so it cannot be the reference.)
 */
export function resizeWithLanczos(
  { width, height, data }: Pixels,
  to: Pick<Pixels, 'width' | 'height'>,
): Pixels {
  const columns = resizeLines(premultiply(data), width, height, to.width);
  const resized = resizeLines(columns, height, to.width, to.height);
  return { ...to, data: unpremultiply(resized) };
}

/** Resizes each line and transposes the result. A second call restores the orientation. */
function resizeLines(from: Float64Array, length: number, lines: number, wanted: number): Float64Array {
  const result = new Float64Array(wanted * lines * 4);
  for (let at = 0; at < wanted; at += 1) {
    const { first, weights } = tapsFor(at, length / wanted, length);
    for (let line = 0; line < lines; line += 1) {
      const start = (line * length + first) * 4;
      for (let channel = 0; channel < 4; channel += 1) {
        let sum = 0;
        for (let tap = 0; tap < weights.length; tap += 1)
          sum += (weights[tap] as number) * (from[start + tap * 4 + channel] as number);
        result[(at * lines + line) * 4 + channel] = sum;
      }
    }
  }
  return result;
}

const LOBES = 3;

/** Returns the source pixels that contribute to one pixel of the result, and their weights. */
function tapsFor(at: number, reduction: number, length: number): { first: number; weights: number[] } {
  const centre = (at + 0.5) * reduction - 0.5;
  const first = Math.max(0, Math.ceil(centre - LOBES * reduction));
  const last = Math.min(length - 1, Math.floor(centre + LOBES * reduction));
  const raw = Array.from({ length: last - first + 1 }, (_, tap) =>
    kernel((first + tap - centre) / reduction),
  );
  const sum = raw.reduce((one, other) => one + other);
  return { first, weights: raw.map((weight) => weight / sum) };
}

function kernel(x: number): number {
  return sinc(x) * sinc(x / LOBES);
}

function sinc(x: number): number {
  return x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x);
}

/** Premultiplies the colours by alpha. */
function premultiply(data: Buffer): Float64Array {
  return new Float64Array(data).map((value, at) =>
    at % 4 === 3 ? value : (value * alphaAt(data, at)) / 255,
  );
}

function unpremultiply(samples: Float64Array): Buffer {
  const colours = samples.map((value, at) =>
    at % 4 === 3 ? value : (value * 255) / Math.max(1, alphaAt(samples, at)),
  );
  return Buffer.from(new Uint8ClampedArray(colours));
}

function alphaAt(samples: ArrayLike<number>, at: number): number {
  return samples[at | 3] as number;
}
