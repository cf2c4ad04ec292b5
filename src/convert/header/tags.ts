import type { Bytes } from './bytes.ts';

/** The directories that TIFF and EXIF are made of (TIFF 6.0, section 2). */

/** More tags than this are overlooked: no honest file comes near. */
const MOST_TAGS = 200;

export interface Tag {
  /** The first number, when it stands in the directory itself; else where the numbers are. */
  readonly value: number;
  /** How many numbers, or bytes, there are. */
  readonly count: number;
}

export type ReadNumber = (bytes: Bytes, offset: number, length: number) => Promise<number | undefined>;

/** Reads unsigned numbers in the order of bytes that a TIFF is in. */
export function numberReader(bigEndian: boolean): ReadNumber {
  return async (bytes, offset, length) => {
    const raw = await bytes.at(offset, length);
    if (raw.length < length) return undefined;
    return bigEndian ? raw.readUIntBE(0, length) : raw.readUIntLE(0, length);
  };
}

const SHORT = 3;

/** The tags of the directory at `from`, by their numbers. */
export async function readTags(bytes: Bytes, read: ReadNumber, from: number): Promise<Map<number, Tag>> {
  const entries = Math.min((await read(bytes, from, 2)) ?? 0, MOST_TAGS);
  const tags = new Map<number, Tag>();
  for (let at = from + 2; at < from + 2 + entries * 12; at += 12) {
    const tag = await read(bytes, at, 2);
    const type = await read(bytes, at + 2, 2);
    const count = await read(bytes, at + 4, 4);
    const value = await read(bytes, at + 8, type === SHORT && (count ?? 0) <= 2 ? 2 : 4);
    if (tag === undefined || count === undefined || value === undefined) break;
    tags.set(tag, { value, count });
  }
  return tags;
}
