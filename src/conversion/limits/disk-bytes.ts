/** @module An estimate of the disk space of a conversion, before a tool starts. */
import type { Size } from '../../images/image-info.ts';
import { maxToolFileBytes } from '../../process/sandbox/configure.ts';
import type { Config } from '../../tables/config.ts';
import { canHavePalette, MAX_WATERMARK, OUTPUTS } from '../../tables/formats.ts';
import { EXTERNAL_ENCODERS } from '../plan/external-encoders.ts';
import { MAX_TRIALS, MAX_WHOLE_PIXELS, stripsOf } from '../plan/likeness.ts';
import { fitAll, peakRasterSize, staysVector, turnSizes } from '../plan/size.ts';
import type { ConversionJob } from '../plan/types.ts';
import { countedPages, countPixels } from './limits.ts';

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
