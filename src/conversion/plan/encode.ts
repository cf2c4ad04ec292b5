import type { OutputType } from '../../formats.ts';
import { pageScale } from './pdf-page.ts';
import { AVIF_LEVELS, JXL_DISTANCES, valueAt } from './quality.ts';
import { isPassthrough, keepsAllFrames, selectedPages } from './selection.ts';
import { fittings } from './size.ts';
import type { PlanContext, ToolContext, ToolName } from './types.ts';

/** How each format is written: where quality, bytes and time are in balance. Pure. */

/** Effort of lossless WebP, 0 to 100; the default of libwebp. */
export const LOSSLESS_EFFORT = 75;

/** How each format is written. `quality` acts where it means a picture quality. */
export const ENCODERS: Readonly<Record<OutputType, (job: PlanContext) => readonly string[]>> = {
  // 7 would take 100 of an animation for lossless, and nothing else does. Without loss, the quality is an effort.
  webp: ({ options: { lossless = false, quality }, tools: { threads = 1 } }) => [
    ...['-quality', String(lossless ? LOSSLESS_EFFORT : quality)],
    // Unless `exact`, 7 rounds colours of a lossless WebP by the quality.
    ...[
      '-define',
      'webp:method=4',
      '-define',
      `webp:lossless=${lossless}`,
      '-define',
      `webp:exact=${lossless}`,
    ],
    ...(threads > 1 ? ['-define', 'webp:thread-level=1'] : []),
  ],
  // -quality would mean zlib level and filter here: 80 is slow and large.
  png: (job) => ['-depth', job.image.deep ? '16' : '8', ...(isFlat(job) ? PACKED.flat : PACKED.photo)],
  jpg: (job) => [
    ...['-sampling-factor', '4:2:0', '-quality', String(job.options.quality)],
    ...(resultPixels(job) < MANY_PIXELS ? [] : ['-define', 'jpeg:optimize-coding=false']),
  ],
  // Dithered, even a picture of few colours would lose some: 48 dB instead of none, and 100 ms more a frame.
  gif(job) {
    if (isPassthrough(job)) return [];
    return ['+dither', ...(keepsAllFrames(job) ? ['-layers', 'OptimizeTransparency', '-colors', '256'] : [])];
  },
  // Version 6 would put a profile behind a header that has no room for it.
  bmp: () => ['+profile', '*', '-type', 'TrueColor'],
  // Without a title the working file's name would be it.
  pdf: (job) => [
    ...['-units', 'PixelsPerInch', '-density', pageDensity(job), '-compress', pageCompression(job)],
    ...['-quality', String(job.options.quality), '-define', 'pdf:title=image'],
  ],
  // 8 bits: what browsers show, and half of the time.
  avif: () => ['-depth', '8', ...PACKED.quick],
  // Fewer bits for few greys, as for black and white, would turn white into black: cjxl 0.7 reads them unscaled.
  jxl: (job) => [...depth(job), '-define', `png:bit-depth=${bits(job)}`, ...PACKED.quick],
  tiff: (job) => [
    ...[...depth(job), '-compress', 'Zip'],
    ...['-define', 'tiff:predictor=2', '-define', 'tiff:endian=lsb'],
  ],
  ico: iconSizes,
};

/** 16 bits stay where the format has room for them. */
function depth(job: PlanContext): string[] {
  return ['-depth', bits(job)];
}

const bits = ({ image }: PlanContext): string => (image.deep ? '16' : '8');

/** Sizes in pixels of the pictures in an icon, as Windows asks for them. */
const ICON_SIZES = [256, 48, 32, 16];

/** Each size is fitted into a square of its own, what is left transparent. A width or height leaves the larger sizes out. */
function iconSizes({ options: { width = 256, height = 256 } }: PlanContext): string[] {
  const [smallest = 16] = ICON_SIZES.slice(-1);
  const largest = Math.max(smallest, Math.min(width, height));
  const copies = ICON_SIZES.filter((size) => size <= largest).flatMap((size) => [
    ...['(', '-clone', '0', '-filter', 'Lanczos', '-resize', `${size}x${size}`],
    ...['-background', 'none', '-gravity', 'center', '-extent', `${size}x${size}`, ')'],
  ]);
  return ['-alpha', 'set', ...copies, '-delete', '0', '-depth', '8'];
}

export interface EncoderAfter {
  readonly tool: ToolName;
  /** Without the names of the input and the output, which follow. */
  args(job: PlanContext): readonly string[];
}

/** Formats that ImageMagick leaves as a PNG, for a program that encodes them right. */
export const ENCODERS_AFTER: Partial<Readonly<Record<OutputType, EncoderAfter>>> = {
  avif: {
    tool: 'avifenc',
    // Colour in full resolution, which screenshots need; transparency without loss.
    args: ({ options: { quality }, tools: { threads = 1 } }) => [
      ...['-c', 'aom', '-j', String(threads), '-s', '9', '-y', '444', '--min', '0', '--max', '63'],
      ...['--minalpha', '0', '--maxalpha', '0'],
      ...['-a', 'end-usage=q', '-a', `color:cq-level=${Math.round(valueAt(AVIF_LEVELS, quality))}`],
    ],
  },
  jxl: {
    tool: 'cjxl',
    args: ({ options: { quality }, tools }) => [
      ...[jxlThreads(tools), '--container=1', '--quiet'],
      ...['-d', valueAt(JXL_DISTANCES, quality).toFixed(2), '-e', quality === 100 ? '2' : '4'],
    ],
  },
};

const POINTS_PER_INCH = 72;

/** Pixels per inch with two decimals, rounded up: one pixel is one point, unless a page would be too large. */
function pageDensity(job: PlanContext): string {
  return String(Math.ceil((POINTS_PER_INCH / pageScale(job)) * 100) / 100);
}

/** Codes made for the one picture take a fifth more time. They save 2% of the bytes of large ones, 5% of small. */
const MANY_PIXELS = 500_000;

/** Of the first frame or page; 0 when it is not known. */
function resultPixels(job: PlanContext): number {
  const { width, height } = fittings(job)[0]?.result ?? { width: 0, height: 0 };
  return width * height;
}

/** The option of libjxl's programs: 0 for no thread beside the main one. */
export const jxlThreads = ({ threads = 1 }: ToolContext): string =>
  `--num_threads=${threads > 1 ? threads : 0}`;

/** How PNG is packed: where time and bytes are in balance by the curve in bench/README.md. Filter 1 is none, 5 is by line. */
const PACKED = {
  photo: ['-define', 'png:compression-level=2', '-define', 'png:compression-filter=5'],
  flat: ['-define', 'png:compression-level=4', '-define', 'png:compression-filter=1'],
  // For a program that reads it at once.
  quick: ['-define', 'png:compression-level=1', '-define', 'png:compression-filter=1'],
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
