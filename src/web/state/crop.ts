/**
 * @module Areas of a picture in pixels, after its rotation and reflection: what `crop` of the API
 * names.
 */
import { AREA_TEXT } from '../../tables/options.ts';

/** Size of a picture in pixels. */
export interface Size {
  readonly width: number;
  readonly height: number;
}

/** An area of a picture in pixels. */
export interface Area extends Size {
  readonly left: number;
  readonly top: number;
}

/** Returns the number nearest to a value that is in a range. */
export const clamp = (value: number, min: number, max: number): number => Math.min(Math.max(value, min), max);

/**
 * Returns the area that `crop` names, as far as it is inside of the picture; all of it for an empty
 * text.
 */
export function parseCrop(text: string, { width, height }: Size): Area {
  if (!AREA_TEXT.test(text)) return { left: 0, top: 0, width, height };
  const [left = 0, top = 0, wide = 0, high = 0] = text.split(',').map((length, at) => {
    const number = Number.parseFloat(length);
    return length.endsWith('%') ? Math.round((number / 100) * (at % 2 === 0 ? width : height)) : number;
  });
  const [x, y] = [clamp(left, 0, width - 1), clamp(top, 0, height - 1)];
  return { left: x, top: y, width: clamp(wide, 1, width - x), height: clamp(high, 1, height - y) };
}

/** Formats an area as `crop`; empty if it is the whole picture. */
export const formatCrop = ({ left, top, width, height }: Area, size: Size): string =>
  width === size.width && height === size.height ? '' : [left, top, width, height].join();
