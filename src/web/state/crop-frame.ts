/** @module Changes of an area by a frame with handles, inside of the picture. */
import type { Size } from '../../tables/fitting.ts';
import { type Area, clamp } from './crop.ts';

/** Which sides a handle moves: -1 the left or upper one, 1 the right or lower one, 0 none. */
export interface Handle {
  readonly across: -1 | 0 | 1;
  readonly down: -1 | 0 | 1;
}

/** Moves an area inside of the picture. */
export const moveArea = (area: Area, x: number, y: number, size: Size): Area => ({
  ...area,
  left: clamp(area.left + x, 0, size.width - area.width),
  top: clamp(area.top + y, 0, size.height - area.height),
});

/** Moves one side of a range, and returns its start and length. */
function moveSide(start: number, length: number, side: Handle['across'], by: number, max: number) {
  const end = start + length;
  if (side < 0) {
    const moved = clamp(start + by, 0, end - 1);
    return [moved, end - moved] as const;
  }
  return [start, side > 0 ? clamp(length + by, 1, max - start) : length] as const;
}

/** Returns how long a range can become if one side moves, or both around the centre. */
function longest(start: number, length: number, side: Handle['across'], max: number): number {
  if (side < 0) return start + length;
  return side > 0 ? max - start : Math.min(2 * start + length, 2 * (max - start) - length);
}

/** Returns the start of a range after its length has changed. */
function startOf(start: number, before: number, after: number, side: Handle['across'], max: number): number {
  if (side > 0) return start;
  const moved = side < 0 ? start + before - after : Math.round(start + (before - after) / 2);
  return clamp(moved, 0, max - after);
}

/** Moves a handle of an area. The opposite side stays, and a ratio of width to height, if any. */
export function moveHandle(
  area: Area,
  { across, down }: Handle,
  [x, y]: readonly [number, number],
  size: Size,
  ratio?: number,
): Area {
  const [left, width] = moveSide(area.left, area.width, across, x, size.width);
  const [top, height] = moveSide(area.top, area.height, down, y, size.height);
  if (ratio === undefined) return { left, top, width, height };
  // At a corner, the longer way of the pointer decides.
  const isHorizontal = across !== 0 && (down === 0 || Math.abs(x) >= Math.abs(y) * ratio);
  const widest = longest(area.left, area.width, across, size.width);
  const highest = longest(area.top, area.height, down, size.height);
  const wanted = Math.min(isHorizontal ? width : height * ratio, widest, highest * ratio);
  const [wide, high] = [Math.max(1, Math.round(wanted)), Math.max(1, Math.round(wanted / ratio))];
  return {
    left: startOf(area.left, area.width, wide, across, size.width),
    top: startOf(area.top, area.height, high, down, size.height),
    width: wide,
    height: high,
  };
}

/** Returns the largest area with a ratio around the centre of another, inside of it. */
export function fitRatio({ left, top, width, height }: Area, ratio: number): Area {
  const wide = Math.max(1, Math.round(Math.min(width, height * ratio)));
  const high = Math.max(1, Math.min(height, Math.round(wide / ratio)));
  const [x, y] = [left + Math.floor((width - wide) / 2), top + Math.floor((height - high) / 2)];
  return { left: x, top: y, width: wide, height: high };
}
