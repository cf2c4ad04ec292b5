/** @module Metadata as hexadecimal digits in the text chunks of a PNG, as ImageMagick reads and writes it. */

import { isTurnOver, waitForTurn } from './containers/turns.ts';

/** Bytes of a profile to encode or decode at once. */
const BLOCK_BYTES = 64 * 1024;

/** An encoded profile: its length in bytes, and its parts. */
export interface RawProfile {
  readonly length: number;
  readonly parts: Iterable<Buffer>;
}

/**
 * Encodes the name of a profile, its length, and its bytes. ImageMagick writes lines of 72 digits, but also reads a single line,
 * which takes less time to encode. The parts are encoded one at a time, because those of 9 MiB take 60 ms.
 */
export function encodeRawProfile(name: string, profile: Buffer): RawProfile {
  const head = Buffer.from(`\n${name}\n${String(profile.length).padStart(8)}\n`, 'latin1');
  const parts = function* (): Generator<Buffer> {
    yield head;
    for (let at = 0; at < profile.length; at += BLOCK_BYTES)
      yield Buffer.from(profile.toString('hex', at, at + BLOCK_BYTES), 'latin1');
    yield Buffer.from('\n');
  };
  return { length: head.length + 2 * profile.length + 1, parts: parts() };
}

/** The name and the length, which are the first two words. */
const HEAD = /^\s*\S+\s+\S+\s+/;
const MAX_HEAD_BYTES = 256;

/** Decodes the text of a raw profile, up to the first character that is not a digit. Yields to the event loop. */
export async function decodeRawProfile(text: Buffer): Promise<Buffer> {
  const [head] = HEAD.exec(text.toString('latin1', 0, MAX_HEAD_BYTES)) ?? [];
  const parts: Buffer[] = [];
  let left = '';
  for (let at = head?.length ?? text.length; at < text.length; at += BLOCK_BYTES) {
    if (isTurnOver()) await waitForTurn();
    const digits = left + text.toString('latin1', at, at + BLOCK_BYTES).replace(/\s+/g, '');
    const bytes = Math.floor(digits.length / 2);
    const part = Buffer.from(digits.slice(0, 2 * bytes), 'hex');
    parts.push(part);
    if (part.length < bytes) break;
    left = digits.slice(2 * bytes);
  }
  return Buffer.concat(parts);
}
