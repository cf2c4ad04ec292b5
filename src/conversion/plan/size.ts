import type { InputType } from '../../formats.ts';
import { type Fitting, fitInto } from './fit.ts';
import { keepsAllFrames, selectedPages } from './selection.ts';
import type { ConvertOptions, ImageInfo, PlanContext, Size } from './types.ts';

/** An icon of a drawing gets its largest picture drawn, not enlarged, in pixels. */
const ICON_SIDE = 256;

/** What an SVG is fitted into: it is drawn at the size asked for, whether that makes it larger or smaller. */
export function drawingBox(options: ConvertOptions): ConvertOptions {
  const { format, width, height } = options;
  const side = format === 'ico' && !width && !height ? ICON_SIDE : undefined;
  return { ...options, width: width ?? side, height: height ?? side, enlarge: true };
}

/**
 * The largest picture that a conversion has to hold in memory before it is resized, in pixels: what is stored, or of an
 * SVG what is drawn; 0 by 0 when it is not known, or when nothing is drawn at all.
 */
export function peakRasterSize(image: ImageInfo, options: ConvertOptions): Size {
  const { type, width = 0, height = 0 } = image;
  if (type !== 'svg' || width === 0 || height === 0) return { width, height };
  if (options.format === 'pdf') return { width: 0, height: 0 };
  const box = drawingBox(options);
  if (options.fit === 'cover' || options.fit === 'fill') return fitInto({ width, height }, box).result;
  // Fitted inside the box, whether that makes it larger or smaller.
  const scale = Math.min(
    box.width ? box.width / width : Number.POSITIVE_INFINITY,
    box.height ? box.height / height : Number.POSITIVE_INFINITY,
  );
  const drawn = (side: number): number =>
    Math.ceil((Number.isFinite(scale) ? side * scale : side) - ROUNDING_ERROR);
  return { width: drawn(width), height: drawn(height) };
}

/** In pixels: a side that is a whole number but for this much is one but for rounding errors. */
const ROUNDING_ERROR = 1e-6;

/**
 * The sides to give to a tool that fits a picture inside a box and rounds up. Given both sides of the box, librsvg may
 * draw one pixel more than asked for. So it gets the side that the picture reaches first, and the other one only where
 * that is a whole number.
 *
 * @param size of the picture
 * @param box with sides that are infinite where they are not given
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

/** The sizes that each selected frame or page gets on its way, where the header tells how large it is. */
export function fittings(job: Pick<PlanContext, 'image' | 'options'>): Fitting[] {
  const box = job.image.type === 'svg' ? drawingBox(job.options) : job.options;
  return orientedSizes(job).map((size) => fitInto(size, box));
}

/** The largest size in pixels of each selected frame or page from its resizing on. */
export function sizesToMake(job: Pick<PlanContext, 'image' | 'options'>): Size[] {
  const { image, options } = job;
  if (image.type !== 'svg')
    return fittings(job).map(({ resized, result }) => ({
      width: Math.max(resized.width, result.width),
      height: Math.max(resized.height, result.height),
    }));
  // librsvg draws no more than the result has, and to a PDF no pixels.
  return options.format === 'pdf' ? [] : fittings(job).map(({ result }) => result);
}

/** The sizes of the selected frames or pages as they are seen, which is after they are turned by their orientation. */
function orientedSizes(job: Pick<PlanContext, 'image' | 'options'>): Size[] {
  const { image } = job;
  const pages = selectedPages(job);
  if (pages.length > 0) return pages.flatMap(orientedSize);
  const frames = keepsAllFrames(job) ? (image.animation?.delaysMs.length ?? 1) : 1;
  // The frames of an animation are not turned.
  const [size] = orientedSize(keepsAllFrames(job) ? { ...image, orientation: 1 } : image);
  return size ? Array.from({ length: frames }, () => size) : [];
}

/** Those whose header tells the size for sure that they have when they have been read. */
const TRUSTED_HEADERS: readonly InputType[] = ['jpg', 'png', 'webp', 'bmp'];

/** The sizes on the way, where they are known for sure, and all that is to be resized has them. */
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
