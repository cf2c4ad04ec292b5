/**
 * @module Resizes an image, and crops or pads it to the size of the box. Pure.
 *
 * If it becomes much smaller, libjpeg or dwebp averages pixels while it decodes (shrink-on-load),
 * or ImageMagick afterwards, and one filter does the rest: see bench/README.md. If the size is
 * uncertain, ImageMagick places by gravity for `cover` and `contain`, which differs by at most one
 * pixel.
 */
import { isSameSize, type Size, turnSize } from '../../images/image-info.ts';
import type { Fitting } from '../../tables/fitting.ts';
import { OUTPUTS } from '../../tables/formats.ts';
import { convertsInks } from './colour.ts';
import { isOpaqueAnimation, isOpaqueStill, orient } from './decode.ts';
import { crop, cropOffset, edgeOffset, formatGeometry, keptPoint, padOffset } from './position.ts';
import { keepsSize, type ScaledDecoding } from './scaled-decoding.ts';
import { honours } from './short-paths.ts';
import { boxGeometry, isRenderedToFit, setsSize, shownArea } from './size.ts';
import { words } from './step.ts';
import { type ConversionJob, MAGICK_FEATURES, type Sentence } from './types.ts';

/**
 * Lanczos with two lobes instead of three, and a narrower window that compensates for it. The PSNR
 * against Lanczos with three lobes is at least 42 dB. Takes two thirds of the time.
 */
const FILTER = ['-filter', 'Lanczos', '-define', 'filter:support=2', '-define', 'filter:win-support=2.6'];

/** Makes libjpeg average pixels while it decodes, which takes a fraction of the time. */
export function shrinkOnLoad(job: ConversionJob): string[] {
  const { image, scaledDecoding } = job;
  return scaledDecoding && image.type === 'jpg' ? ['-define', `jpeg:size=${scaledDecoding.requested}`] : [];
}

export const explainShrinking: Sentence = ({ scaledDecoding, image }) =>
  scaledDecoding &&
  `decoded at ${scaledDecoding.columns.decoded} × ${scaledDecoding.rows.decoded} instead of ${image.width} × ${image.height}`;

/**
 * Replaces what libjpeg decoded partly from beyond the image by the last column or row, or crops
 * it. Both a crop and an extent copy all pixels: 8 ms for a megapixel with ImageMagick 7.
 */
export function fitDecoded(job: ConversionJob): string[] {
  const { columns, rows } = job.scaledDecoding ?? {};
  if (!columns || !rows || (columns.from === columns.decoded && rows.from === rows.decoded)) return [];
  const whole = { width: columns.from, height: rows.from };
  if (columns.repeated + rows.repeated === 0) return crop(whole);
  const filled = { width: columns.from + columns.repeated, height: rows.from + rows.repeated };
  const column = crop({ ...whole, width: 1 }, { x: whole.width - 1, y: 0 });
  const row = crop({ ...filled, height: 1 }, { x: 0, y: whole.height - 1 });
  const extent =
    keepsSize(columns) && keepsSize(rows) ? [] : words(`-extent ${formatGeometry(filled)} +repage`);
  // -append copies all pixels once more, which takes 70 ms for 1.5 megapixels with ImageMagick 7.
  return [
    ...extent,
    ...words('-compose Copy'),
    ...repeat(column, { ...whole, width: columns.repeated }, `+${whole.width}+0`),
    ...repeat(row, { ...filled, height: rows.repeated }, `+0+${whole.height}`),
    ...words('-compose Over'),
  ];
}

/** Copies a column or a row of the image to the pixels of this size and place. */
function repeat(line: readonly string[], size: Size, place: string): string[] {
  if (size.width * size.height === 0) return [];
  const copies = ['-sample', `${formatGeometry(size)}!`];
  return ['(', '-clone', '0', ...line, ...copies, ')', '-geometry', place, '-composite'];
}

/**
 * Drops the alpha channel of an image, or of each frame of an animated WebP, if it is opaque, as in
 * many screenshots and animations. Resizing with alpha would take 1.2 to 1.6 times as long.
 */
export function dropOpaqueAlpha(job: ConversionJob): string[] {
  const { image, options, tools } = job;
  if (isOpaqueAnimation(job)) return ['-alpha', 'off'];
  if (!tools.dropsOpaqueAlpha || !isResized(job) || image.type === 'jpg' || isOpaqueStill(job)) return [];
  const isSingle = !job.keepsAllFrames && job.pages.length <= 1;
  return isSingle || options.format === 'webp' ? ['-alpha', 'off-if-opaque'] : [];
}

