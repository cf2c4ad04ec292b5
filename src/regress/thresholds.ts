/** @module Thresholds above which a difference counts as a change. */
import { z } from 'zod';
import type { OutputType } from '../formats.ts';

/** Limits above which a difference counts as a change. */
export interface Thresholds {
  /** Minimum PSNR, in dB. */
  readonly psnr: number;
  /** Minimum SSIM, at most 1. */
  readonly ssim: number;
  /** Maximum mean difference of a block of 16 by 16 pixels, 0 to 255. */
  readonly patch: number;
  /** Maximum change of the file size, as a fraction of the size before. */
  readonly bytes: number;
  /** Change of the file size in bytes that never counts, since small files change by large fractions. */
  readonly bytesFloor: number;
  /** Maximum factor of the conversion time. If undefined, slow conversions only get a remark. */
  readonly time?: number | undefined;
  /** For fingerprints: maximum difference of a mean colour, 0 to 255. */
  readonly means: number;
  /** For fingerprints: maximum change of sharpness, as a fraction. */
  readonly sharpness: number;
}

/** Two lossy encodings with a PSNR of 40 dB each to the original have 37 dB to each other. */
const LOSSY = { psnr: 36, ssim: 0.97, patch: 8 };
/** PSNR is 48 dB if every value differs in its last bit. */
const LOSSLESS = { psnr: 48, ssim: 0.995, patch: 4 };
/** Encoders choose palettes of 256 colours in different ways. */
const PALETTE = { psnr: 38, ssim: 0.98, patch: 10 };

const BY_FORMAT: Readonly<Record<OutputType, typeof LOSSY>> = {
  webp: LOSSY,
  png: LOSSLESS,
  jpg: LOSSY,
  gif: PALETTE,
  bmp: LOSSLESS,
  pdf: LOSSY,
  avif: LOSSY,
  jxl: LOSSY,
  tiff: LOSSLESS,
  ico: LOSSLESS,
};

/** Returns the thresholds of an output format that a matrix does not override. */
export function defaultThresholds(format: OutputType): Thresholds {
  return { ...BY_FORMAT[format], bytes: 0.15, bytesFloor: 4096, means: 2, sharpness: 0.05 };
}

const number = (min: number, max: number) => {
  const expected = `expected a number from ${min} to ${max}`;
  return z.number(expected).min(min, expected).max(max, expected);
};

/** Schema of the thresholds in a matrix. */
export const thresholdFields = {
  psnr: number(0, 200),
  ssim: number(-1, 1),
  patch: number(0, 255),
  bytes: number(0, 1000),
  bytesFloor: number(0, 2 ** 31),
  time: number(1, 1000),
  means: number(0, 255),
  sharpness: number(0, 100),
} as const;
