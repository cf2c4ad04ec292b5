/** @module The limits of a conversion, which are checked before a tool starts. */
import type { ImageInfo, Size } from '../../images/image-info.ts';
import type { Config } from '../../tables/config.ts';
import { serviceError, type TimeLimit } from '../../tables/errors.ts';
import {
  countPages,
  type Extent,
  findCropOutside,
  keepsAllPages,
  numberedPages,
  peakRasterSize,
  renderedPages,
  sizesToMake,
} from '../plan/size.ts';
import type { ConversionJob } from '../plan/types.ts';

/** Returns the time limit of a whole conversion. */
export const conversionLimit = ({ CONVERT_TIMEOUT_MS: ms }: Config): TimeLimit => ({
  ms,
  setting: 'CONVERT_TIMEOUT_MS',
});

/** Maximum side in pixels that librsvg renders: between those of the service and command line. */
const MAX_RSVG_SIDE = 32_767;

/** Returns the maximum side of an image and its results in pixels. Formats can have lower ones. */
function maxSideOf({ type }: ImageInfo, { maxSide, maxDrawnSide }: Config): number {
  if (type === 'svg') return Math.min(maxDrawnSide, MAX_RSVG_SIDE);
  return type === 'pdf' ? maxDrawnSide : maxSide;
}

/**
 * Checks the size of an image, and of the result.
 *
 * @throws {ServiceError} with status 413, naming the value, the limit and the setting
 */
export function checkLimits(extent: Extent, config: Config, label: string): void {
  const { image, options } = extent;
  const { MAX_PIXELS, MAX_TOTAL_PIXELS, MAX_FRAMES } = config;
  const pages = countedPages(extent);
  const sizes = [image.largest ?? {}, peakRasterSize(extent), ...pages];
  const sideLimit = maxSideOf(image, config);
  for (const { width = 0, height = 0 } of sizes) {
    if (Math.max(width, height) > sideLimit) {
      const isRendered = image.type === 'svg' || image.type === 'pdf';
      const code = isRendered ? 'DRAWING_TOO_LARGE' : 'INPUT_DIMENSION_TOO_LARGE';
      throw serviceError(code, label, Math.max(width, height), sideLimit);
    }
    if (width * height > MAX_PIXELS) throw serviceError('TOO_MANY_PIXELS', label, width, height, MAX_PIXELS);
  }
  const isDrawn = image.type === 'pdf' && !keepsAllPages(options);
  const frames = Math.max(
    image.animation?.delaysMs.length ?? 0,
    isDrawn ? extent.pages.length : countPages(image),
  );
  if (frames > MAX_FRAMES) throw serviceError('TOO_MANY_FRAMES', label, frames, MAX_FRAMES);
  const total = totalPixels(extent);
  if (total > MAX_TOTAL_PIXELS)
    throw serviceError('TOO_MANY_TOTAL_PIXELS', label, frames, total, MAX_TOTAL_PIXELS);
  const outside = findCropOutside(extent);
  if (outside)
    throw serviceError('CROP_OUTSIDE', label, options.crop as string, outside.width, outside.height);
  checkResultLimits(extent, config, label);
}

/** Checks the result, which is larger than the image if it is enlarged or gets borders. */
function checkResultLimits(extent: Extent, config: Config, label: string): void {
  const { MAX_PIXELS, MAX_TOTAL_PIXELS } = config;
  const sideLimit = maxSideOf(extent.image, config);
  const sizes = sizesToMake(extent);
  for (const { width, height } of sizes) {
    if (Math.max(width, height) > sideLimit || width * height > MAX_PIXELS)
      throw serviceError('RESULT_TOO_LARGE', label, width, height, MAX_PIXELS, sideLimit);
  }
  const total = countPixels(sizes);
  if (sizes.length > 1 && total > MAX_TOTAL_PIXELS)
    throw serviceError('RESULT_TOO_LARGE_IN_TOTAL', label, sizes.length, total, MAX_TOTAL_PIXELS);
}

/**
 * Checks the pixels of all results of one image together.
 *
 * @throws {ServiceError} with status 413
 */
export function checkTogether(
  jobs: readonly ConversionJob[],
  { MAX_TOTAL_PIXELS }: Config,
  label: string,
): void {
  const total = countPixels(jobs.flatMap(sizesToMake));
  if (jobs.length < 2) return;
  const arePages = jobs.every(({ options }) => numberedPages(options));
  const drawn = countPixels(jobs.flatMap((job) => (job.image.type === 'pdf' ? renderedPages(job) : [])));
  const most = Math.max(total, drawn);
  if (most > MAX_TOTAL_PIXELS)
    throw serviceError(
      arePages ? 'RESULT_TOO_LARGE_IN_TOTAL' : 'VARIANTS_TOO_LARGE_IN_TOTAL',
      label,
      jobs.length,
      most,
      MAX_TOTAL_PIXELS,
    );
}

/** Returns the pages whose pixels count: all of a TIFF, but only the rendered ones of a PDF. */
export const countedPages = (extent: Extent): readonly Partial<Size>[] =>
  extent.image.type === 'pdf' ? renderedPages(extent) : (extent.image.pages ?? []);

/** Returns the pixels of all frames or pages. Each frame is expanded to the canvas first. */
function totalPixels(extent: Extent): number {
  const { width = 0, height = 0, animation } = extent.image;
  return animation ? width * height * animation.delaysMs.length : countPixels(countedPages(extent));
}

/** Returns the pixels of all images; zero for one of an unknown size. */
export function countPixels(sizes: readonly Partial<Size>[]): number {
  return sizes.reduce((sum, { width = 0, height = 0 }) => sum + width * height, 0);
}