export const explainOpaqueAlpha: Sentence = (job) =>
  dropOpaqueAlpha(job).length > 0 ? 'alpha is dropped if it is opaque' : undefined;

/** Resizes the image, unless it has the requested size. Without `enlarge`, no side grows. */
export function resize(job: ConversionJob): string[] {
  return isResized(job) ? [...reduce(job), ...(orientsLast(job) ? orient(job) : [])] : [];
}

function reduce(job: ConversionJob): string[] {
  const { options, trustedFitting: fitting } = job;
  // A cropped or padded image must have exactly the size that its offset was calculated from.
  const isExact =
    average(job).length > 0 || orientsLast(job) || (options.fit ?? 'inside') !== 'inside' || losesSide(job);
  if (!fitting && losesSide(job))
    return [...FILTER, ...placeEach(job, ({ resized }) => ['-resize', `${formatGeometry(resized)}!`])];
  if (!fitting || !isExact) return [...FILTER, '-resize', boxGeometry(options)];
  if (job.scaledDecoding) return reduceDecoded(job.scaledDecoding, asDecoded(job, fitting.resized));
  return [...FILTER, '-resize', `${formatGeometry(asDecoded(job, fitting.resized))}!`];
}

/** Resizes what was decoded at a smaller size, and cuts off what shows only repeated pixels. */
function reduceDecoded({ columns, rows }: ScaledDecoding, target: Size): string[] {
  const resized = { width: columns.resized, height: rows.resized };
  const cut = isSameSize(resized, target) ? [] : crop(target);
  return [...FILTER, '-resize', `${formatGeometry(resized)}!`, ...cut];
}

/**
 * Returns whether `scale` leaves less than half a pixel of a side. ImageMagick rejects that
 * (ParseMetaGeometry), and only there: for a width or a height, it keeps a pixel.
 */
function losesSide(job: ConversionJob): boolean {
  const { scale, enlarge } = job.options;
  if (!scale) return false;
  const share = (enlarge ? scale : Math.min(scale, 100)) / 100;
  const shown = job.turnedSizes.map((size, at) => shownArea(size, job, at));
  return shown.some(({ width, height }) => Math.min(width, height) * share < 0.5);
}

/** Bounds of {@link average}. bench/README.md has the measurements. */
const AVERAGING = {
  // With an oversampling of 2.5, the PSNR of text is 39 dB instead of 42. For two pixels, both
  // steps take as long as the filter alone.
  pixels: { oversampling: 3, minBlock: 3 },
  // A profile of inks takes seven times as long as the filter, so that every pixel less counts.
  // PSNR of photos: at least 42 dB.
  inks: { oversampling: 1.6, minBlock: 2 },
} as const;

