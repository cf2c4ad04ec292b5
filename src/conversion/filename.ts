import { truncate } from '../text.ts';

/** What a converted file is called: the name that it came with, made harmless, and the new extension. */

/**
 * The longest file name that is looked at, in UTF-16 code units. Normalization sorts combining marks, which takes time
 * that grows with the square of their number; file systems allow 255 units or bytes.
 */
export const MAX_NAME_UNITS = 1024;
const MAX_BYTES = 200;
const FALLBACK = 'image';

/** Control characters, and those that turn the direction of writing to disguise an extension. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const UNSAFE_CHARACTERS = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** The part of a path behind its last separator (of any system), cut to {@link MAX_NAME_UNITS}. */
export function lastComponentOf(path: string): string {
  const start = Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1;
  return truncate(path.slice(start), MAX_NAME_UNITS);
}

/**
 * The base name: no folders (of any system), no extension, no control characters,
 * composed (NFC), and at most 200 bytes of UTF-8.
 */
export function baseNameOf(clientName: string | undefined): string {
  const last = lastComponentOf(clientName ?? '');
  const clean = last.toWellFormed().replace(UNSAFE_CHARACTERS, '').normalize('NFC');
  // The extension goes first: a name of blanks in front of it is no name.
  const base = clean.replace(/(?<=.)\.[^.]*$/su, '').trim();
  const short = truncateToBytes(base, MAX_BYTES).trim();
  return /^\.*$/.test(short) ? FALLBACK : short;
}

/**
 * Makes the function that hands out names, no two of them alike: the second of one name gets ` (2)`. Names that
 * differ only in case count as one, since they are one file on many systems.
 */
export function createUniqueNamer(extension: string): (base: string) => string {
  const taken = new Set<string>();
  return (base) => {
    for (let count = 1; ; count += 1) {
      const name = `${count === 1 ? base : `${base} (${count})`}.${extension}`;
      const key = name.toLowerCase().normalize('NFC');
      if (taken.has(key)) continue;
      taken.add(key);
      return name;
    }
  };
}

/** Cut between characters as readers see them, never inside one. */
function truncateToBytes(text: string, bytes: number): string {
  if (Buffer.byteLength(text) <= bytes) return text;
  let kept = '';
  let size = 0;
  for (const { segment } of new Intl.Segmenter().segment(text.slice(0, bytes))) {
    size += Buffer.byteLength(segment);
    if (size > bytes) break;
    kept += segment;
  }
  return kept;
}
