/**
 * @module Plans each result of a file, and rejects those that exceed a limit or cannot work here. Estimates the disk space of a
 * conversion. All of this happens before a tool starts.
 */
import type { Config } from '../config.ts';
import { serviceError, serviceErrorFrom, type TimeLimit } from '../errors.ts';
import { INPUTS, MAX_WATERMARK, OUTPUTS, type OutputType } from '../formats.ts';
import type { ImageInfo, Size } from '../images/image-info.ts';
import { countArgumentBytes, MAX_ARGUMENT_BYTES } from '../process/command.ts';
import { maxToolFileBytes } from '../process/sandbox/configure.ts';
import { EXTERNAL_ENCODERS } from './plan/encode.ts';
import { planJob } from './plan/index.ts';
import { createJob, refusedLabel } from './plan/job.ts';
import { isPoint } from './plan/position.ts';
import {
  countPages,
  type Extent,
  findCropOutside,
  findMissingPage,
  fitAll,
  keepsAllPages,
  numberedPages,
  peakRasterSize,
  renderedPages,
  sizesToMake,
  staysVector,
} from './plan/size.ts';
import type { Step } from './plan/step.ts';
import type { ConversionJob, ConvertOptions, PlannedJob } from './plan/types.ts';
import type { FileConversion } from './types.ts';
import { MAX_PAGE_IMAGES } from './variants.ts';

const CONTRADICTORY = new Error('the parts of the header contradict each other');

/** What a result is planned with. */
type PlanContext = Pick<FileConversion, 'config' | 'toolchain' | 'tools' | 'source'>;

/**
 * Plans one result.
 *
 * @param suffix two digits that distinguish its files; empty for the only result of a file
 * @throws {ServiceError} if the image exceeds a limit, or if it cannot be converted on this machine
 */
export function planResult(
  image: ImageInfo,
  options: ConvertOptions,
  suffix: string,
  { source, tools, config, toolchain }: PlanContext,
): PlannedJob {
  const { type, label, readsMisread } = source;
  if (type === 'pdf' && options.format === 'pdf') throw serviceError('PDF_TO_PDF', label);
  assertPages(image, options, label);
  const job = createJob(image, options, tools, suffix);
  checkLimits(job, config, label);
  const { crop, trim, watermark, position } = options;
  const needsSize = (crop ?? trim ?? watermark) !== undefined || isPoint(position);
  const isUnknown = needsSize && type !== 'svg' && !job.decoder && job.fittings.length === 0;
  if (isUnknown || [image, ...job.pages].some(({ contradictory }) => contradictory))
    throw serviceErrorFrom(CONTRADICTORY, 'CORRUPT_IMAGE', label, INPUTS[type].label);
  const refused = refusedLabel(job, readsMisread);
  if (refused) throw serviceError('UNSUPPORTED_ENCODING', label, refused);
  if ([job.decoder, ...job.programs].some((tool) => tool && !toolchain[tool]))
    throw serviceError('CONVERSION_UNSUPPORTED', label, INPUTS[type].label, OUTPUTS[options.format].label);
  const planned = planJob(job);
  const bytes = longestCommand([...(planned.plan.trimming?.plan.steps ?? []), ...planned.plan.steps]);
  if (bytes > MAX_ARGUMENT_BYTES) {
    const frames = job.frameCount;
    const max = Math.floor((frames * MAX_ARGUMENT_BYTES) / bytes);
    throw serviceError('TOO_MANY_FRAMES', label, frames, max, true);
  }
  return planned;
}

/**
 * Checks the pages of all results of one image, before these are planned.
 *
 * @throws {ServiceError} if results of single pages are too many, or if one is asked for that does not exist
 */
export function admitPages(
  image: ImageInfo,
  requested: readonly ConvertOptions[],
  { MAX_FRAMES }: Config,
  label: string,
): void {
  const max = Math.min(MAX_FRAMES, MAX_PAGE_IMAGES);
  // A variant that asks for a missing page can be skipped.
  if (requested.every(numberedPages)) for (const options of requested) assertPages(image, options, label);
  if (requested.length > 1 && requested.length > max && requested.some(numberedPages))
    throw serviceError('TOO_MANY_FRAMES', label, requested.length, max, max < MAX_FRAMES);
}

