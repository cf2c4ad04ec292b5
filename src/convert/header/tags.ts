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
    if (length === 8) return Number(bigEndian ? raw.readBigUInt64BE() : raw.readBigUInt64LE());
    return bigEndian ? raw.readUIntBE(0, length) : raw.readUIntLE(0, length);
  };
}

const SHORT = 3;
const LONG = 4;

/** How many bytes things take; BigTIFF only differs in that (its specification is Adobe's Technote 3, 2007). */
export interface Layout {
  /** How many tags a directory has. */
  readonly count: 2 | 8;
  readonly entry: 12 | 20;
  /** A place in the file, and how many values a tag has. */
  readonly offset: 4 | 8;
}
export const CLASSIC: Layout = { count: 2, entry: 12, offset: 4 };
export const BIG: Layout = { count: 8, entry: 20, offset: 8 };

/** The tags of the directory at `from`, by their numbers. */
export async function readTags(
  bytes: Bytes,
  read: ReadNumber,
  from: number,
  layout = CLASSIC,
): Promise<Map<number, Tag>> {
  const start = from + layout.count;
  const entries = Math.min((await read(bytes, from, layout.count)) ?? 0, MOST_TAGS);
  const tags = new Map<number, Tag>();
  for (let at = start; at < start + entries * layout.entry; at += layout.entry) {
    const tag = await read(bytes, at, 2);
    const type = await read(bytes, at + 2, 2);
    const count = await read(bytes, at + 4, layout.offset);
    const value = await read(bytes, at + 4 + layout.offset, widthOf(type, count ?? 0, layout));
    if (tag === undefined || count === undefined || value === undefined) break;
    tags.set(tag, { value, count });
  }
  return tags;
}

/** Of what stands in the directory itself: the first number, if all of them have room there, or where they are. */
function widthOf(type: number | undefined, count: number, { offset }: Layout): number {
  if (type === SHORT && count * 2 <= offset) return 2;
  return type === LONG && count * 4 <= offset ? 4 : offset;
}
