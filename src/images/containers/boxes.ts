/** @module Boxes of HEIF (ISO/IEC 14496-12, section 4.2), which JPEG 2000 and JPEG XL also consist of. */

import { type ByteReader, type Part, type Walk, walkParts } from './parts.ts';

/** Maximum number of boxes to read from a file or from another box. */
const MAX_BOXES = 1000;
/** Length of the length and the name of a box, and of those with a length of 64 bits. */
const HEAD_BYTES = 8;
const LARGE_HEAD_BYTES = 16;

/** Yields the boxes of a file, or of a range in it. A box that extends to the end of the file has an infinite length. */
export function boxes(bytes: ByteReader, range: Omit<Walk, 'max'> = { from: 0 }): AsyncGenerator<Part> {
  return walkParts(bytes, { ...range, max: MAX_BOXES }, LARGE_HEAD_BYTES, (head, start) => {
    if (head.length < HEAD_BYTES) return undefined;
    const stated = head.readUInt32BE(0);
    const isLarge = stated === 1 && head.length === LARGE_HEAD_BYTES;
    const size = isLarge ? Number(head.readBigUInt64BE(8)) : stated || Number.POSITIVE_INFINITY;
    const offset = start + (isLarge ? LARGE_HEAD_BYTES : HEAD_BYTES);
    const [length, end] = [start + size - offset, start + size];
    return length < 0 ? undefined : { name: head.toString('latin1', 4, 8), start, offset, length, end };
  });
}

/** A box in memory. */
export interface Box {
  /** Four-character type. */
  readonly name: string;
  /** The payload, including version and flags in a full box. */
  readonly body: Buffer;
}

/**
 * Parses boxes that follow one another, up to the first one with a length of 64 bits.
 *
 * @param isLastOpen whether the last box can extend to the end of the data, which a length of 0 states. Otherwise, it is left out.
 */
export function parseBoxes(data: Buffer | undefined, isLastOpen = false): Box[] {
  const found: Box[] = [];
  for (let at = 0; data && at + HEAD_BYTES <= data.length && found.length < MAX_BOXES; ) {
    const size = data.readUInt32BE(at) || (isLastOpen ? data.length - at : 0);
    if (size < HEAD_BYTES) break;
    const body = data.subarray(at + HEAD_BYTES, at + size);
    found.push({ name: data.toString('latin1', at + 4, at + HEAD_BYTES), body });
    at += size;
  }
  return found;
}

/** Finds the payload of the first box with this name; with several names, each nested in the previous one. */
export function findBox(among: readonly Box[], name: string, ...deeper: string[]): Buffer | undefined {
  const body = among.find((box) => box.name === name)?.body;
  const [next, ...rest] = deeper;
  return body && next ? findBox(parseBoxes(body), next, ...rest) : body;
}

/** Returns whether the whole content of a box was read. Its length precedes its name. */
export function isComplete(body: Buffer): boolean {
  return Buffer.from(body.buffer, body.byteOffset - 8, 4).readUInt32BE() === 8 + body.length;
}

/** Overwrites the name of a box, which precedes its content. */
export function renameBox(body: Buffer, name: string): void {
  Buffer.from(body.buffer, body.byteOffset - 4, 4).write(name, 'latin1');
}

/** Encodes a box. */
export function encodeBox(name: string, ...body: readonly Buffer[]): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt32BE(HEAD_BYTES + body.reduce((sum, { length }) => sum + length, 0));
  head.write(name, 4, 'latin1');
  return Buffer.concat([head, ...body]);
}
