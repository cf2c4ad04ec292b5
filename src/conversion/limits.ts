import { serviceError } from '../errors.ts';
import { peakRasterSize, sizesToMake } from './plan/size.ts';
import type { ConvertOptions, ImageInfo } from './plan/types.ts';

/** What is too large is refused by its header, before any tool is started. */

export interface ImageLimits {
  /** Width × height of one frame or page, and of what is drawn. */
  readonly maxPixels: number;
  /** All frames or pages of one file together. */
  readonly maxTotalPixels: number;
  /** Frames of an animation, or pages. */
  readonly maxFrames: number;
}

/** The policy in assets/ allows no more, whatever the settings are; nor does rsvg-convert much more. */
export const MAX_DIMENSION = 16_384;

/**
 * @param label how the message names the file
 * @throws ServiceError with status 413 naming the value, the limit and the setting that moves it
 */
export function checkLimits(
  image: ImageInfo,
  options: ConvertOptions,
  { maxPixels, maxTotalPixels, maxFrames }: ImageLimits,
  label: string,
): void {
  const sizes = [peakRasterSize(image, options), ...(image.pages ?? [])];
  for (const { width = 0, height = 0 } of sizes) {
    if (Math.max(width, height) > MAX_DIMENSION) {
      const code = image.type === 'svg' ? 'DRAWING_TOO_LARGE' : 'INPUT_DIMENSION_TOO_LARGE';
      throw serviceError(code, label, Math.max(width, height), MAX_DIMENSION);
    }
    if (width * height > maxPixels) throw serviceError('TOO_MANY_PIXELS', label, width, height, maxPixels);
  }
  const frames = Math.max(image.animation?.delaysMs.length ?? 0, image.pages?.length ?? 0);
  if (frames > maxFrames) throw serviceError('TOO_MANY_FRAMES', label, frames, maxFrames);
  const total = totalPixels(image);
  if (total > maxTotalPixels)
    throw serviceError('TOO_MANY_TOTAL_PIXELS', label, frames, total, maxTotalPixels);
  checkResultLimits(image, options, { maxPixels, maxTotalPixels }, label);
}

/** What is enlarged, or gets borders, may be larger than what is stored. */
function checkResultLimits(
  image: ImageInfo,
  options: ConvertOptions,
  { maxPixels, maxTotalPixels }: Pick<ImageLimits, 'maxPixels' | 'maxTotalPixels'>,
  label: string,
): void {
  const sizes = sizesToMake({ image, options });
  for (const { width, height } of sizes) {
    if (Math.max(width, height) > MAX_DIMENSION || width * height > maxPixels)
      throw serviceError('RESULT_TOO_LARGE', label, width, height, maxPixels, MAX_DIMENSION);
  }
  const total = sizes.reduce((sum, { width, height }) => sum + width * height, 0);
  if (sizes.length > 1 && total > maxTotalPixels)
    throw serviceError('RESULT_TOO_LARGE_IN_TOTAL', label, sizes.length, total, maxTotalPixels);
}

/** Every frame of an animation becomes as large as the canvas before it is anything else. */
function totalPixels({ width = 0, height = 0, animation, pages }: ImageInfo): number {
  if (animation) return width * height * animation.delaysMs.length;
  return (pages ?? []).reduce((sum, page) => sum + (page.width ?? 0) * (page.height ?? 0), 0);
}
