/** @module Rotates and flips a picture as it is shown. The API always rotates first, then flips. */
import type { Size } from '../../tables/fitting.ts';
import { type Area, formatCrop, parseCrop } from './crop.ts';
import type { Choices, Options } from './options.ts';

/** Names of the turns, for their buttons. */
export const TURNS = {
  left: 'Rotate left',
  right: 'Rotate right',
  horizontal: 'Flip left to right',
  vertical: 'Flip upside down',
} as const;
export type Turn = keyof typeof TURNS;

/** The values of `flip`. Bit 0 of the index is horizontal, bit 1 vertical. */
const FLIPS: readonly Options['flip'][] = ['', 'horizontal', 'vertical', 'both'];
const QUARTERS: Partial<Record<Turn, number>> = { right: 90, left: 270 };

/** Turns a picture as it is shown, with its crop if the size of the file in pixels is known. */
export function turn(choices: Choices, by: Turn, size: Size | undefined): void {
  const before = choices.all();
  const changed = turnOptions(before, by);
  choices.set(changed);
  if (before.crop === '' || !size) return;
  const old = turnedSize(size, before);
  const area = turnArea(parseCrop(before.crop, old), by, old);
  choices.set({ crop: formatCrop(area, turnedSize(size, choices.all())) });
}

function turnOptions({ rotate, flip }: Options, by: Turn): Partial<Options> {
  const angle = QUARTERS[by];
  if (angle === undefined)
    return { flip: FLIPS[FLIPS.indexOf(flip) ^ FLIPS.indexOf(by as Options['flip'])] ?? '' };
  // Seen in one mirror, a rotation before it goes in the other direction.
  const isMirrored = flip === 'horizontal' || flip === 'vertical';
  return { rotate: String((Number(rotate) + (isMirrored ? 360 - angle : angle)) % 360) };
}

/** Returns where an area is after a turn of a picture of this size. */
function turnArea({ left, top, width, height }: Area, by: Turn, size: Size): Area {
  const [right, bottom] = [size.width - left - width, size.height - top - height];
  const turned: Readonly<Record<Turn, Area>> = {
    left: { left: top, top: right, width: height, height: width },
    right: { left: bottom, top: left, width: height, height: width },
    horizontal: { left: right, top, width, height },
    vertical: { left, top: bottom, width, height },
  };
  return turned[by];
}

/** Returns the CSS transform that shows a picture as these options turn it; empty for none. */
export function toTransform({ rotate, flip }: Options): string {
  if (rotate === '0' && flip === '') return '';
  const [x, y] = [1, 2].map((bit) => (FLIPS.indexOf(flip) & bit ? -1 : 1));
  return `scale(${x}, ${y}) rotate(${rotate}deg)`;
}

/** Returns whether the options exchange the sides of a picture. */
export const isSideways = ({ rotate }: Options): boolean => Number(rotate) % 180 !== 0;

/** Returns the size of a picture after its rotation. */
export const turnedSize = ({ width, height }: Size, options: Options): Size =>
  isSideways(options) ? { width: height, height: width } : { width, height };
