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
function resizeLines(samples: Float64Array, length: number, lines: number, wanted: number): Float64Array {
  const result = new Float64Array(wanted * lines * 4);
  for (let at = 0; at < wanted; at += 1) {
    const { first, weights } = tapsFor(at, length / wanted, length);
    for (let line = 0; line < lines; line += 1) {
      let red = 0;
      let green = 0;
      let blue = 0;
      let alpha = 0;
      let from = (line * length + first) * 4;
      for (let tap = 0; tap < weights.length; tap += 1) {
        const weight = weights[tap] as number;
        red += weight * (samples[from] as number);
        green += weight * (samples[from + 1] as number);
        blue += weight * (samples[from + 2] as number);
        alpha += weight * (samples[from + 3] as number);
        from += 4;
      }
      const to = (at * lines + line) * 4;
      result[to] = red;
      result[to + 1] = green;
      result[to + 2] = blue;
      result[to + 3] = alpha;
    }
  }
  return result;
}

const LOBES = 3;

/** Returns the source pixels that contribute to one pixel of the result, and their weights. */
function tapsFor(at: number, reduction: number, length: number): { first: number; weights: Float64Array } {
  const centre = (at + 0.5) * reduction - 0.5;
  const first = Math.max(0, Math.ceil(centre - LOBES * reduction));
  const last = Math.min(length - 1, Math.floor(centre + LOBES * reduction));
  const raw = Float64Array.from({ length: last - first + 1 }, (_, tap) =>
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
  const samples = new Float64Array(data.length);
  for (let at = 0; at < samples.length; at += 4) {
    const alpha = data[at + 3] as number;
    for (let channel = at; channel < at + 3; channel += 1)
      samples[channel] = ((data[channel] as number) * alpha) / 255;
    samples[at + 3] = alpha;
  }
  return samples;
}

function unpremultiply(samples: Float64Array): Buffer {
  const colours = samples.map((value, at) =>
    at % 4 === 3 ? value : (value * 255) / Math.max(1, samples[at | 3] as number),
  );
  return Buffer.from(new Uint8ClampedArray(colours));
}
