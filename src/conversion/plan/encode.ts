import type { OutputType } from '../../formats.ts';
import { isPassthrough, keepsAllFrames, selectedPages } from './selection.ts';
import type { PlanContext } from './types.ts';

/** How each format is written: where quality, bytes and time are in balance. Pure. */

/** How each format is written. `quality` acts where it means a picture quality. */
export const ENCODERS: Readonly<Record<OutputType, (job: PlanContext) => readonly string[]>> = {
  // 7 would take 100 of an animation for lossless, and nothing else does.
  webp: ({ options }) => [
    ...['-quality', String(options.quality), '-define', 'webp:method=4', '-define', 'webp:lossless=false'],
  ],
  // -quality would mean zlib level and filter here: 80 is slow and large.
  png: (job) => ['-depth', job.image.deep ? '16' : '8', ...(isFlat(job) ? PACKED.flat : PACKED.photo)],
  jpg: (job) => [
    ...['-sampling-factor', '4:2:0', '-quality', String(job.options.quality)],
    ...(pixelsOfResult(job) < MANY_PIXELS ? [] : ['-define', 'jpeg:optimize-coding=false']),
  ],
  // Dithered, even a picture of few colours would lose some: 48 dB instead of none, and 100 ms more a frame.
  gif(job) {
    if (isPassthrough(job)) return [];
    return ['+dither', ...(keepsAllFrames(job) ? ['-layers', 'OptimizeTransparency', '-colors', '256'] : [])];
  },
  // Version 6 would put a profile behind a header that has no room for it.
  bmp: () => ['+profile', '*', '-type', 'TrueColor'],
  // One pixel is one point; without a title the working file's name would be it.
  pdf: (job) => [
    ...['-units', 'PixelsPerInch', '-density', '72', '-compress', pageCompression(job)],
    ...['-quality', String(job.options.quality), '-define', 'pdf:title=image'],
  ],
};

/** Codes made for the one picture take a fifth more time. They save 2% of the bytes of large ones, 5% of small. */
const MANY_PIXELS = 500_000;

function pixelsOfResult({ image: { width = 0, height = 0 }, options }: PlanContext): number {
  const scale = Math.min(1, (options.width ?? width) / width, (options.height ?? height) / height);
  return width * height * scale ** 2 || 0; // 0 when it is not known
}

/** How PNG is packed: where time and bytes are in balance by the curve in bench/README.md. Filter 1 is none, 5 is by line. */
const PACKED = {
  photo: ['-define', 'png:compression-level=2', '-define', 'png:compression-filter=5'],
  flat: ['-define', 'png:compression-level=4', '-define', 'png:compression-filter=1'],
} as const;

/** Filters help where neighbours differ a little; where they are the same they are in the way. Resizing makes shades. */
function isFlat({ image: { flat, paletteKind, type }, options: { width, height } }: PlanContext): boolean {
  return !width && !height && (flat || paletteKind !== undefined || type === 'gif');
}

/**
 * One for all pages, since ImageMagick knows no other way. Few colours are kept as they are: black and white
 * as fax machines send it, a twentieth of the size, as long as no resize makes greys of it.
 */
function pageCompression(job: PlanContext): 'JPEG' | 'Zip' | 'Group4' {
  const { image, options } = job;
  const pages = image.pages ? selectedPages(job) : [image];
  if (pages.every(({ paletteKind }) => paletteKind === undefined)) return 'JPEG';
  return pages.every(({ paletteKind }) => paletteKind === 'bilevel') && !options.width && !options.height
    ? 'Group4'
    : 'Zip';
}
