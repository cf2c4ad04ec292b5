import type { OutputType } from '../../formats.ts';
import { decodingOf } from './decoding.ts';
import { ENCODERS_AFTER } from './encode.ts';
import { fittings, peakRasterSize } from './size.ts';
import type { ConvertOptions, ImageInfo, Plan, PlanContext, Size } from './types.ts';

/**
 * How many bytes a pixel of a result takes at most. Measured on noise in 8 bits a channel at quality 100, with
 * ImageMagick 6.9.11: webp 2.2, png 4.01, jpg 4.1, gif 1.4, bmp 3, pdf 3.3. With transparency: avif 3.8 with libaom 3.6,
 * jxl 4.4 with libjxl 0.7, tiff 4.01, and a fifth channel with CMYK.
 */
const MAX_BYTES_PER_PIXEL: Readonly<Record<OutputType, number>> = {
  webp: 3,
  png: 4.1,
  jpg: 4.2,
  gif: 2,
  bmp: 3.1,
  pdf: 4,
  avif: 4.2,
  jxl: 4.6,
  tiff: 5.1,
  ico: 0, // its pictures have fixed sizes
};
/** A picture that is kept to be encoded again has 8 bits a channel, and up to five channels (CMYK with alpha). */
const KEPT_BYTES_PER_PIXEL = 5;
/** Outputs that keep 16 bits a channel. */
const DEEP_OUTPUTS: readonly OutputType[] = ['png', 'jxl', 'tiff'];
/** The pictures of an icon, of 256, 48, 32 and 16 pixels a side, and their masks. */
const ICON_BYTES = 300_000;
/** Headers, colour tables and profiles: what does not grow with the picture. */
const FIXED_BYTES = 64 * 1024;

/**
 * The bytes that the files of a conversion take at most: the result, and the pictures in between, which are PNG. Metadata
 * that stays has been in the input, too.
 *
 * @returns undefined when the header does not tell how large the picture is
 */
export function bytesOnDisk(job: PlanContext, { steps }: Plan, inputBytes: number): number | undefined {
  const { image, options, tools } = job;
  const decoded = decodedPixels(job);
  if (decoded === 0 || image.hasUncountedFrames) return undefined;
  const deep = image.deep ? 2 : 1;
  const pngs = steps.length - 1 + (image.decoder || decodingOf(image, tools) ? 1 : 0);
  const pixels = resultPixels(job);
  const between = pngs * Math.max(decoded, pixels) * MAX_BYTES_PER_PIXEL.png * deep;
  const perPixel =
    MAX_BYTES_PER_PIXEL[options.format === 'webp' && options.lossless ? 'png' : options.format] *
    (DEEP_OUTPUTS.includes(options.format) ? deep : 1);
  const result = pixels * perPixel + (options.format === 'ico' ? ICON_BYTES : 0);
  // The best result so far stays while the next one is made. Separate encoders read the PNG again.
  const kept = ENCODERS_AFTER[options.format] ? 0 : pixels * KEPT_BYTES_PER_PIXEL;
  const again = options.maxBytes ? kept + result : 0;
  return Math.ceil(inputBytes + FIXED_BYTES + between + result + again);
}

/** Also of a drawing that becomes a PDF, which has no pixels. */
function rasterSize(image: ImageInfo, options: ConvertOptions): Size {
  return peakRasterSize(image, options.format === 'pdf' ? { ...options, format: 'png' } : options);
}

/** All pixels that the tools decode or draw. */
function decodedPixels(job: PlanContext): number {
  const { image, options } = job;
  const { width, height } = rasterSize(image, options);
  const pictures = image.animation?.delaysMs.length ?? image.images?.count ?? 1;
  return width * height * pictures || pagePixels(image.pages ?? []);
}

/** All pixels of the result, turned or not, whichever is more: not every header tells whether the picture is turned. */
function resultPixels(job: PlanContext): number {
  const { image, options } = job;
  const { width = 0, height = 0 } = image;
  const rotated = { ...job, image: { ...image, width: height, height: width } };
  const sums = [job, rotated].map((one) => fittings(one).reduce((sum, { result }) => sum + area(result), 0));
  const drawn = image.type === 'svg' ? area(rasterSize(image, options)) : 0;
  return Math.max(drawn, ...sums);
}

function area({ width, height }: Size): number {
  return width * height;
}

function pagePixels(pages: readonly { readonly width?: number; readonly height?: number }[]): number {
  return pages.reduce((sum, { width = 0, height = 0 }) => sum + width * height, 0);
}
