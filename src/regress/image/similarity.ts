/** @module Structural similarity (SSIM) of two images. */
import { ssim } from '@blazediff/ssim';
import type { Raster } from './image.ts';

/** Side of the SSIM window, in pixels. Smaller images have no SSIM. */
const WINDOW = 11;

/**
 * Computes the structural similarity (SSIM) of the luminance, as MATLAB's ssim.m does.
 *
 * @returns at most 1, for equal images; undefined if a side has fewer than 11 pixels
 */
export function similarity(one: Raster, other: Raster): number | undefined {
  const { width, height } = one;
  if (width < WINDOW || height < WINDOW) return undefined;
  return ssim(one.data, other.data, undefined, width, height);
}
