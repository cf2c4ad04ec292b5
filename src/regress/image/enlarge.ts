/** @module Enlarges images. libvips moves an image that it enlarges by half a pixel of the result. Pure. */
import type { Size } from '../../images/image-info.ts';
import { clearHidden, type Raster } from './image.ts';

/** A Lanczos filter: its pixels at each side, and the half width of its window. */
interface Filter {
  readonly support: number;
  readonly window: number;
}

/** The filters of resizes and of icons. */
export const FILTERS = { resize: { support: 2, window: 2.6 }, icon: { support: 3, window: 3 } } as const;

/** Resizes an image with a Lanczos filter. */
export function resizeExactly({ width, height, data }: Raster, size: Size, filter: Filter): Raster {
  const premultiplied = Float32Array.from(data, (value, at) =>
    at % 4 === 3 ? value : (value * (data[at | 3] as number)) / 255,
  );
  const columns = resizeRows(premultiplied, { width, height }, size.width, filter);
  const pixels = resizeRows(columns, { width: height, height: size.width }, size.height, filter);
  const result = new Uint8ClampedArray(pixels.length);
  for (let at = 0; at < pixels.length; at += 4) {
    const alpha = pixels[at + 3] as number;
    for (let channel = at; channel < at + 3; channel += 1)
      result[channel] = ((pixels[channel] as number) * 255) / Math.max(alpha, 1);
    result[at + 3] = alpha;
  }
  const shown = new Uint8Array(result.buffer);
  clearHidden(shown);
  return { ...size, data: shown };
}

const sinc = (x: number): number => (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x));
const weigh = (x: number, { support, window }: Filter): number =>
  Math.abs(x) < support ? sinc(x) * sinc(x / window) : 0;

/** Gives each row another length. Returns the columns of the result, one after another. */
function resizeRows(
  source: Float32Array,
  { width, height }: Size,
  length: number,
  filter: Filter,
): Float32Array {
  const result = new Float32Array(length * height * 4);
  const scale = width / length;
  const spread = Math.max(1, scale);
  for (let column = 0; column < length; column += 1) {
    const centre = (column + 0.5) * scale - 0.5;
    const first = Math.max(0, Math.ceil(centre - filter.support * spread));
    const last = Math.min(width - 1, Math.floor(centre + filter.support * spread));
    const weights = Array.from({ length: last - first + 1 }, (_, at) =>
      weigh((first + at - centre) / spread, filter),
    );
    const sum = weights.reduce((one, other) => one + other, 0);
    for (const [at, weight] of weights.entries()) {
      for (let row = 0; row < height; row += 1) {
        const from = (row * width + first + at) * 4;
        const to = (column * height + row) * 4;
        for (let channel = 0; channel < 4; channel += 1)
          result[to + channel] =
            (result[to + channel] as number) + ((source[from + channel] as number) * weight) / sum;
      }
    }
  }
  return result;
}
