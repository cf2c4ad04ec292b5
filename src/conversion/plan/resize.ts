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
import type { Size } from '../../images/image-info.ts';
import { boxGeometry, cropOffset, gravityName, type Offset, padOffset } from './size.ts';
import type { ConversionJob, Fitting } from './types.ts';

/**
 * Lanczos with two lobes instead of three, and a narrower window that compensates for it. The PSNR against Lanczos with
 * three lobes is at least 42 dB. Takes two thirds of the time.
 */
const FILTER = [
  ...['-filter', 'Lanczos'],
  ...['-define', 'filter:support=2', '-define', 'filter:win-support=2.6'],
];

/** Scale of libjpeg's decoder. */
interface DecoderScale {
  /** The decoder is used from this reduction on. It averages within blocks, which is visible at sharp edges. */
  readonly from: number;
  /** Divisor of both sides of the image. libjpeg rounds up the sides of other images. */
  readonly divisor: number;
  /** The divisor that `jpeg:size` stands for. libjpeg selects 3/8 for 1/3. */
  readonly requested: number;
}

const EIGHTH = { divisor: 8, requested: 8 };
const QUARTER = { divisor: 4, requested: 4 };
const THREE_EIGHTHS = { divisor: 8, requested: 3 };
const HALF = { divisor: 2, requested: 2 };

/** The scales, in order of preference. */
const DECODER_SCALES: Readonly<Record<'smooth' | 'detailed', readonly DecoderScale[]>> = {
  smooth: [
    { from: 17, ...EIGHTH },
    { from: 6.6, ...QUARTER },
    { from: 3.3, ...THREE_EIGHTHS },
    { from: 3.3, ...HALF },
  ],
  detailed: [
    { from: 24, ...EIGHTH },
    { from: 12, ...QUARTER },
    { from: 5, ...HALF },
  ],
};

/** Makes libjpeg average pixels while it decodes, which takes a fraction of the time. */
export function shrinkOnLoad(job: ConversionJob): string[] {
  const { width = 0, height = 0 } = job.image;
  const scale = decoderScale(job, job.trustedFitting);
  if (!scale) return [];
  const [columns, rows] = [width, height].map((side) => Math.floor(side / scale.requested));
  return ['-define', `jpeg:size=${columns}x${rows}`];
}

/**
 * Drops the alpha channel of a single image if it is opaque, as in many screenshots. Resizing with alpha would take 1.2 times as
 * long.
 */
export function dropOpaqueAlpha(job: ConversionJob): string[] {
  const isSingle = !job.keepsAllFrames && job.pages.length <= 1;
  const applies = job.tools.dropsOpaqueAlpha && isSingle && isResized(job) && job.image.type !== 'jpg';
  return applies ? ['-alpha', 'off-if-opaque'] : [];
}

/** Resizes the image. Without `enlarge`, no side grows. An SVG was rendered at the requested size already. */
export function resize(job: ConversionJob): string[] {
  if (!isResized(job)) return [];
  const { options } = job;
  const fitting = job.trustedFitting;
  // A cropped or padded image must have exactly the size that its offset was calculated from. libjpeg rounds the
  // proportions of an image that it averages.
  const isExact = (options.fit ?? 'inside') !== 'inside' || decoderScale(job, fitting) !== undefined;
  if (!fitting || !isExact) return [...FILTER, '-resize', boxGeometry(options)];
  const { width, height } = fitting.resized;
  return [...FILTER, '-resize', `${width}x${height}!`];
}

function isResized({ image, options }: ConversionJob): boolean {
  return image.type !== 'svg' && (options.width !== undefined || options.height !== undefined);
}

/**
 * Returns the smallest usable scale of libjpeg's decoder, or undefined for full size. libjpeg rounds up: a quarter of 2725
 * pixels is 682, for 2728 pixels. In a result of 300 pixels, that would shift the far edge by a third of a pixel (36 dB).
 */
function decoderScale({ image }: ConversionJob, fitting: Fitting | undefined): DecoderScale | undefined {
  const { type, width = 0, height = 0, detailed } = image;
  if (type !== 'jpg' || !fitting) return undefined;
  return DECODER_SCALES[detailed ? 'detailed' : 'smooth'].find(
    ({ from, divisor }) => fitting.scale <= 1 / from && width % divisor === 0 && height % divisor === 0,
  );
}

/** Crops the image to the box for `cover`. librsvg has cropped an SVG already. */
export function crop(job: ConversionJob): string[] {
  const { image, options } = job;
  if (options.fit !== 'cover' || image.type === 'svg') return [];
  const fitting = job.trustedFitting;
  if (!fitting) return withGravity(job, ['-crop', `${options.width}x${options.height}+0+0`]);
  return fills(fitting)
    ? []
    : ['-crop', formatGeometry(fitting.result, cropOffset(fitting, options)), '+repage'];
}

/** Adds borders up to the box for `contain`. Transparent parts of the image stay transparent. */
export function pad(job: ConversionJob): string[] {
  const { options } = job;
  const fitting = job.trustedFitting;
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

function withGravity({ options }: ConversionJob, operation: readonly string[]): string[] {
  return ['-gravity', gravityName(options), ...operation, '+gravity', '+repage'];
}

function paddingColour({ options: { format, background } }: ConversionJob): string {
  return background ?? (OUTPUTS[format].alpha === 'none' ? '#ffffff' : 'none');
}

/** Formats a geometry argument of ImageMagick. */
function formatGeometry({ width, height }: Size, offset?: Offset): string {
  const signed = (count: number): string => (count < 0 ? `${count}` : `+${Math.abs(count)}`);
  return `${width}x${height}${offset ? signed(offset.x) + signed(offset.y) : ''}`;
}
