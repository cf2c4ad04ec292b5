/** @module File names of results: the sanitized name of the input, with a new extension. */
import { truncate } from './text.ts';

/**
 * Maximum length of a file name in UTF-16 code units; the rest is ignored. Normalization sorts combining marks, in time
 * that grows with the square of their number. File systems allow 255 units or bytes.
 */
export const MAX_NAME_UNITS = 1024;
/** Maximum length of a base name in bytes of UTF-8. */
const MAX_BYTES = 200;
/** Base name of a file without a usable name. */
const FALLBACK = 'image';

/** Control characters, and bidirectional controls, which can disguise an extension. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: matches control characters to remove them
const UNSAFE_CHARACTERS = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Returns the part of a path after its last separator, `/` or `\`, truncated to {@link MAX_NAME_UNITS}. */
export function lastComponentOf(path: string): string {
  const start = Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1;
  return truncate(path.slice(start), MAX_NAME_UNITS);
}

/**
 * Returns the sanitized base name: without folders, extension and control characters, normalized to NFC, and at most
 * 200 bytes of UTF-8.
 */
export function baseNameOf(clientName: string | undefined): string {
  const last = lastComponentOf(clientName ?? '');
  const clean = last.toWellFormed().replace(UNSAFE_CHARACTERS, '').normalize('NFC');
  // Removes the extension before trimming, so that a name of spaces and an extension becomes empty.
  const base = clean.replace(/(?<=.)\.[^.]*$/su, '').trim();
  const short = truncateToBytes(base, MAX_BYTES).trim();
  return /^\.*$/.test(short) ? FALLBACK : short;
}

/**
 * Creates a function that makes names unique: the second file of the same name gets ` (2)`. Ignores case, because many
 * file systems do.
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

/** Truncates text between grapheme clusters. */
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
