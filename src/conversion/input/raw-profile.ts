/** @module Metadata as hexadecimal digits in the text chunks of a PNG, as ImageMagick reads and writes it. */

/**
 * Encodes the name of a profile, its length, and its bytes. ImageMagick writes lines of 72 digits, but also reads a single line,
 * which takes less time to encode.
 */
export function encodeRawProfile(name: string, profile: Buffer): string {
  return `\n${name}\n${String(profile.length).padStart(8)}\n${profile.toString('hex')}\n`;
}

/** Decodes the text of a raw profile, up to the first character that is not a digit. */
export function decodeRawProfile(text: Buffer): Buffer {
  const [, , ...digits] = text.toString('latin1').trim().split(/\s+/);
  return Buffer.from(digits.join(''), 'hex');
}
