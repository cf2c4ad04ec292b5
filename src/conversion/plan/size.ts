/** @module Sizes of the frames and pages to convert, at each stage of a conversion. */
import {
  type Area,
  combineOrientations,
  type ImageInfo,
  type Orientation,
  type Page,
  type Scale,
  type Size,
  swapsSides,
  turnSize,
} from '../../images/image-info.ts';
import {
  type Box,
  type Fitting,
  fitInto,
  parseArea,
  ROUNDING_ERROR,
  roundArea,
  roundingOf,
  roundUp,
  scaleSide,
} from '../../tables/fitting.ts';
import { DPI, OUTPUTS } from '../../tables/formats.ts';
import { type Fit, type OptionValue, parsePages } from '../../tables/options.ts';
import { hasSpace, POINTS_PER_INCH } from './page.ts';
import { honours } from './short-paths.ts';
import type { ConversionJob, ConvertOptions, Measured } from './types.ts';

/** The sizes of an image and of its result, and what they depend on. The limits apply to them. */
export type Extent = Pick<
  ConversionJob,
  'image' | 'options' | 'measured' | 'turn' | 'pages' | 'keepsAllFrames' | 'turnedSizes' | 'fittings'
>;

/** What determines the sizes of the images to convert before they are fitted. */
type Selection = Pick<ConversionJob, 'image' | 'turn' | 'pages' | 'keepsAllFrames'>;

/** Derives the sizes of an image and of its result. */
export function extentOf(image: ImageInfo, options: ConvertOptions, measured: Measured = {}): Extent {
  const selection = {
    image,
    turn: turnOf(options),
    pages: selectPages(image, options),
    keepsAllFrames: keepsAllFrames(image, options),
  };
  const given = { ...selection, options, measured, turnedSizes: turnSizes(selection) };
  return { ...given, fittings: fitAll(given) };
}

const ROTATIONS: Readonly<Record<OptionValue<'rotate'>, Orientation>> = { 0: 1, 90: 6, 180: 3, 270: 8 };
const FLIPS: Readonly<Record<OptionValue<'flip'>, Orientation>> = { horizontal: 2, vertical: 4, both: 3 };

/** Returns what `rotate` and `flip` do, as an orientation. */
export const turnOf = ({ rotate = 0, flip }: ConvertOptions): Orientation =>
  combineOrientations(ROTATIONS[rotate], flip ? FLIPS[flip] : 1);

/** Returns the common factors of all results; none if one is rotated, partial or has borders. */
export function commonScale(image: ImageInfo, requested: readonly ConvertOptions[]): Scale | undefined {
  const { width = 0, height = 0, orientation = 1 } = image;
  const scales = requested.map((options) => {
    const { turn, fittings } = extentOf(image, options);
    const { result, resized } = fittings[0] ?? {};
    const isWhole =
      !cutsFirst(options) && result?.width === resized?.width && result?.height === resized?.height;
    if (!result || !isWhole || combineOrientations(orientation, turn) !== 1) return undefined;
    return { x: result.width / width, y: result.height / height };
  });
  const [first] = scales;
  return scales.every((scale) => scale?.x === first?.x && scale?.y === first?.y) ? first : undefined;
}

/** See {@link ConversionJob.keepsAllFrames}. */
export const keepsAllFrames = (
  { animation }: Pick<ImageInfo, 'animation'>,
  options: Pick<ConvertOptions, 'format' | 'frames'>,
): boolean => animation !== undefined && wantsAllFrames(options);

/** Returns whether all frames of an animation would be converted. */
export function wantsAllFrames({ format, frames }: Pick<ConvertOptions, 'format' | 'frames'>): boolean {
  if (frames === 'first') return false;
  return OUTPUTS[format].animation || (OUTPUTS[format].pages && frames === 'all');
}

/** Returns whether all pages are converted, if there are several. */
export const keepsAllPages = (options: Pick<ConvertOptions, 'format' | 'pages'>): boolean =>
  OUTPUTS[options.format].pages && options.pages !== 'first' && !numberedPages(options);

/** Returns the ranges of the pages that are asked for by number; undefined without numbers. */
export const numberedPages = ({ pages = 'all' }: Pick<ConvertOptions, 'pages'>) => parsePages(pages);

/** Returns the number of the first page that is asked for and missing; undefined if none is. */
export function findMissingPage(image: ImageInfo, options: ConvertOptions): number | undefined {
  const count = countPages(image) || 1;
  const range = numberedPages(options)?.find(([, last]) => last > count);
  return range && Math.max(range[0], count + 1);
}

