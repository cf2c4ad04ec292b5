/** @module Checks the size of images and results by their headers, before a tool starts. */
import type { Config } from '../config.ts';
import { serviceError } from '../errors.ts';
import type { ImageInfo } from './plan/image-info.ts';
import { peakRasterSize, sizesToMake } from './plan/size.ts';
import type { ConvertOptions } from './plan/types.ts';

/**
 * Maximum width and height in pixels. The policy in `assets/` has the same limit, and rsvg-convert allows little more.
 */
export const MAX_DIMENSION = 16_384;

/**
 * Checks the size of an image, and of the result with these options.
 *
 * @param label name of the file in messages
 * @throws {ServiceError} with status 413, naming the value, the limit and the setting
 */
export function checkLimits(image: ImageInfo, options: ConvertOptions, config: Config, label: string): void {
  const { MAX_PIXELS, MAX_TOTAL_PIXELS, MAX_FRAMES } = config;
  const sizes = [peakRasterSize(image, options), ...(image.pages ?? [])];
  for (const { width = 0, height = 0 } of sizes) {
    if (Math.max(width, height) > MAX_DIMENSION) {
      const code = image.type === 'svg' ? 'DRAWING_TOO_LARGE' : 'INPUT_DIMENSION_TOO_LARGE';
      throw serviceError(code, label, Math.max(width, height), MAX_DIMENSION);
    }
    if (width * height > MAX_PIXELS) throw serviceError('TOO_MANY_PIXELS', label, width, height, MAX_PIXELS);
  }
  const frames = Math.max(image.animation?.delaysMs.length ?? 0, image.pages?.length ?? 0);
  if (frames > MAX_FRAMES) throw serviceError('TOO_MANY_FRAMES', label, frames, MAX_FRAMES);
  const total = totalPixels(image);
  if (total > MAX_TOTAL_PIXELS)
    throw serviceError('TOO_MANY_TOTAL_PIXELS', label, frames, total, MAX_TOTAL_PIXELS);
  checkResultLimits(image, options, config, label);
}

/** Checks the result, which is larger than the image if it is enlarged or gets borders. */
function checkResultLimits(
  image: ImageInfo,
  options: ConvertOptions,
  { MAX_PIXELS, MAX_TOTAL_PIXELS }: Config,
  label: string,
): void {
  const sizes = sizesToMake({ image, options });
  for (const { width, height } of sizes) {
    if (Math.max(width, height) > MAX_DIMENSION || width * height > MAX_PIXELS)
      throw serviceError('RESULT_TOO_LARGE', label, width, height, MAX_PIXELS, MAX_DIMENSION);
  }
  const total = sizes.reduce((sum, { width, height }) => sum + width * height, 0);
  if (sizes.length > 1 && total > MAX_TOTAL_PIXELS)
    throw serviceError('RESULT_TOO_LARGE_IN_TOTAL', label, sizes.length, total, MAX_TOTAL_PIXELS);
}

/** Returns the pixels of all frames or pages. Each frame is expanded to the canvas before anything else. */
function totalPixels({ width = 0, height = 0, animation, pages }: ImageInfo): number {
  if (animation) return width * height * animation.delaysMs.length;
  return (pages ?? []).reduce((sum, page) => sum + (page.width ?? 0) * (page.height ?? 0), 0);
}
