/**
 * @module Resizes an image, and crops or pads it to the size of the box. Pure.
 *
 * If the image becomes much smaller, libjpeg or dwebp averages pixels while it decodes (shrink-on-load), or ImageMagick
 * afterwards, and one filter does the rest. bench/README.md has the measurements.
 *
 * For `cover` and `contain`, if the size is not reliably known, ImageMagick calculates the offset by gravity, which differs
 * by at most one pixel.
 */

import { OUTPUTS } from '../../formats.ts';
import { isSameSize, type Size, turnSize } from '../../images/image-info.ts';
import { isOpaqueAnimation, orient } from './decode.ts';
import {
  crop,
  cropOffset,
  edgeOffset,
  formatGeometry,
  type Gravity,
  type Offset,
  padOffset,
} from './position.ts';
import type { ScaledDecoding } from './scaled-decoding.ts';
import { honours } from './short-paths.ts';
import { boxGeometry, isRenderedToFit, setsSize, shownArea, turnedSizes } from './size.ts';
import type { ConversionJob, Fitting, Sentence } from './types.ts';

/**
 * Lanczos with two lobes instead of three, and a narrower window that compensates for it. The PSNR against Lanczos with
 * three lobes is at least 42 dB. Takes two thirds of the time.
 */
const FILTER = [
  ...['-filter', 'Lanczos'],
  ...['-define', 'filter:support=2', '-define', 'filter:win-support=2.6'],
];

/** Makes libjpeg average pixels while it decodes, which takes a fraction of the time. */
export function shrinkOnLoad(job: ConversionJob): string[] {
  const { image, scaledDecoding } = job;
  return scaledDecoding && image.type === 'jpg' ? ['-define', `jpeg:size=${scaledDecoding.requested}`] : [];
}

export const explainShrinking: Sentence = ({ scaledDecoding, image }) =>
  scaledDecoding &&
  `decoded at ${scaledDecoding.columns.decoded} × ${scaledDecoding.rows.decoded} instead of ${image.width} × ${image.height}`;

/**
 * Crops the decoded image, or repeats its last column and row, so that its scale is that of the result. The commands copy all
 * pixels once: `+append` and `-append` take twice the time of the resizing on ImageMagick 7.
 */
export function fitDecoded(job: ConversionJob): string[] {
  const { columns, rows } = job.scaledDecoding ?? {};
  if (!columns || !rows) return [];
  const [width, height] = [columns.from, rows.from];
  if (width <= columns.whole && height <= rows.whole)
    return width === columns.decoded && height === rows.decoded ? [] : crop({ width, height });
  return [
    ...['-compose', 'Copy', '-extent', formatGeometry({ width, height })],
    ...repeat({ width: width - columns.whole, height }, { x: columns.whole, y: 0 }, { x: 1, y: 0 }),
    ...repeat({ width, height: height - rows.whole }, { x: 0, y: rows.whole }, { x: 0, y: 1 }),
    ...['-compose', 'Over'], // with +compose, ImageMagick 6 draws nothing in a later -extent
  ];
}

/** Fills an area with copies of the column or row before it. */
function repeat(area: Size, { x, y }: Offset, step: Offset): string[] {
  if (area.width <= 0 || area.height <= 0) return [];
  const last = { width: step.x || area.width, height: step.y || area.height };
  const edge = [
    '+clone',
    ...crop(last, { x: x - step.x, y: y - step.y }),
    '-sample',
    `${formatGeometry(area)}!`,
  ];
  return ['(', ...edge, ')', '-geometry', `+${x}+${y}`, '-composite'];
}

/**
 * Drops the alpha channel of an image, or of each frame of an animated WebP, if it is opaque, as in many screenshots and
 * animations. Resizing with alpha would take 1.2 to 1.6 times as long.
 */
export function dropOpaqueAlpha(job: ConversionJob): string[] {
  const { image, options, tools } = job;
  if (isOpaqueAnimation(job)) return ['-alpha', 'off'];
  if (!tools.dropsOpaqueAlpha || !isResized(job) || image.type === 'jpg' || image.opaque) return [];
  const isSingle = !job.keepsAllFrames && job.pages.length <= 1;
  return isSingle || options.format === 'webp' ? ['-alpha', 'off-if-opaque'] : [];
}