/** Properties that state the size of an image or a page. */
export type Stored = Pick<ImageInfo, 'width' | 'height' | 'orientation'>;

/** Returns the known sizes of the image, or of the pages to convert, after `rotate`. */
export function turnSizes({ image, turn, pages, keepsAllFrames }: Selection): Size[] {
  if (pages.length > 0) return pages.flatMap((page) => turnedSize(page, turn));
  // Where a decoder reads the file itself, it rotates an image without an orientation of its own.
  const pixels = image.decoded ? undefined : image.pixels;
  const { orientation = pixels?.orientation ?? 1 } = image;
  // Frames are not rotated.
  return turnedSize({ ...image, ...image.aperture, orientation: keepsAllFrames ? 1 : orientation }, turn);
}

/** Returns the size of an upright image after `rotate`, in a list; an empty one if unknown. */
export function turnedSize({ width, height, orientation }: Stored, turn: Orientation): Size[] {
  if (!width || !height) return [];
  return [turnSize(turnSize({ width, height }, orientation), turn)];
}

/** What determines which area of an image is shown. */
type Shown = Pick<ConversionJob, 'image' | 'options' | 'measured'>;

/**
 * Returns the area that `crop` and `trim` keep of a page, or all of it. That of a raster image has
 * whole pixels, at least one. `size` is that of the upright image after `rotate`.
 */
export function shownArea(size: Size, { image, options: { crop }, measured }: Shown, at = 0): Area {
  const trimmed = measured.areas?.[at];
  if (trimmed) return trimmed;
  if (crop === undefined) return { x: 0, y: 0, ...size };
  const area = parseArea(crop, size);
  return image.type === 'svg' ? area : roundArea(area, size);
}

/** Returns the size after `rotate` of an image or page that the crop exceeds, if there is one. */
export function findCropOutside(extent: Extent): Size | undefined {
  const { crop } = extent.options;
  if (crop === undefined) return undefined;
  return extent.turnedSizes.find((size) => {
    const { x, y, width, height } = parseArea(crop, size);
    return Math.max(x + width - size.width, y + height - size.height) > ROUNDING_ERROR;
  });
}

/** Returns the pages to convert. Those of a PDF have a size in pixels at the resolution. */
function selectPages(
  { type, pages = [] }: Pick<ImageInfo, 'type' | 'pages'>,
  options: ConvertOptions,
): readonly Page[] {
  const ranges = numberedPages(options);
  const named = ranges
    ? pages.filter(({ index }) => ranges.some(([first, last]) => first <= index + 1 && index < last))
    : pages;
  const selected = OUTPUTS[options.format].pages && options.pages !== 'first' ? named : named.slice(0, 1);
  if (type !== 'pdf') return selected;
  const scale = (options.dpi ?? DPI.default) / POINTS_PER_INCH;
  return selected.map(({ width = 0, height = 0, ...page }) => ({
    ...page,
    width: scaleSide(width, scale),
    height: scaleSide(height, scale),
  }));
}

/** Returns the number of all pages of a TIFF or a PDF. */
export const countPages = ({ pages, pageCount }: ImageInfo): number => pageCount ?? pages?.length ?? 0;

/** Returns whether only a part of the image is fitted. */
const cutsFirst = ({ crop, trim }: Partial<ConvertOptions>): boolean => (crop ?? trim) !== undefined;

/** Returns whether an image is rendered at its final size. A `crop` is cut out of a whole page. */
export const isRenderedToFit = ({ image, options }: Pick<ConversionJob, 'image' | 'options'>): boolean =>
  image.type === 'svg' || (image.type === 'pdf' && !cutsFirst(options));

/** Returns the size in pixels at which each page of a PDF is rendered. */
export function renderedPages(extent: Extent): readonly Partial<Size>[] {
  return isRenderedToFit(extent)
    ? extent.fittings.map(({ resized }) => turnSize(resized, extent.turn))
    : extent.pages;
}

/** Size in pixels of an SVG for an icon without a requested size: that of its largest image. */
const ICON_SIDE = 256;

/** Returns the options with the box that an SVG is fitted into. It can always be enlarged. */
export function vectorBox(options: ConvertOptions): ConvertOptions {
  const { format, width, height } = options;
  const side = format === 'ico' && !setsSize(options) ? ICON_SIDE : undefined;
  return { ...options, width: width ?? side, height: height ?? side, enlarge: true };
}

/** Returns the options with the box that an SVG is rendered into, before it is rotated. */
export function drawingBox(options: ConvertOptions): ConvertOptions {
  const box = vectorBox(options);
  return swapsSides(turnOf(options)) ? { ...box, width: box.height, height: box.width } : box;
}

