import { ssim } from '@blazediff/ssim';
import type { Raster } from './image.ts';

/** How alike two pictures look to people: SSIM of their lightness, as MATLAB's ssim.m has it. */

/** The window of the measure, in pixels; what is smaller has no SSIM. */
const WINDOW = 11;

/** @returns up to 1, which is the same; undefined where a side is shorter than 11 pixels */
export function similarity(one: Raster, other: Raster): number | undefined {
  const { width, height } = one;
  if (width < WINDOW || height < WINDOW) return undefined;
  return ssim(one.data, other.data, undefined, width, height);
}
