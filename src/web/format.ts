import type { Note } from '../conversion/plan/types.ts';
import { INPUTS } from '../formats.ts';

/** Numbers, types and notes as people say them. */

const UNITS = ['B', 'KB', 'MB', 'GB'];

/** Bytes with three digits that count, in units of 1024. */
export function formatSize(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits)} ${UNITS[unit]}`;
}

/** What a conversion did to the size, in whole per cent. */
export function formatChange(before: number, after: number): string {
  const percent = Math.round((1 - after / before) * 100);
  if (percent === 0) return 'same size';
  // Something is always left.
  return percent > 0 ? `${Math.min(percent, 99)}% saved` : `${-percent}% larger`;
}

export const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

/** What the name or the browser says a file is; the server looks at its bytes. */
export function kindOf({ name, type }: File): string {
  const extension = /\.(\w{1,5})$/.exec(name)?.[1]?.toLowerCase();
  const word = extension ?? type.split('/')[1] ?? '';
  const known = Object.values(INPUTS).find(({ names }) => names.includes(word));
  return known?.label ?? (word === 'tif' ? INPUTS.tiff.label : word.toUpperCase() || 'File');
}

/** What a result lacks, as the server says it. */
export const NOTES: Readonly<Record<Note, string>> = {
  'first-frame-only': 'Only the first frame of the animation.',
  'first-page-only': 'Only the first of several pages.',
  'alpha-flattened': 'What was transparent is white now.',
  'colour-converted-to-srgb': 'The colours were turned into sRGB.',
  'truncated-input': 'The file is cut off or damaged: this is what could be read of it.',
  'quality-lowered': 'The quality is lower, so that the file is small enough.',
  'metadata-partly-kept': 'Some of the metadata could not be kept.',
};
