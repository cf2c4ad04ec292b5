/** @module Areas of a picture in pixels, after rotation and reflection, as `crop` names them. */
import { parseArea, roundArea, type Size } from '../../tables/fitting.ts';
import { AREA_TEXT } from '../../tables/options.ts';

/** An area of a picture in pixels. */
export interface Area extends Size {
  readonly left: number;
  readonly top: number;
}

/** Returns the number nearest to a value that is in a range. */
export const clamp = (value: number, min: number, max: number): number => Math.min(Math.max(value, min), max);

/** Returns the area that `crop` names inside of the picture; all of it for an empty text. */
export function parseCrop(text: string, size: Size): Area {
  if (!AREA_TEXT.test(text)) return { left: 0, top: 0, width: size.width, height: size.height };
  const { x: left, y: top, width: wide, height: high } = roundArea(parseArea(text, size), size);
  return { left, top, width: Math.min(wide, size.width - left), height: Math.min(high, size.height - top) };
}

/** Formats an area as `crop`; empty if it is the whole picture. */
export const formatCrop = ({ left, top, width, height }: Area, size: Size): string =>
  width === size.width && height === size.height ? '' : [left, top, width, height].join();
