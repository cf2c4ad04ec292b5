/** @module Metadata as hexadecimal digits in the text chunks of a PNG, as ImageMagick reads and writes it. */

/** Encodes the name of a profile, its length, and its bytes in lines of digits. */
export function encodeRawProfile(name: string, profile: Buffer): string {
  const lines = profile.toString('hex').replace(/.{72}/g, '$&\n');
  return `\n${name}\n${String(profile.length).padStart(8)}\n${lines}\n`;
}

/** Decodes the text of a raw profile, up to the first character that is not a digit. */
export function decodeRawProfile(text: Buffer): Buffer {
  const [, , ...digits] = text.toString('latin1').trim().split(/\s+/);
  return Buffer.from(digits.join(''), 'hex');
}