/** Averages blocks if the image becomes much smaller: faster, and leaves fewer inks to convert. */
export function average(job: ConversionJob): string[] {
  if (!job.trustedFitting || job.scaledDecoding || !isResized(job)) return [];
  const { resized } = job.trustedFitting;
  const { width, height } = shownSize(job);
  const { oversampling, minBlock } = AVERAGING[convertsInks(job) ? 'inks' : 'pixels'];
  const block = Math.floor(Math.min(width / resized.width, height / resized.height) / oversampling);
  if (block < minBlock) return [];
  const averaged = { width: Math.round(width / block), height: Math.round(height / block) };
  return [...MAGICK_FEATURES.averaging[job.tools.magick], `${formatGeometry(asDecoded(job, averaged))}!`];
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

/** Returns whether to rotate after the resize. 2.7 megapixels take 7 ms (version 6) or 13 (7). */
function orientsLast(job: ConversionJob): boolean {
  const { image, options, trustedFitting: fitting } = job;
  if (job.scaledDecoding) return true;
  const { width = 0, height = 0 } = image;
  const isRotated = job.orientation > 1 && !job.rasterized && job.pages.length === 0;
  if (!fitting || !isRotated || !honours('lateRotation', options)) return false;
  return fitting.resized.width * fitting.resized.height < width * height;
}

/** Returns the size as columns and rows of the decoded image, which may still be rotated. */
function asDecoded(job: ConversionJob, { width, height }: Size): Size {
  return turnSize({ width, height }, orientsLast(job) ? job.orientation : 1);
}

function isResized(job: ConversionJob): boolean {
  return !isRenderedToFit(job) && setsSize(job.options) && !isUnchanged(job);
}

/** Returns whether the size is known to be final. The filter would take 30 ms per megapixel. */
function isUnchanged(job: ConversionJob): boolean {
  return job.trustedFitting !== undefined && isSameSize(job.trustedFitting.resized, shownSize(job));
}

/** Returns the size after `rotate` of what the first frame or page shows; 0 × 0 if unknown. */
function shownSize(job: ConversionJob): Size {
  const [size] = job.turnedSizes;
  return size ? shownArea(size, job) : { width: 0, height: 0 };
}

/** Crops the image to the box for `cover`. librsvg has cropped an SVG already. */
export function cropToBox(job: ConversionJob): string[] {
  const { image, options } = job;
  if (options.fit !== 'cover' || image.type === 'svg') return [];
  const fitting = job.trustedFitting;
  const point = keptPoint(job);
  if (!fitting)
    return placeEach(job, (each) => {
      const { x, y, gravity } = edgeOffset(each, point, cropOffset(each, point));
      return withGravity(gravity, ['-crop', `${options.width}x${options.height}+${x}+${y}`]);
    });
  return fills(fitting) ? [] : crop(fitting.result, cropOffset(fitting, point));
}

/**
 * Returns whether `position=attention` still has to choose a part: not if nothing is cut, and not
 * for pages of different sizes or an image without a known size, which keep their centre.
 */
export function choosesPart({ options, measured, fittings }: ConversionJob): boolean {
  const [fitting, ...others] = fittings;
  return (
    options.fit === 'cover' &&
    options.position === 'attention' &&
    measured.point === undefined &&
    fitting !== undefined &&
    !fills(fitting) &&
    others.every(({ resized }) => isSameSize(resized, fitting.resized))
  );
}

export const explainAttention: Sentence = (job) =>
  choosesPart(job)
    ? 'edges, skin tones and saturation decide which part is kept: the commands keep the centre'
    : undefined;

export const explainCutting: Sentence = (job) =>
  cropToBox(job).length > 0 ? `cut to ${job.options.width} × ${job.options.height}` : undefined;

/** Returns the picture's size after the box for `cover`, before the borders of `contain`. */
export const pictureSize = ({ resized, result }: Fitting): Size => ({
  width: Math.min(resized.width, result.width),
  height: Math.min(resized.height, result.height),
});

/** Adds borders up to the box for `contain`. Transparent parts of the image stay transparent. */
export function pad(job: ConversionJob): string[] {
  const { options } = job;
  const fitting = job.trustedFitting;
  if (options.fit !== 'contain' || (fitting && fills(fitting))) return [];
  const point = keptPoint(job);
  const extend = placeEach(job, (each) => {
    const offset = padOffset(each, point);
    if (fitting)
      return ['-extent', formatGeometry(fitting.result, { x: -offset.x, y: -offset.y }), '+repage'];
    const { x, y, gravity } = edgeOffset(each, point, offset);
    return withGravity(gravity, [
      '-extent',
      `${options.width}x${options.height}${x + y > 0 ? `-${x}-${y}` : ''}`,
    ]);
  });
  const colour = paddingColour(job);
  // ImageMagick 6 leaves the alpha of a BMP with a palette undefined: older memory would show.
  const opaque = job.image.type === 'bmp' && colour === 'none' ? ['-alpha', 'set'] : [];
  return [...opaque, '-background', colour, '-compose', 'Copy', ...extend, '-compose', 'Over'];
}

export const explainBorders: Sentence = (job) =>
  pad(job).length > 0
    ? `borders of the colour ${paddingColour(job)} up to ${job.options.width} × ${job.options.height}`
    : undefined;

const fills = ({ resized, result }: Fitting): boolean => isSameSize(resized, result);

/** An image whose size is not known, for positions that do not depend on it. */
const UNKNOWN: Fitting = { resized: { width: 0, height: 0 }, result: { width: 0, height: 0 } };

/** Places all images alike, or each page by its own size if the places differ. */
function placeEach({ fittings }: ConversionJob, place: (fitting: Fitting) => string[]): string[] {
  const [first = place(UNKNOWN), ...others] = fittings.map(place);
  if (others.every((other) => other.join(' ') === first.join(' '))) return first;
  const placed = [first, ...others].flatMap((one, at) => ['(', '-clone', String(at), ...one, ')']);
  return [...placed, '-delete', `0-${others.length}`];
}

function withGravity(gravity: string, operation: readonly string[]): string[] {
  return ['-gravity', gravity, ...operation, '+gravity', '+repage'];
}

function paddingColour({ options: { format, background } }: ConversionJob): string {
  return (
    background ?? (OUTPUTS[format].alpha === 'none' || OUTPUTS[format].takesBackground ? '#ffffff' : 'none')
  );
}
