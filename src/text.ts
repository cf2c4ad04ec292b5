/** @module Truncates text, and sanitizes it for messages. */

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
