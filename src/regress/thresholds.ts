/** @module Limits of differences, and their defaults for each format. Pure. */
import { z } from 'zod';
import { isLossless } from '../conversion/plan/encode.ts';
import { OUTPUTS } from '../tables/formats.ts';
import { ROUNDING } from './image/difference.ts';

const number = (min: number, max: number) => {
  const expected = `expected a number from ${min} to ${max}`;
  return z.number(expected).min(min, expected).max(max, expected);
};

/** Schema of {@link Thresholds}, with the values that each can have. */
export const thresholds = z.strictObject({
  /** Maximum difference by rounding, 0 to 255. Pixels that differ more count for `area`. */
  max: number(0, 255).optional(),
  /** Maximum number of such pixels in a block of 16 by 16. */
  area: number(0, 256).optional(),
  /** Minimum PSNR, in dB. */
  psnr: number(0, 200).optional(),
  /** Minimum SSIM, at most 1. */
  ssim: number(-1, 1).optional(),
  /** Maximum mean difference of a block of 16 by 16 pixels, 0 to 255. */
  patch: number(0, 255).optional(),
  /** Maximum factor of the conversion time. Without it, slow conversions only get a remark. */
  time: number(1, 1000).optional(),
  /** Maximum mean ΔE 2000 of an area of 128 by 128 pixels. */
  deltaE: number(0, 100),
  /** Maximum change of the file size, as a fraction of the size before. */
  bytes: number(0, 1000),
  /** Change of the file size in bytes that never counts, because small files vary more. */
  bytesFloor: number(0, 2 ** 31),
  /** For fingerprints: maximum difference of a mean colour, 0 to 255. */
  means: number(0, 255),
  /** For fingerprints: maximum change of sharpness, as a fraction. */
  sharpness: number(0, 100),
});

/** Limits above which a difference counts as a change. Optional ones judge only if they are set. */
export type Thresholds = Readonly<z.infer<typeof thresholds>>;

type PixelThresholds = Pick<Thresholds, 'max' | 'area' | 'psnr' | 'ssim' | 'patch' | 'deltaE'>;

/**
 * Three pixels of an antialiased edge differ between versions of librsvg, and are not visible. A ΔE
 * 2000 of 0.4 is one step of a grey in the whole area.
 */
const LOSSLESS: PixelThresholds = { max: ROUNDING, area: 3, deltaE: 0.5 };
/** Two encoders of the same quality reach 33 dB (small images), 0.956, 9.5 and 0.6. */
export const LOSSY: PixelThresholds = { psnr: 32, ssim: 0.95, patch: 10, deltaE: 0.8 };
/**
 * With and without dithering, a palette of 256 colours reaches 33 dB, 0.98, 23.5 and 1.3. More is
 * not the noise of dithering: in a picture of 720 × 480 pixels with 25.5, libvips makes a violet
 * area grey, whose mean differs by 18, 36 and 18 levels.
 */
const PALETTE: PixelThresholds = { psnr: 32, ssim: 0.97, patch: 25, deltaE: 1.5 };

/** Returns the thresholds of a conversion that a matrix does not override. */
export function defaultThresholds(options: Parameters<typeof isLossless>[0]): Thresholds {
  const { quality, palette } = OUTPUTS[options.format];
  const lossy = palette ? PALETTE : quality ? LOSSY : LOSSLESS;
  const pixels = isLossless(options) ? LOSSLESS : lossy;
  return { ...pixels, bytes: 0.15, bytesFloor: 4096, means: 2, sharpness: 0.05 };
}
