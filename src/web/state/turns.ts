/** @module Rotates and flips a picture as it is shown, although the API always rotates first and flips then. */
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

/** Turns a picture as it is shown. */
export function turn({ all, set }: Choices, by: Turn): void {
  const { rotate, flip } = all();
  const angle = QUARTERS[by];
  if (angle === undefined) {
    set({ flip: FLIPS[FLIPS.indexOf(flip) ^ FLIPS.indexOf(by as Options['flip'])] ?? '' });
  } else {
    // Seen in one mirror, a rotation before it goes in the other direction.
    const isMirrored = flip === 'horizontal' || flip === 'vertical';
    set({ rotate: String((Number(rotate) + (isMirrored ? 360 - angle : angle)) % 360) });
  }
}

/** Returns the CSS transform that shows a picture as these options turn it; empty for none. */
export function toTransform({ rotate, flip }: Options): string {
  if (rotate === '0' && flip === '') return '';
  const [x, y] = [1, 2].map((bit) => (FLIPS.indexOf(flip) & bit ? -1 : 1));
  return `scale(${x}, ${y}) rotate(${rotate}deg)`;
}

/** Returns whether the options exchange the sides of a picture. */
export const isSideways = ({ rotate }: Options): boolean => Number(rotate) % 180 !== 0;
