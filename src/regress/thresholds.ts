import { z } from 'zod';
import type { OutputType } from '../formats.ts';

/** How much may differ before it counts as a change; the README has a table of them, with where each is from. */

export interface Thresholds {
  /** Least PSNR, in dB. */
  readonly psnr: number;
  /** Least SSIM, up to 1. */
  readonly ssim: number;
  /** Largest mean difference of 16 by 16 pixels, 0 to 255. */
  readonly patch: number;
  /** Largest change of the size in bytes, as a share of what it was. */
  readonly bytes: number;
  /** Bytes that are never too many: small files change by large shares. */
  readonly bytesFloor: number;
  /** Most times as long as before; without it, time is only warned of. */
  readonly time?: number | undefined;
  /** Of a baseline without pictures: the largest difference of a mean colour, 0 to 255. */
  readonly means: number;
  /** Of a baseline without pictures: the largest change of sharpness, as a share. */
  readonly sharpness: number;
}

/** Of two codings with loss, each at some 40 dB to the picture, one is at 37 to the other. */
const LOSSY = { psnr: 36, ssim: 0.97, patch: 8 };
/** Where no value is off by more than its last bit, it is 48 dB. */
const LOSSLESS = { psnr: 48, ssim: 0.995, patch: 4 };
/** Tables of 256 colours are chosen in many ways. */
const PALETTE = { psnr: 38, ssim: 0.98, patch: 10 };

const PICTURE: Readonly<Record<OutputType, typeof LOSSY>> = {
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

/** What counts where nothing else is said. */
export function defaultThresholds(format: OutputType): Thresholds {
  return { ...PICTURE[format], bytes: 0.15, bytesFloor: 4096, means: 2, sharpness: 0.05 };
}

const number = (least: number, most: number) => {
  const expected = `expected a number from ${least} to ${most}`;
  return z.number(expected).min(least, expected).max(most, expected);
};

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
