/** @module Options that contradict each other, and those of a part of a combined file. */
import type { Size } from '../../images/image-info.ts';
import { COMBINED_TYPES, combinesFrames, hasBytesLimit, type OutputType } from '../../tables/formats.ts';
import { paperSides } from '../plan/page.ts';
import type { ConvertOptions } from '../plan/types.ts';

/** Value of a format that stands for the best one that the client accepts. */
export const AUTO = 'auto';
/** Value of a format for the one of those that the client accepts whose result is the smallest. */
export const SMALLEST = 'smallest';
/**
 * Returns the options of a part of a combined file: an animation is one picture, of which a TIFF
 * would have all frames as pages, and the pages of a PDF are drawn.
 */
export const toPart = (options: ConvertOptions): ConvertOptions => ({
  ...options,
  frames: options.frames ?? 'first',
  isPart: true,
});

/** Returns the options of a frame of this size. */
export const toFrame = (options: ConvertOptions, size: Size): ConvertOptions => ({
  ...options,
  ...size,
  scale: undefined,
  fit: options.fit === 'inside' ? 'contain' : options.fit,
});

/** Returns the options of a part that is described alone, or a conflict, which names `outputs`. */
export function describePart(
  options: ConvertOptions,
  outputs: readonly OutputType[],
): { readonly options: ConvertOptions } | { readonly conflict: Conflict } {
  const conflict = findCombinedConflict(options, false, outputs);
  if (conflict) return { conflict };
  const { format, width, height } = options;
  if (!combinesFrames(format)) return { options: toPart(options) };
  const expected = 'false, or width and height beside it: frames have the size of the first picture';
  if (!(width && height)) return { conflict: ['combine', 'true', expected] };
  return { options: toFrame(toPart(options), { width, height }) };
}

/** Finds what contradicts `combine`. `areMany`: pages of one file become several images. */
export function findCombinedConflict(
  { format, accepted, smallest, maxBytes, metadata, frames, pages, width, height }: ConvertOptions,
  areMany: boolean,
  outputs: readonly OutputType[],
): Conflict | undefined {
  if (accepted || !COMBINED_TYPES.includes(format)) {
    const formats = COMBINED_TYPES.filter((type) => outputs.includes(type)).join(', ');
    const value = smallest ? SMALLEST : accepted ? AUTO : format;
    return ['output_format', value, `one of ${formats} if combine is true`];
  }
  if (maxBytes) return ['max_bytes', String(maxBytes), 'no value if combine is true'];
  if (!combinesFrames(format)) return undefined;
  if (frames === 'all') return ['frames', frames, 'first, because each image becomes one frame'];
  if (metadata !== 'none') return ['metadata', metadata, 'none, because a frame has no metadata'];
  if (areMany && !(width && height))
    return ['pages', String(pages), 'width and height beside several pages, whose sizes can differ'];
  return undefined;
}

/** Options that contradict each other: the field to change, its value and what was expected. */
export type Conflict = readonly [
  field:
    | ('fit' | 'scale' | 'lossless' | 'max_bytes' | 'output_format' | 'frames' | 'metadata' | 'pages')
    | ('page_margin' | 'page_orientation' | 'combine'),
  value: string,
  expected: string,
];

/** Finds options that contradict each other. The message names the enabled outputs. */
export function findConflict(options: ConvertOptions, outputs: readonly OutputType[]): Conflict | undefined {
  const { fit = 'inside', width, height, scale, maxBytes, lossless, format } = options;
  if (scale && (width || height)) return ['scale', String(scale), 'neither width nor height beside it'];
  if (fit !== 'inside' && !(width && height)) {
    const missing = width ? 'height is' : height ? 'width is' : 'both are';
    return ['fit', fit, `width and height, of which ${missing} missing`];
  }
  const ofPage = findPageConflict(options);
  if (ofPage) return ofPage;
  if (maxBytes === undefined) return undefined;
  if (!hasBytesLimit(format)) {
    const formats = `a format with a quality to lower (${outputs.filter(hasBytesLimit).join(', ')})`;
    return ['max_bytes', String(maxBytes), `${formats}, which ${format} does not have`];
  }
  return lossless ? ['lossless', 'true', 'false if max_bytes is set'] : undefined;
}

function findPageConflict(options: ConvertOptions): Conflict | undefined {
  const { pageSize = 'image', pageMargin = 0, pageOrientation = 'auto' } = options;
  const sides = paperSides(pageSize);
  if (!sides)
    return pageOrientation === 'auto'
      ? undefined
      : ['page_orientation', pageOrientation, 'auto, or a page_size other than image beside it'];
  const shorter = Math.min(...sides);
  const expected = `less than half of the shorter side of the page, which has ${shorter} mm`;
  return pageMargin * 2 < shorter ? undefined : ['page_margin', String(pageMargin), expected];
}