/** @throws {ServiceError} if a page is asked for that does not exist */
function assertPages(image: ImageInfo, options: ConvertOptions, label: string): void {
  const missing = findMissingPage(image, options);
  if (missing !== undefined) throw serviceError('PAGE_MISSING', label, missing, countPages(image) || 1);
}

/** Returns the bytes of the arguments of the longest command. */
export const longestCommand = (steps: readonly Step[]): number =>
  Math.max(0, ...steps.map(({ args }) => countArgumentBytes(args)));

/** Returns the time limit of a whole conversion. */
export const conversionLimit = ({ CONVERT_TIMEOUT_MS: ms }: Config): TimeLimit => ({
  ms,
  setting: 'CONVERT_TIMEOUT_MS',
});

/** Maximum width and height in pixels that librsvg renders. The service has a lower limit, and the command line a higher one. */
const MAX_DRAWN_SIDE = 32_767;

/**
 * Checks the size of an image, and of the result.
 *
 * @param label name of the file in messages
 * @throws {ServiceError} with status 413, naming the value, the limit and the setting
 */
export function checkLimits(extent: Extent, config: Config, label: string): void {
  const { image, options } = extent;
  const { MAX_PIXELS, MAX_TOTAL_PIXELS, MAX_FRAMES, maxSide } = config;
  const pages = countedPages(extent);
  const sizes = [image.largest ?? {}, peakRasterSize(image, options), ...pages];
  const sideLimit = image.type === 'svg' ? Math.min(maxSide, MAX_DRAWN_SIDE) : maxSide;
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
function checkResultLimits(
  extent: Extent,
  { MAX_PIXELS, MAX_TOTAL_PIXELS, maxSide }: Config,
  label: string,
): void {
  const sizes = sizesToMake(extent);
  for (const { width, height } of sizes) {
    if (Math.max(width, height) > maxSide || width * height > MAX_PIXELS)
      throw serviceError('RESULT_TOO_LARGE', label, width, height, MAX_PIXELS, maxSide);
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
      ...([label, jobs.length, most, MAX_TOTAL_PIXELS] as const),
    );
}

/** Returns the pages whose pixels count: all of a TIFF, but only those of a PDF that are rendered. */
const countedPages = (extent: Extent): readonly Partial<Size>[] =>
  extent.image.type === 'pdf' ? renderedPages(extent) : (extent.image.pages ?? []);

/** Returns the pixels of all frames or pages. Each frame is expanded to the canvas before anything else. */
function totalPixels(extent: Extent): number {
  const { width = 0, height = 0, animation } = extent.image;
  return animation ? width * height * animation.delaysMs.length : countPixels(countedPages(extent));
}

/**
 * Maximum bytes per pixel of a result. Measured on noise with 8 bits per channel at quality 100, with ImageMagick
 * 6.9.11: webp 2.2, png 4.01, jpg 4.1, gif 1.4, bmp 3, pdf 3.3. With transparency: avif 3.8 with libaom 3.6, jxl 4.4
 * with libjxl 0.7, tiff 4.01, which has a fifth channel for CMYK.
 */
const MAX_BYTES_PER_PIXEL: Readonly<Record<OutputType, number>> = {
  webp: 3,
  png: 4.1,
  jpg: 4.2,
  gif: 2,
  bmp: 3.1,
  pdf: 8, // twice: ImageMagick first writes each page to a file of its own, which stays
  avif: 4.2,
  jxl: 4.6,
  tiff: 5.1,
  ico: 0, // its images have fixed sizes
};
/** Bytes per pixel of an image that is stored to be encoded again: up to five channels (CMYK and alpha) of 8 bits. */
const KEPT_BYTES_PER_PIXEL = 5;
const PPM_BYTES_PER_PIXEL = 3;
/** Outputs that keep 16 bits per channel. */
const DEEP_OUTPUTS: readonly OutputType[] = ['png', 'jxl', 'tiff'];
/** Maximum bytes of an icon: uncompressed images of 256, 48, 32 and 16 pixels per side, and their masks. */
const ICON_BYTES = 300_000;
/** Bytes of a watermark, its copy, and a decoded one with 8 bits per channel. */
const WATERMARK_BYTES = 2 * MAX_WATERMARK.bytes + MAX_WATERMARK.pixels * MAX_BYTES_PER_PIXEL.png;
/** Bytes of headers, colour tables and profiles, which do not grow with the image. */
const FIXED_BYTES = 64 * 1024;

/**
 * Estimates the maximum number of bytes on disk during a conversion: input, intermediate PNG files and result. Metadata
 * in the result was in the input, too.
 *
 * @returns undefined if the header does not state the size of the image, or not that of the result because of `trim`
 */
export function estimateDiskBytes(job: ConversionJob, inputBytes: number): number | undefined {
  const { image, options, decoder, programs } = job;
  const decoded = decodedPixels(job);
  const isUnknown = options.trim !== undefined && options.areas === undefined;
  if (decoded === 0 || image.hasUncountedFrames || isUnknown) return undefined;
  const deep = image.deep ? 2 : 1;
  const { columns, rows } = (programs[0] === 'dwebp' && job.scaledDecoding) || {};
  const scaled = columns && rows ? columns.decoded * rows.decoded * PPM_BYTES_PER_PIXEL : 0;
  const pngs = programs.length - (scaled ? 2 : 1) + (image.incomplete || decoder ? 1 : 0);
  const pixels = resultPixels(job);
  const between = pngs * Math.max(decoded, pixels) * MAX_BYTES_PER_PIXEL.png * deep;
  const perPixel =
    MAX_BYTES_PER_PIXEL[options.lossless && OUTPUTS[options.format].lossless ? 'png' : options.format] *
    (DEEP_OUTPUTS.includes(options.format) ? deep : 1);
  const result = pixels * perPixel + (options.format === 'ico' ? ICON_BYTES : 0);
  // The best result stays on disk during the next attempt. External encoders read the PNG again.
  const kept = EXTERNAL_ENCODERS[options.format] ? 0 : pixels * KEPT_BYTES_PER_PIXEL;
  const again = options.maxBytes ? kept + result : 0;
  // A result to which the copyright is added is copied.
  const copied = options.metadata === 'copyright' ? result + FIXED_BYTES : 0;
  const watermark = options.watermark ? WATERMARK_BYTES + pixels * MAX_BYTES_PER_PIXEL.png : 0;
  return Math.ceil(inputBytes + FIXED_BYTES + scaled + between + result + again + copied + watermark);
}

/** Bytes of metadata, besides a multiple of the input, that tools may unpack and copy to intermediate files. */
const MAX_METADATA_BYTES = 16 * 1024 ** 2;

/**
 * Returns the maximum bytes of all files in the folder of a conversion: what is reserved for it, and metadata. If its size is not
 * known, several files can be as large as `maxToolFileBytes`: the decoded image, its frames and the result.
 */
export function maxFolderBytes(jobs: readonly ConversionJob[], inputBytes: number, config: Config): number {
  const isUnknown = ({ image, options }: ConversionJob): boolean =>
    image.type === 'svg' && staysVector(options);
  const estimates = jobs.map((job) => (isUnknown(job) ? undefined : estimateDiskBytes(job, inputBytes)));
  const most = 4 * maxToolFileBytes(config);
  const bytes = estimates.reduce<number>((sum, estimate) => sum + (estimate ?? most), 0);
  return bytes + 4 * inputBytes + MAX_METADATA_BYTES;
}

/** Returns the size of the raster image. For a PDF of an SVG, which has no pixels, it is the size of a PNG. */
function rasterSize({ image, options }: ConversionJob): Size {
  return peakRasterSize(image, options.format === 'pdf' ? { ...options, format: 'png' } : options);
}

/** Returns the number of pixels that the tools decode or render. */
function decodedPixels(job: ConversionJob): number {
  const frames = job.image.animation?.delaysMs.length ?? 1;
  return countPixels([rasterSize(job)]) * frames || countPixels(countedPages(job));
}

/** Returns the pixels of the result, upright or rotated, whichever is more: not every header states the orientation. */
function resultPixels(job: ConversionJob): number {
  const { image, fittings } = job;
  const { width = 0, height = 0 } = image;
  const rotated = fitAll({ ...job, image: { ...image, width: height, height: width } });
  const sums = [fittings, rotated].map((fitted) => countPixels(fitted.map(({ result }) => result)));
  const drawn = image.type === 'svg' ? countPixels([rasterSize(job)]) : 0;
  return Math.max(drawn, ...sums);
}

/** Returns the pixels of all images. */
function countPixels(sizes: readonly Partial<Size>[]): number {
  return sizes.reduce((sum, { width = 0, height = 0 }) => sum + width * height, 0);
}