export const explainOpaqueAlpha: Sentence = (job) =>
  dropOpaqueAlpha(job).length > 0 ? 'alpha is dropped if it is opaque' : undefined;

/** Resizes the image, unless it has the requested size already. Without `enlarge`, no side grows. */
export function resize(job: ConversionJob): string[] {
  return isResized(job) ? [...reduce(job), ...(orientsLast(job) ? orient(job) : [])] : [];
}

function reduce(job: ConversionJob): string[] {
  const { options, scaledDecoding, trustedFitting: fitting } = job;
  if (scaledDecoding) return resizeDecoded(scaledDecoding);
  const averaged = fitting ? averageFirst(job, fitting) : [];
  // A cropped or padded image must have exactly the size that its offset was calculated from.
  const isExact = averaged.length > 0 || orientsLast(job) || (options.fit ?? 'inside') !== 'inside';
  if (!fitting || !isExact) return [...FILTER, '-resize', boxGeometry(options)];
  return [...averaged, ...FILTER, '-resize', `${formatGeometry(asDecoded(job, fitting.resized))}!`];
}

/** Minimum size after averaging, relative to the result: the PSNR of text is at least 42 dB, and 39 with 2.5. */
const AVERAGED_OVERSAMPLING = 3;
/** Minimum number of pixels a side that become one. For two, averaging and the filter take as long as the filter alone. */
const MIN_AVERAGED = 3;

/** Averages blocks of pixels if the image becomes much smaller, which takes a fraction of the time of the filter. */
function averageFirst(job: ConversionJob, { resized }: Fitting): string[] {
  const { width, height } = shownSize(job);
  const reduction = Math.min(width / resized.width, height / resized.height);
  const block = Math.floor(reduction / AVERAGED_OVERSAMPLING);
  if (block < MIN_AVERAGED) return [];
  const averaged = { width: Math.round(width / block), height: Math.round(height / block) };
  return ['-scale', `${formatGeometry(asDecoded(job, averaged))}!`];
}

export const explainResize: Sentence = (job) => {
  const { options, trustedFitting: fitting } = job;
  if (fitting && setsSize(options) && isUnchanged(job)) return 'not enlarged';
  if (!isResized(job)) return undefined;
  if (!fitting && options.scale) return `scaled to ${options.scale}% with Lanczos`;
  if (!fitting) return `fitted into ${options.width ?? 'any'} × ${options.height ?? 'any'} with Lanczos`;
  const { width, height } = shownSize(job);
  const { resized } = fitting;
  return `${width} × ${height} → ${resized.width} × ${resized.height} with Lanczos`;
};

/** Rotates the image before it is resized, unless fewer pixels can be rotated afterwards. */
export function orientFirst(job: ConversionJob): string[] {
  return orientsLast(job) ? [] : orient(job);
}

/**
 * Returns whether the image is rotated after the resize. Rotating 2.7 megapixels takes 7 ms with ImageMagick 6, and 13 ms with 7.
 */
function orientsLast(job: ConversionJob): boolean {
  const { image, options, trustedFitting: fitting } = job;
  if (job.scaledDecoding) return true;
  const { width = 0, height = 0 } = image;
  const isRotated = job.orientation > 1 && !job.rasterized && job.pages.length === 0;
  if (!fitting || !isRotated || !honours('lateRotation', options)) return false;
  return fitting.resized.width * fitting.resized.height < width * height;
}

/** Returns the size as columns and rows of the decoded image, which may still have to be rotated. */
function asDecoded(job: ConversionJob, { width, height }: Size): Size {
  return turnSize({ width, height }, orientsLast(job) ? job.orientation : 1);
}

/** Resizes the pixels that libjpeg has decoded, and cuts off those beyond the edges. */
function resizeDecoded({ columns, rows }: ScaledDecoding): string[] {
  const target = { width: columns.target, height: rows.target };
  const isCut = columns.to > columns.target || rows.to > rows.target;
  return [
    ...[...FILTER, '-resize', `${formatGeometry({ width: columns.to, height: rows.to })}!`],
    ...(isCut ? crop(target) : []),
  ];
}

