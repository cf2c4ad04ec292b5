/**
 * @module The short paths of a plan, which leave out stages of ImageMagick, and the effects of
 * options that each honours. Any other option that is set sends the job the long way, so that no
 * path can ignore an option that was added later. Pure.
 */
import { type Effect, isOptionSet, type OptionName, optionRow } from '../../tables/options.ts';
import type { ConvertOptions } from './types.ts';

/** The effects of what is no row of the table of options. */
const OTHERS: Readonly<Record<Exclude<keyof ConvertOptions, OptionName>, Effect>> = {
  format: 'encoding',
  accepted: 'encoding',
  isPart: 'encoding',
  smallest: 'encoding',
  candidates: 'encoding',
  watermark: 'filter',
};

const SIZE = ['size', 'fitting'] as const;
/** A rotation and edits after the resize are the same if the image is decoded at a smaller size. */
const EDITS = ['turn', 'filter', 'colours'] as const;

/** The effects of the options that each path honours. */
export const SHORT_PATHS = {
  /** librsvg writes a PDF of vectors. */
  vectors: ['encoding', 'palette', ...SIZE, 'part'],
  /** librsvg writes the PNG that is the result. */
  drawing: ['encoding', ...SIZE, 'part'],
  /** cjxl stores the data of a JPEG, from which its bytes can be restored. */
  transcoding: ['encoding', 'palette', 'fitting'],
  /** A PDF contains the data of a JPEG. */
  embedding: ['encoding', 'palette', 'fitting', 'turn'],
  /** The frames of a GIF are copied. */
  passthrough: ['encoding', 'fitting'],
  /** libjpeg or dwebp decodes at a smaller size. */
  scaledDecoding: ['encoding', 'palette', ...SIZE, ...EDITS],
  /** The image is rotated after it is resized. */
  lateRotation: ['encoding', 'palette', ...SIZE, ...EDITS],
  /** A result is encoded like its image, without colours between those of neighbouring pixels. */
  sameShades: ['encoding', 'palette', 'fitting', 'part', 'turn', 'colours'],
} as const satisfies Readonly<Record<string, readonly Effect[]>>;

/** A name in {@link SHORT_PATHS}. */
export type ShortPath = keyof typeof SHORT_PATHS;

/** Returns the effect of an option; undefined for an unknown one. */
export function effectOf(name: string): Effect | undefined {
  return OTHERS[name as keyof typeof OTHERS] ?? optionRow(name as OptionName)?.effect;
}

/** Returns whether a path honours every option that is set. */
export function honours(path: ShortPath, options: Partial<ConvertOptions>): boolean {
  const honoured: readonly (Effect | undefined)[] = SHORT_PATHS[path];
  return Object.entries(options).every(
    ([name, value]) => honoured.includes(effectOf(name)) || !isOptionSet(name, value),
  );
}
