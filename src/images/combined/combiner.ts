/** @module What the combiners of formats share. */
import type { Piece } from '../containers/pieces.ts';

/** Times of an animation that is made of images. */
export interface FrameTiming {
  /** Time of each frame, in ms. */
  readonly delayMs: number;
  /** How often the animation plays; 0 means forever. */
  readonly loopCount: number;
}

/**
 * Returns the content of the file that has all images of some files, in order.
 *
 * @param paths files of one image or, for pages, several
 * @throws {CombineError} if a file is not as the tools write it, or if the format cannot hold all
 */
export type CombineFiles = (paths: readonly string[], timing: FrameTiming) => Promise<readonly Piece[]>;

/** Files cannot be combined. The message states the cause, for the log. */
export class CombineError extends Error {
  override readonly name = 'CombineError';
  /** Whether the combined file would exceed the maximum size of its format. */
  readonly isTooLarge: boolean;
  constructor(message: string, isTooLarge = false) {
    super(message);
    this.isTooLarge = isTooLarge;
  }
}
