/**
 * @module Where `cover` crops an image, and where `contain` puts it, and geometry arguments of
 * ImageMagick. The rounding is that of sharp: CalculateCrop and CalculateEmbedPosition (sharp 0.35,
 * src/common.cc).
 */
import type { Size } from '../../images/image-info.ts';
import { type Fitting, roundUp } from '../../tables/fitting.ts';
import type { Point, Position } from '../../tables/options.ts';
import type { ConversionJob, FocalPoint } from './types.ts';

/** Distance in pixels from the top left corner. */
export interface Offset {
  readonly x: number;
  readonly y: number;
}

/** Returns whether a position is a point in percent. */
export const isPoint = (position: Position = 'center'): position is Point => position.endsWith('%');

/** Returns the point that `cover` keeps, and at which `contain` puts the image. */
export const keptPoint = ({ options, measured }: Pick<ConversionJob, 'options' | 'measured'>): FocalPoint =>
  measured.point ?? pointOf(options.position);

/** Returns the point of a position. That of `attention` is the centre, unless one is measured. */
export function pointOf(position: Position = 'center'): FocalPoint {
  if (isPoint(position)) {
    const [x = 0, y = 0] = position.split(',').map((percent) => Number.parseFloat(percent) / 100);
    return { x, y };
  }
  const share = (start: string, end: string): number =>
    position.includes(start) ? 0 : position.includes(end) ? 1 : 0.5;
  return { x: share('left', 'right'), y: share('top', 'bottom') };
}

/**
 * Returns the corner of the result in the resized image, for `cover`: the point is in the centre of
 * the result, or as near as the edges permit. Rounds up.
 */
export function cropOffset({ resized, result }: Fitting, { x, y }: FocalPoint): Offset {
  const offset = (from: number, to: number, share: number): number =>
    Math.min(from - to, Math.max(0, roundUp(from * share - to / 2)));
  return { x: offset(resized.width, result.width, x), y: offset(resized.height, result.height, y) };
}

/**
 * Returns the corner of the resized image in the result, for `contain`. The point of the image is
 * at the same point of the result, like `object-position` of CSS. Rounds down.
 */
export function padOffset({ resized, result }: Fitting, { x, y }: FocalPoint): Offset {
  return {
    x: Math.floor((result.width - resized.width) * x),
    y: Math.floor((result.height - resized.height) * y),
  };
}

/**
 * Returns the nearest edges for a position, and the distance of `offset` from them: the result has
 * its size even if that of the image is another by one pixel. A corner, an edge or the centre does
 * not depend on the size.
 */
export function edgeOffset({ resized, result }: Fitting, { x, y }: FocalPoint, offset: Offset) {
  const [across, down] = [
    edgeOf(x, offset.x, Math.abs(resized.width - result.width)),
    edgeOf(y, offset.y, Math.abs(resized.height - result.height)),
  ];
  const name = `${['North', '', 'South'][down.edge * 2]}${['West', '', 'East'][across.edge * 2]}`;
  return { gravity: name || 'Center', x: across.distance, y: down.distance };
}

/** Returns the nearest edge of a side as a share of it, and the distance from it. */
function edgeOf(share: number, offset: number, cut: number): { edge: number; distance: number } {
  if (Number.isInteger(share * 2)) return { edge: share, distance: 0 };
  return offset * 2 <= cut ? { edge: 0, distance: offset } : { edge: 1, distance: cut - offset };
}

/** Formats a geometry argument of ImageMagick. */
export function formatGeometry(size: Size, offset?: Offset): string {
  return `${size.width}x${size.height}${offset ? formatOffset(offset) : ''}`;
}

/** Formats an offset as `+1-2`. */
export function formatOffset({ x, y }: Offset): string {
  const signed = (count: number): string => (count < 0 ? `${count}` : `+${Math.abs(count)}`);
  return signed(x) + signed(y);
}

/** Returns arguments that crop the image, to its top left corner by default. */
export function crop(size: Size, offset: Offset = { x: 0, y: 0 }): string[] {
  return ['-crop', formatGeometry(size, offset), '+repage'];
}
