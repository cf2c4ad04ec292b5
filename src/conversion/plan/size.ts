import type { ConvertOptions, ImageInfo } from './types.ts';

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** An icon of a drawing gets its largest picture drawn, not enlarged, in pixels. */
const ICON_SIDE = 256;

/** What a drawing is fitted into. */
export function drawingBox({
  format,
  width,
  height,
}: ConvertOptions): Pick<ConvertOptions, 'width' | 'height'> {
  return format === 'ico' && !width && !height ? { width: ICON_SIDE, height: ICON_SIDE } : { width, height };
}

/**
 * The largest picture that a conversion has to hold in memory, in pixels: what is stored, or of an
 * SVG what is drawn; 0 by 0 when it is not known, or when nothing is drawn at all.
 */
export function peakRasterSize(image: ImageInfo, options: ConvertOptions): Size {
  const { type, width = 0, height = 0 } = image;
  if (type !== 'svg' || width === 0 || height === 0) return { width, height };
  if (options.format === 'pdf') return { width: 0, height: 0 };
  // Fitted inside the box, whether that makes it larger or smaller.
  const box = drawingBox(options);
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
