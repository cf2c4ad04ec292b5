/**
 * @module The short paths of a plan, which leave out stages of ImageMagick, and the options that each honours. Any other option that
 * is set sends the job the long way, so that no path can ignore an option that was added later. Pure.
 */
import { isOptionSet } from '../../options.ts';
import type { ConvertOptions } from './types.ts';

type OptionName = keyof ConvertOptions;

/** Options that have no effect without a watermark. */
const PLACING = ['watermarkPosition', 'watermarkOpacity', 'watermarkScale', 'watermarkRepeat'] as const;
/** Options of the encoder and of other inputs. They change nothing that a short path leaves out. */
const ENCODING = [
  ...(['format', 'accepted', 'quality', 'lossless', 'maxBytes', 'metadata'] as const),
  ...(['frames', 'pages', 'dpi', 'background'] as const),
  ...PLACING,
];
/** Options that have no effect without a size. */
const FITTING = ['fit', 'position', 'enlarge'] as const;
const SIZE = ['width', 'height', 'scale', ...FITTING] as const;
/** Options of which librsvg draws a part of an image: once `trim` is measured, it has an area. */
const PART = ['crop', 'trim', 'areas'] as const;
/** Options of stages after the resize and of the rotation, which are the same if the image is decoded at a smaller size. */
const EDITS = ['rotate', 'flip', 'blur', 'sharpen', 'greyscale', 'watermark'] as const;

/** The options that each path honours. */
export const SHORT_PATHS = {
  /** librsvg writes a PDF of vectors. */
  vectors: [...ENCODING, ...SIZE, ...PART],
  /** librsvg writes the PNG that is the result. */
  drawing: [...ENCODING, ...SIZE, ...PART],
  /** cjxl stores the data of a JPEG, from which its bytes can be restored. */
  transcoding: [...ENCODING, ...FITTING],
  /** The frames of a GIF are copied. */
  passthrough: [...ENCODING, ...FITTING],
  /** libjpeg or dwebp decodes at a smaller size. */
  scaledDecoding: [...ENCODING, ...SIZE, ...EDITS],
  /** The image is rotated after it is resized. */
  lateRotation: [...ENCODING, ...SIZE, ...EDITS],
} as const satisfies Readonly<Record<string, readonly OptionName[]>>;

/** A name in {@link SHORT_PATHS}. */
export type ShortPath = keyof typeof SHORT_PATHS;

/** Returns whether a path honours every option that is set. */
export function honours(path: ShortPath, options: Partial<ConvertOptions>): boolean {
  const honoured: readonly string[] = SHORT_PATHS[path];
  return Object.entries(options).every(
    ([name, value]) => honoured.includes(name) || !isOptionSet(name, value),
  );
}
