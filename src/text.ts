/** @module Truncates, sanitizes, quotes and formats text. Runs in Node.js and in browsers. */

/**
 * Returns the first `units` UTF-16 code units of a text. A surrogate pair is never split: if only its first half fits,
 * that half is dropped, too.
 */
export function truncate(text: string, units: number): string {
  const cut = text.slice(0, units);
  const splitsPair =
    text.length > units && /[\ud800-\udbff]$/.test(cut) && /^[\udc00-\udfff]/.test(text[units] ?? '');
  return splitsPair ? cut.slice(0, -1) : cut;
}

/**
 * Makes a client's text safe to repeat in a message: replaces control characters and truncates.
 *
 * @param maxUnits maximum length of the result in UTF-16 code units, without the ellipsis
 */
export function sanitizeForDisplay(text: string, maxUnits = 40): string {
  const clean = text.toWellFormed().replace(/\p{C}/gu, '\uFFFD');
  return clean.length > maxUnits ? `${truncate(clean, maxUnits)}…` : clean;
}

/** Quotes a word for a POSIX shell. */
export function shellQuote(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}

/** Words that need no quotes in a POSIX shell. */
const UNQUOTED = /^[\w@%+=:,./-]+$/;

/** Formats words as a command line for a POSIX shell, with quotes where they are needed. */
export function shellWords(words: readonly string[]): string {
  return words.map((word) => (UNQUOTED.test(word) ? word : shellQuote(word))).join(' ');
}

/** Formats a count with its noun in the singular or plural. */
export const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

const BYTE_UNITS = ['B', 'kB', 'MB', 'GB', 'TB'];

/** Formats a number of bytes with two or three significant digits, in units of 1000. */
export function formatBytes(bytes: number): string {
  const power = Math.min(BYTE_UNITS.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  const value = bytes / 1000 ** power;
  return `${value.toFixed(power > 0 && value < 9.95 ? 1 : 0)} ${BYTE_UNITS[power]}`;
}
