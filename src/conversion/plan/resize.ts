/**
 * @module Resizes an image, and crops or pads it to the size of the box. Pure.
 *
 * If the image becomes much smaller, libjpeg averages pixels while it decodes (shrink-on-load), and one filter does the
 * rest. bench/README.md has the measurements.
 *
 * For `cover` and `contain`, if the size is not reliably known, ImageMagick calculates the offset by gravity, which differs
 * by at most one pixel.
 */

import { OUTPUTS } from '../../formats.ts';
import type { Size } from './image-info.ts';
import {
  boxGeometry,
  cropOffset,
  type Fitting,
  gravityName,
  type Offset,
  padOffset,
  trustedFitting,
} from './size.ts';
import type { PlanContext } from './types.ts';

/**
 * Lanczos with two lobes instead of three, and a narrower window that compensates for it. The PSNR against Lanczos with
 * three lobes is at least 42 dB. Takes two thirds of the time.
 */
const FILTER = [
  ...['-filter', 'Lanczos'],
  ...['-define', 'filter:support=2', '-define', 'filter:win-support=2.6'],
];

/**
 * Number of pixels per side that libjpeg averages, from which reduction on. It averages within blocks, which is visible
 * at sharp edges.
 */
const SHRINK_STEPS = {
  smooth: [
    { from: 17, pixels: 8 },
    { from: 6.6, pixels: 4 },
    { from: 3.3, pixels: 2 },
  ],
  detailed: [
    { from: 24, pixels: 8 },
    { from: 12, pixels: 4 },
    { from: 5, pixels: 2 },
  ],
} as const;

/** Makes libjpeg average pixels while it decodes, which takes a fraction of the time. */
export function shrinkOnLoad(job: PlanContext): string[] {
  const { width = 0, height = 0 } = job.image;
  const pixels = decoderShrink(job, trustedFitting(job));
  if (pixels === 1) return [];
  return ['-define', `jpeg:size=${width / pixels}x${height / pixels}`];
}

/** Resizes the image. Without `enlarge`, no side grows. An SVG was rendered at the requested size already. */
export function resize(job: PlanContext): string[] {
  const { image, options } = job;
  if (image.type === 'svg' || (!options.width && !options.height)) return [];
  const fitting = trustedFitting(job);
  // A cropped or padded image must have exactly the size that its offset was calculated from. libjpeg rounds the
  // proportions of an image that it averages.
  const isExact = (options.fit ?? 'inside') !== 'inside' || decoderShrink(job, fitting) > 1;
  if (!fitting || !isExact) return [...FILTER, '-resize', boxGeometry(options)];
  const { width, height } = fitting.resized;
  return [...FILTER, '-resize', `${width}x${height}!`];
}

/**
 * Returns the number of pixels per side that libjpeg averages to one: a divisor of both sides. libjpeg rounds up: a
 * quarter of 2725 pixels is 682, for 2728 pixels. In a result of 300 pixels, that would shift the far edge by a third
 * of a pixel (36 dB).
 */
function decoderShrink({ image }: PlanContext, fitting: Fitting | undefined): 1 | 2 | 4 | 8 {
  const { type, width = 0, height = 0, detailed } = image;
  if (type !== 'jpg' || !fitting) return 1;
  const dividesSides = (pixels: number): boolean => width % pixels === 0 && height % pixels === 0;
  const steps = SHRINK_STEPS[detailed ? 'detailed' : 'smooth'];
  return steps.find(({ from, pixels }) => fitting.scale <= 1 / from && dividesSides(pixels))?.pixels ?? 1;
}

/** Crops the image to the box for `cover`. librsvg has cropped an SVG already. */
export function crop(job: PlanContext): string[] {
  const { image, options } = job;
  if (options.fit !== 'cover' || image.type === 'svg') return [];
  const fitting = trustedFitting(job);
  if (!fitting) return withGravity(job, ['-crop', `${options.width}x${options.height}+0+0`]);
  return fills(fitting)
    ? []
    : ['-crop', formatGeometry(fitting.result, cropOffset(fitting, options)), '+repage'];
}

/** Adds borders up to the box for `contain`. Transparent parts of the image stay transparent. */
export function pad(job: PlanContext): string[] {
  const { options } = job;
  const fitting = trustedFitting(job);
  if (options.fit !== 'contain' || (fitting && fills(fitting))) return [];
  const { x, y } = fitting ? padOffset(fitting, options) : { x: 0, y: 0 };
  const extend = fitting
    ? ['-extent', formatGeometry(fitting.result, { x: -x, y: -y }), '+repage']
    : withGravity(job, ['-extent', `${options.width}x${options.height}`]);
  return ['-background', paddingColour(job), '-compose', 'Copy', ...extend, '-compose', 'Over'];
}

/** Returns whether the resized image fills the box exactly. */
function fills({ resized, result }: Fitting): boolean {
  return resized.width === result.width && resized.height === result.height;
}

function withGravity({ options }: PlanContext, operation: readonly string[]): string[] {
  return ['-gravity', gravityName(options), ...operation, '+gravity', '+repage'];
}

function paddingColour({ options: { format, background } }: PlanContext): string {
  return background ?? (OUTPUTS[format].alpha === 'none' ? '#ffffff' : 'none');
}

/** Formats a geometry argument of ImageMagick. */
function formatGeometry({ width, height }: Size, offset?: Offset): string {
  const signed = (count: number): string => (count < 0 ? `${count}` : `+${Math.abs(count)}`);
  return `${width}x${height}${offset ? signed(offset.x) + signed(offset.y) : ''}`;
}
