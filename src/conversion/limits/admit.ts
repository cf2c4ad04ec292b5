/** @module The limits of a conversion, and an estimate of its disk space, before a tool starts. */
import type { ImageInfo, Size } from '../../images/image-info.ts';
import { maxToolFileBytes } from '../../process/sandbox/configure.ts';
import type { Config } from '../../tables/config.ts';
import { serviceError, type TimeLimit } from '../../tables/errors.ts';
import { canHavePalette, MAX_WATERMARK, OUTPUTS } from '../../tables/formats.ts';
import { EXTERNAL_ENCODERS } from '../plan/external-encoders.ts';
import { MAX_TRIALS, MAX_WHOLE_PIXELS, stripsOf } from '../plan/likeness.ts';
import {
  countPages,
  type Extent,
  findCropOutside,
  fitAll,
  keepsAllPages,
  numberedPages,
  peakRasterSize,
  renderedPages,
  sizesToMake,
  staysVector,
  turnSizes,
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
export function admitTogether(
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
const countedPages = (extent: Extent): readonly Partial<Size>[] =>
  extent.image.type === 'pdf' ? renderedPages(extent) : (extent.image.pages ?? []);

/** Returns the pixels of all frames or pages. Each frame is expanded to the canvas first. */
function totalPixels(extent: Extent): number {
  const { width = 0, height = 0, animation } = extent.image;
  return animation ? width * height * animation.delaysMs.length : countPixels(countedPages(extent));
}

/** Bytes per pixel of an image that is stored to be encoded again: CMYK and alpha of 8 bits. */
const KEPT_BYTES_PER_PIXEL = 5;
const PPM_BYTES_PER_PIXEL = 3;
const PNG_BYTES_PER_PIXEL = OUTPUTS.png.maxBytesPerPixel;
/** Maximum bytes of an icon: uncompressed images of 256, 48, 32 and 16 pixels, and their masks. */
const ICON_BYTES = 300_000;
/** Bytes of a watermark, its copy, and a decoded one with 8 bits per channel. */
const WATERMARK_BYTES = 2 * MAX_WATERMARK.bytes + MAX_WATERMARK.pixels * PNG_BYTES_PER_PIXEL;
/** Bytes of headers, colour tables and profiles, which do not grow with the image. */
const FIXED_BYTES = 64 * 1024;

/**
 * Estimates the bytes on disk: input with its metadata, intermediate PNG files, and result.
 * Undefined if the header does not state the size of the image, or `trim` changes that of the
 * result.
 */
export function estimateDiskBytes(job: ConversionJob, inputBytes: number): number | undefined {
  const { image, options, decoder, programs } = job;
  const decoded = decodedPixels(job);
  const isUnknown = options.trim !== undefined && job.measured.areas === undefined;
  if (decoded === 0 || image.hasUncountedFrames || isUnknown) return undefined;
  const deep = image.deep ? 2 : 1;
  const { columns, rows } = (programs[0] === 'dwebp' && job.scaledDecoding) || {};
  const scaled = columns && rows ? columns.decoded * rows.decoded * PPM_BYTES_PER_PIXEL : 0;
  const pngs = programs.length - (scaled ? 2 : 1) + (image.incomplete || decoder ? 1 : 0);
  const pixels = resultPixels(job);
  const between = pngs * Math.max(decoded, pixels) * PNG_BYTES_PER_PIXEL * deep;
  const format = OUTPUTS[options.format];
  const isExact = options.lossless === true && format.lossless;
  const perPixel =
    (isExact && !format.paper ? PNG_BYTES_PER_PIXEL : format.maxBytesPerPixel) *
    (format.deep || (isExact && format.paper) ? deep : 1);
  const result = pixels * perPixel + (options.format === 'ico' ? ICON_BYTES : 0);
  // The best result stays on disk during the next attempt. External encoders read the PNG again.
  const kept = EXTERNAL_ENCODERS[options.format] ? 0 : pixels * KEPT_BYTES_PER_PIXEL;
  const again = job.search ? kept + result : 0;
  const compared = job.search === 'likeness' ? estimateCompared(job, pixels) + MAX_TRIALS * result : 0;
  const isPalette = options.candidates?.some(canHavePalette);
  const palette = isPalette ? pixels * (2 * PNG_BYTES_PER_PIXEL + 2 * COMPARED_BYTES_PER_PIXEL) : 0;
  // A result to which the copyright is added is copied.
  const copied = options.metadata === 'copyright' ? result + FIXED_BYTES : 0;
  const watermark = options.watermark ? WATERMARK_BYTES + pixels * PNG_BYTES_PER_PIXEL : 0;
  return Math.ceil(
    inputBytes + FIXED_BYTES + scaled + between + result + again + compared + palette + copied + watermark,
  );
}

/** Samples per pixel of a file that is compared: three colours and alpha. */
const COMPARED_BYTES_PER_PIXEL = 4;

/** Returns the bytes of what is compared, its decoded PNG, and the strips of a large image. */
function estimateCompared(job: ConversionJob, pixels: number): number {
  const shown = stripsOf(job) ? MAX_WHOLE_PIXELS : pixels;
  return shown * (2 * COMPARED_BYTES_PER_PIXEL + PNG_BYTES_PER_PIXEL + KEPT_BYTES_PER_PIXEL);
}

/** Bytes of metadata that tools may unpack and copy, besides a multiple of the input. */
const MAX_METADATA_BYTES = 16 * 1024 ** 2;

/**
 * Returns the bytes to reserve for a conversion to several results, and the maximum bytes of all
 * files in its folder, with metadata. If its size is not known, several files can be as large as
 * `maxToolFileBytes`: the decoded image, its frames and the result.
 */
export function sumDiskBytes(jobs: readonly ConversionJob[], inputBytes: number, config: Config) {
  const most = maxToolFileBytes(config);
  let [reserved, folder] = [0, 4 * inputBytes + MAX_METADATA_BYTES];
  for (const job of jobs) {
    const estimate = estimateDiskBytes(job, inputBytes);
    const isVector = job.image.type === 'svg' && staysVector(job.options);
    reserved += estimate ?? most;
    folder += (isVector ? undefined : estimate) ?? 4 * most;
  }
  return { reserved, folder };
}

/** Returns the size of the raster image; for a PDF of an SVG, which has none, that of a PNG. */
function rasterSize(job: ConversionJob): Size {
  const { options } = job;
  return peakRasterSize(options.format === 'pdf' ? { ...job, options: { ...options, format: 'png' } } : job);
}

/** Returns the number of pixels that the tools decode or render. */
function decodedPixels(job: ConversionJob): number {
  const frames = job.image.animation?.delaysMs.length ?? 1;
  return countPixels([rasterSize(job)]) * frames || countPixels(countedPages(job));
}

/** Returns the most pixels of the result, upright or turned: not every header states which. */
function resultPixels(job: ConversionJob): number {
  const { image, fittings } = job;
  const { width = 0, height = 0 } = image;
  const turned = { ...job, image: { ...image, width: height, height: width } };
  const rotated = fitAll({ ...turned, turnedSizes: turnSizes(turned) });
  const sums = [fittings, rotated].map((fitted) => countPixels(fitted.map(({ result }) => result)));
  const drawn = image.type === 'svg' ? countPixels([rasterSize(job)]) : 0;
  return Math.max(drawn, ...sums);
}

function countPixels(sizes: readonly Partial<Size>[]): number {
  return sizes.reduce((sum, { width = 0, height = 0 }) => sum + width * height, 0);
}
