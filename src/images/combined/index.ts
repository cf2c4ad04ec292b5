/** @module Combines files that the tools have written to one, without decoding them, by format. */
import type { CombineFiles } from './combiner.ts';
import { combineGif } from './gif.ts';
import { combineTiff } from './tiff.ts';
import { combineWebp } from './webp.ts';

/** The formats whose files are combined in this process. */
export const COMBINERS = {
  gif: combineGif,
  webp: combineWebp,
  tiff: combineTiff,
} as const satisfies Readonly<Record<string, CombineFiles>>;
