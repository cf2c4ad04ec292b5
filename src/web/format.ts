/** @module Formats sizes and file types for the page. */
import { INPUTS } from '../formats.ts';

const UNITS = ['B', 'KB', 'MB', 'GB'];

/** Formats a number of bytes with three significant digits, in units of 1024. */
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

/** Formats the change of the file size in whole per cent. */
export function formatChange(before: number, after: number): string {
  const percent = Math.round((1 - after / before) * 100);
  if (percent === 0) return 'same size';
  // A result is never empty, so do not round up to 100%.
  return percent > 0 ? `${Math.min(percent, 99)}% saved` : `${-percent}% larger`;
}

/** Returns a label for the type of a file, from its extension or media type. The server detects the type by content. */
export function typeLabel({ name, type }: File): string {
  const extension = /\.(\w{1,5})$/.exec(name)?.[1]?.toLowerCase();
  const token = extension ?? type.split('/')[1] ?? '';
  const known = Object.values(INPUTS).find(({ names }) => names.includes(token));
  return known?.label ?? (token === 'tif' ? INPUTS.tiff.label : token.toUpperCase() || 'File');
}
