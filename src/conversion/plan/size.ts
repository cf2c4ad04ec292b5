/** @module Sizes of an image at the stages of a conversion. Pure. */
import type { InputType } from '../../formats.ts';
import { type Fitting, fitInto } from './fit.ts';
import type { ImageInfo, Size } from './image-info.ts';
import { keepsAllFrames, selectedPages } from './selection.ts';
import type { ConvertOptions, PlanContext } from './types.ts';

/** Size in pixels at which an SVG is rendered for an icon: that of the icon's largest image. */
const ICON_SIDE = 256;

/** Returns the options with the box that an SVG is rendered into. It can always be enlarged. */
export function drawingBox(options: ConvertOptions): ConvertOptions {
  const { format, width, height } = options;
  const side = format === 'ico' && !width && !height ? ICON_SIDE : undefined;
  return { ...options, width: width ?? side, height: height ?? side, enlarge: true };
}

/**
 * Returns the size in pixels of the largest image in memory before it is resized: the stored image, or the rendered
 * SVG.
 *
 * @returns 0 by 0 if the size is not known, or if an SVG is not rasterized
 */
export function peakRasterSize(image: ImageInfo, options: ConvertOptions): Size {
  const { type, width = 0, height = 0 } = image;
  if (type !== 'svg' || width === 0 || height === 0) return { width, height };
  if (options.format === 'pdf') return { width: 0, height: 0 };
  const box = drawingBox(options);
  if (options.fit === 'cover' || options.fit === 'fill') return fitInto({ width, height }, box).result;
  // The drawing can be enlarged to fit the box.
  const scale = Math.min(
    box.width ? box.width / width : Number.POSITIVE_INFINITY,
    box.height ? box.height / height : Number.POSITIVE_INFINITY,
  );
  const drawn = (side: number): number =>
    Math.ceil((Number.isFinite(scale) ? side * scale : side) - ROUNDING_ERROR);
  return { width: drawn(width), height: drawn(height) };
}

/** Maximum rounding error in pixels of a side that is a whole number. */
const ROUNDING_ERROR = 1e-6;

/**
 * Returns the sides to pass to librsvg, which fits an image inside a box and rounds up. Given both sides of the box, it
 * can render one pixel too many. So it gets the side that limits the scale, and the other one only if it is a whole
 * number.
 *
 * @param size size of the image
 * @param box sides that are not given are infinite
 */
export function drawnSides(size: Size, box: Size): Partial<Size> {
  if (box.width / size.width <= box.height / size.height) {
    const height = wholeNumber((size.height * box.width) / size.width);
    return { width: box.width, ...(height && { height }) };
  }
  const width = wholeNumber((size.width * box.height) / size.height);
  return { ...(width && { width }), height: box.height };
}

function wholeNumber(side: number): number | undefined {
  const whole = Math.round(side);
  return Math.abs(side - whole) < ROUNDING_ERROR ? whole : undefined;
}

/** Fits each selected frame or page whose size the header states. */
export function fittings(job: Pick<PlanContext, 'image' | 'options'>): Fitting[] {
  const box = job.image.type === 'svg' ? drawingBox(job.options) : job.options;
  return orientedSizes(job).map((size) => fitInto(size, box));
}

/** Returns the largest size in pixels of each selected frame or page, from the resize on. */
export function sizesToMake(job: Pick<PlanContext, 'image' | 'options'>): Size[] {
  const { image, options } = job;
  if (image.type !== 'svg')
    return fittings(job).map(({ resized, result }) => ({
      width: Math.max(resized.width, result.width),
      height: Math.max(resized.height, result.height),
    }));
  // librsvg renders only the pixels of the result, and none for a PDF.
  return options.format === 'pdf' ? [] : fittings(job).map(({ result }) => result);
}

/** Returns the sizes of the selected frames or pages after they are rotated upright. */
function orientedSizes(job: Pick<PlanContext, 'image' | 'options'>): Size[] {
  const { image } = job;
  const pages = selectedPages(job);
  if (pages.length > 0) return pages.flatMap(orientedSize);
  const frames = keepsAllFrames(job) ? (image.animation?.delaysMs.length ?? 1) : 1;
  // The frames of an animation are not rotated.
  const [size] = orientedSize(keepsAllFrames(job) ? { ...image, orientation: 1 } : image);
  return size ? Array.from({ length: frames }, () => size) : [];
}

/** Types whose header reliably states the size of the decoded image. */
const TRUSTED_HEADERS: readonly InputType[] = ['jpg', 'png', 'webp', 'bmp'];

/** Fits the image if its size is reliably known, and all frames or pages to resize have the same size. */
export function trustedFitting(job: PlanContext): Fitting | undefined {
  const { type, decoded } = job.image;
  const isTrusted = decoded || selectedPages(job).length === 1 || TRUSTED_HEADERS.includes(type);
  return isTrusted ? fittings(job)[0] : undefined;
}

/** @returns an empty list when the size is not known */
function orientedSize({
  width,
  height,
  orientation = 1,
}: Pick<ImageInfo, 'width' | 'height' | 'orientation'>): Size[] {
  if (!width || !height) return [];
  return [orientation < 5 ? { width, height } : { width: height, height: width }];
}