function isResized(job: ConversionJob): boolean {
  return !isRenderedToFit(job) && setsSize(job.options) && !isUnchanged(job);
}

/** Returns whether the image is known to have its final size. The filter would take 30 ms per megapixel to change nothing. */
function isUnchanged(job: ConversionJob): boolean {
  return job.trustedFitting !== undefined && isSameSize(job.trustedFitting.resized, shownSize(job));
}

/** Returns the size after `rotate` of what is shown of the first frame or page; 0 × 0 if it is not known. */
function shownSize(job: ConversionJob): Size {
  const [size] = turnedSizes(job);
  return size ? shownArea(size, job.options, false) : { width: 0, height: 0 };
}

/** Crops the image to the box for `cover`. librsvg has cropped an SVG already. */
export function cropToBox(job: ConversionJob): string[] {
  const { image, options } = job;
  if (options.fit !== 'cover' || image.type === 'svg') return [];
  const fitting = job.trustedFitting;
  if (!fitting)
    return placeEach(job, (each) => {
      const { x, y, gravity } = edgeOffset(each, options, cropOffset(each, options));
      return withGravity(gravity, ['-crop', `${options.width}x${options.height}+${x}+${y}`]);
    });
  return fills(fitting) ? [] : crop(fitting.result, cropOffset(fitting, options));
}

export const explainCutting: Sentence = (job) =>
  cropToBox(job).length > 0 ? `cut to ${job.options.width} × ${job.options.height}` : undefined;

/** Returns the size of the picture after the box for `cover`, and before the borders of `contain`. */
export const pictureSize = ({ resized, result }: Fitting): Size => ({
  width: Math.min(resized.width, result.width),
  height: Math.min(resized.height, result.height),
});

/** Adds borders up to the box for `contain`. Transparent parts of the image stay transparent. */
export function pad(job: ConversionJob): string[] {
  const { options } = job;
  const fitting = job.trustedFitting;
  if (options.fit !== 'contain' || (fitting && fills(fitting))) return [];
  const extend = placeEach(job, (each) => {
    const offset = padOffset(each, options);
    if (fitting)
      return ['-extent', formatGeometry(fitting.result, { x: -offset.x, y: -offset.y }), '+repage'];
    const { x, y, gravity } = edgeOffset(each, options, offset);
    return withGravity(gravity, [
      '-extent',
      `${options.width}x${options.height}${x + y > 0 ? `-${x}-${y}` : ''}`,
    ]);
  });
  return ['-background', paddingColour(job), '-compose', 'Copy', ...extend, '-compose', 'Over'];
}

export const explainBorders: Sentence = (job) =>
  pad(job).length > 0
    ? `borders of the colour ${paddingColour(job)} up to ${job.options.width} × ${job.options.height}`
    : undefined;

/** Returns whether the resized image fills the box exactly. */
export const fills = ({ resized, result }: Fitting): boolean => isSameSize(resized, result);

/** An image whose size is not known, for positions that do not depend on it. */
const UNKNOWN: Fitting = { resized: { width: 0, height: 0 }, result: { width: 0, height: 0 } };

/** Places all images alike, or each page by its own size if the places differ. */
function placeEach({ fittings }: ConversionJob, place: (fitting: Fitting) => string[]): string[] {
  const [first = place(UNKNOWN), ...others] = fittings.map(place);
  if (others.every((other) => other.join(' ') === first.join(' '))) return first;
  const placed = [first, ...others].flatMap((one, at) => ['(', '-clone', String(at), ...one, ')']);
  return [...placed, '-delete', `0-${others.length}`];
}

function withGravity(gravity: Gravity['gravity'], operation: readonly string[]): string[] {
  return ['-gravity', gravity, ...operation, '+gravity', '+repage'];
}

function paddingColour({ options: { format, background } }: ConversionJob): string {
  return background ?? (OUTPUTS[format].alpha === 'none' ? '#ffffff' : 'none');
}
