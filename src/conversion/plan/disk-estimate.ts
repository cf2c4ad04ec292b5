import type { OutputType } from '../../formats.ts';
import { fittings, peakRasterSize } from './size.ts';
import type { Plan, PlanContext, Size } from './types.ts';

/**
 * How many bytes a pixel of a result takes at most. Measured on noise in 8 bits a channel at quality 100, with
 * ImageMagick 6.9.11: webp 2.2, png 4.01, jpg 2.4, gif 1.4, bmp 3, pdf 3.3.
 */
const MAX_BYTES_PER_PIXEL: Readonly<Record<OutputType, number>> = {
  webp: 3,
  png: 4.1,
  jpg: 3,
  gif: 2,
  bmp: 3.1,
  pdf: 4,
};
/** A picture that is kept to be encoded again has 8 bits a channel, and up to five channels (CMYK with alpha). */
const KEPT_BYTES_PER_PIXEL = 5;
/** Headers, colour tables and profiles: what does not grow with the picture. */
const FIXED_BYTES = 64 * 1024;

/**
 * The bytes that the files of a conversion take at most: the result, and the pictures in between, which are PNG. Metadata
 * that stays has been in the input, too.
 *
 * @returns undefined when the header does not tell how large the picture is
 */
export function bytesOnDisk(job: PlanContext, { steps }: Plan, inputBytes: number): number | undefined {
  const { format } = job.options;
  const decoded = decodedPixels(job);
  if (decoded === 0) return undefined;
  const between = steps.length > 1 ? decoded * MAX_BYTES_PER_PIXEL.png : 0;
  const pixels = resultPixels(job);
  const result = pixels * MAX_BYTES_PER_PIXEL[format];
  // The best result so far is there while the next one is made.
  const again = job.options.maxBytes ? pixels * KEPT_BYTES_PER_PIXEL + result : 0;
  return Math.ceil(inputBytes + FIXED_BYTES + between + result + again);
}

/** All pixels that the tools decode or draw. */
function decodedPixels(job: PlanContext): number {
  const { image, options } = job;
  const { width, height } = peakRasterSize(image, { ...options, format: 'png' });
  const pictures = image.animation?.delaysMs.length ?? image.images?.count ?? 1;
  return width * height * pictures || pagePixels(image.pages ?? []);
}

/** All pixels of the result, turned or not, whichever is more: not every header tells whether the picture is turned. */
function resultPixels(job: PlanContext): number {
  const { image, options } = job;
  const { width = 0, height = 0 } = image;
  const rotated = { ...job, image: { ...image, width: height, height: width } };
  const sums = [job, rotated].map((one) => fittings(one).reduce((sum, { result }) => sum + area(result), 0));
  const drawn = image.type === 'svg' ? area(peakRasterSize(image, { ...options, format: 'png' })) : 0;
  return Math.max(drawn, ...sums);
}

function area({ width, height }: Size): number {
  return width * height;
}

function pagePixels(pages: readonly { readonly width?: number; readonly height?: number }[]): number {
  return pages.reduce((sum, { width = 0, height = 0 }) => sum + width * height, 0);
}