/** Options of a drawing, without those that every request has. */
export type DrawingOptions = Partial<ConvertOptions> & Pick<ConvertOptions, 'format'>;

/** Returns whether an SVG stays vector: borders and space would show what should be cut off. */
export const staysVector = (options: DrawingOptions): boolean =>
  options.format === 'pdf' &&
  !(cutsFirst(options) && (options.fit === 'contain' || hasSpace(options))) &&
  !(options.fit === 'cover' && hasSpace(options)) &&
  honours('vectors', options);

/**
 * Returns the size in pixels of the largest image before the resize: the stored one, or the
 * rendered SVG; 0 by 0 if it is not known, or if an SVG is not rasterized.
 */
export function peakRasterSize({ image, options, measured }: Shown): Size {
  const { type, width = 0, height = 0 } = image;
  if (type !== 'svg' || width === 0 || height === 0) return { width, height };
  if (staysVector(options)) return { width: 0, height: 0 };
  const [box, turn] = [vectorBox(options), turnOf(options)];
  if (cutsFirst(options) || options.fit === 'cover' || options.fit === 'fill')
    return fitInto(shownArea(turnSize({ width, height }, turn), { image, options, measured }), box).result;
  return fitInto(turnSize({ width, height }, turn), box, roundUp).resized;
}

/**
 * Returns the sides for librsvg, which fits an image inside a box and rounds up: with both, it can
 * render one pixel too many. So it gets the side that limits the scale, and the other one only if
 * it is a whole number. Sides of the box that are not given are infinite.
 */
export function drawnSides(size: Size, box: Size): Pick<ConvertOptions, 'width' | 'height'> {
  if (box.width / size.width <= box.height / size.height)
    return { width: box.width, height: wholeNumber((size.height * box.width) / size.width) };
  return { width: wholeNumber((size.width * box.height) / size.height), height: box.height };
}

function wholeNumber(side: number): number | undefined {
  const whole = Math.round(side);
  return Math.abs(side - whole) < ROUNDING_ERROR ? whole : undefined;
}

/** Fits each frame or page to convert whose size the header states. */
export function fitAll(given: Omit<Extent, 'fittings'>): Fitting[] {
  const { image, options, keepsAllFrames } = given;
  const isSvg = image.type === 'svg';
  const box = isSvg ? vectorBox(options) : options;
  const round = roundingOf(options, isSvg && !cutsFirst(options));
  const fit = (size: Size, at: number) => fitInto(shownArea(size, given, at), box, round);
  const fittings = given.turnedSizes.map(fit);
  const frames = keepsAllFrames ? (image.animation?.delaysMs.length ?? 1) : 1;
  return frames === 1 ? fittings : fittings.flatMap((fitting) => Array<Fitting>(frames).fill(fitting));
}

/** Returns the largest size in pixels of each frame or page to convert, from the resize on. */
export function sizesToMake({ image, options, fittings }: Extent): Size[] {
  if (image.type !== 'svg')
    return fittings.map(({ resized, result }) => ({
      width: Math.max(resized.width, result.width),
      height: Math.max(resized.height, result.height),
    }));
  // librsvg renders only the pixels of the result, and none for a PDF.
  return staysVector(options) ? [] : fittings.map(({ result }) => result);
}

/** Returns whether a side of a result, or of what it is cut from, is too long for its format. */
export function exceedsFormat(extent: Extent): boolean {
  const { maxDimension = Number.POSITIVE_INFINITY } = OUTPUTS[extent.options.format];
  return sizesToMake(extent).some(({ width, height }) => Math.max(width, height) > maxDimension);
}

/** Returns whether options set the size of a result. */
export const setsSize = ({ width, height, scale }: ConvertOptions): boolean =>
  (width ?? height ?? scale) !== undefined;

/** Returns whether the result has colours between those of the image. */
export const addsShades = (options: ConvertOptions): boolean => !honours('sameShades', options);

/** Flags of an ImageMagick geometry with the same meaning. */
const FIT_FLAGS: Readonly<Record<Fit, string>> = { inside: '', cover: '^', contain: '', fill: '!' };

/** Formats the box as an ImageMagick geometry, for images whose size is not known. */
export function boxGeometry({ width, height, scale, fit = 'inside', enlarge }: Box): string {
  if (scale) return `${enlarge ? scale : Math.min(scale, 100)}%`;
  return `${width ?? ''}x${height ?? ''}${FIT_FLAGS[fit]}${enlarge ? '' : '>'}`;
}
