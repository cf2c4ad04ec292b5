import type { OutputType } from '../../formats.ts';
import { keepsAllFrames, selectedPages } from './selection.ts';
import { peakRasterSize } from './size.ts';
import type { Plan, PlanContext } from './types.ts';

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
/** Outputs that keep 16 bits a channel. */
const DEEP_OUTPUTS: readonly OutputType[] = ['png'];
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
  const between = steps.length > 1 || job.image.decoder ? decoded * MAX_BYTES_PER_PIXEL.png : 0;
  const deep = job.image.deep && DEEP_OUTPUTS.includes(format) ? 2 : 1;
  const result = resultPixels(job) * MAX_BYTES_PER_PIXEL[format] * deep;
  return Math.ceil(inputBytes + FIXED_BYTES + between + result);
}

/** All pixels that the tools decode or draw. */
function decodedPixels(job: PlanContext): number {
  const { image, options } = job;
  const { width, height } = peakRasterSize(image, { ...options, format: 'png' });
  const pictures = image.animation?.delaysMs.length ?? image.images?.count ?? 1;
  return width * height * pictures || pagePixels(image.pages ?? []);
}

function resultPixels(job: PlanContext): number {
  const { image, options } = job;
  const { width, height } = peakRasterSize(image, { ...options, format: 'png' });
  const frames = keepsAllFrames(job) ? (image.animation?.delaysMs.length ?? 1) : 1;
  const pages = selectedPages(job);
  const pixels = Math.max(width * height * frames, pagePixels(pages));
  const shorter = Math.min(width, height);
  if (image.type === 'svg' || pages.length > 1 || shorter === 0) return pixels;
  // By the shorter side, since the picture may be turned.
  const scale = Math.min(1, ...[options.width, options.height].map((most) => (most ?? shorter) / shorter));
  return pixels * scale ** 2;
}

function pagePixels(pages: readonly { readonly width?: number; readonly height?: number }[]): number {
  return pages.reduce((sum, { width = 0, height = 0 }) => sum + width * height, 0);
}
