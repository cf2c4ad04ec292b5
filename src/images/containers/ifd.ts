/** @module Reads image file directories (IFDs) of TIFF and EXIF (TIFF 6.0, section 2). */

import type { Orientation } from '../image-info.ts';
import type { WindowReader } from './window-reader.ts';

/** Maximum number of tags to read per directory; real files have fewer. */
export const MAX_TAGS = 200;

/** An entry of a directory. */
export interface Tag {
  /** The first number if the values fit into the entry, or else the offset of the values. */
  readonly value: number;
  /** Number of values. */
  readonly count: number;
  /** Offset of the values in the file. */
  readonly at: number;
  /** Bytes per number, or of the value field for types that are not whole numbers. */
  readonly width: number;
}

/** Reads unsigned numbers of `length` bytes from a file; undefined past the end of the file. */
export interface ReadNumber {
  (bytes: WindowReader, offset: number, length: number): Promise<number | undefined>;
  /** Reads an unsigned number from a buffer. */
  in(buffer: Buffer, offset: number, length: number): number;
}

/** Creates a reader of unsigned numbers in the byte order of a TIFF. */
export function createEndianReader(bigEndian: boolean): ReadNumber {
  const numberIn = (buffer: Buffer, offset: number, length: number): number => {
    if (length === 8)
      return Number(bigEndian ? buffer.readBigUInt64BE(offset) : buffer.readBigUInt64LE(offset));
    return bigEndian ? buffer.readUIntBE(offset, length) : buffer.readUIntLE(offset, length);
  };
  const read = async (bytes: WindowReader, offset: number, length: number): Promise<number | undefined> => {
    const raw = await bytes.read(offset, length);
    return raw.length < length ? undefined : numberIn(raw, 0, length);
  };
  return Object.assign(read, { in: numberIn });
}

/** Bytes per number by tag type: BYTE, SHORT, LONG, and BigTIFF's LONG8. */
const NUMBER_BYTES: Readonly<Record<number, 1 | 2 | 4 | 8>> = { 1: 1, 3: 2, 4: 4, 16: 8 };

/** Field sizes of a directory in bytes; BigTIFF differs only in these (Adobe, TIFF Technote 3, 2007). */
export interface IfdLayout {
  /** Size of the number of tags. */
  readonly count: 2 | 8;
  /** Size of a directory entry. */
  readonly entry: 12 | 20;
  /** Size of an offset in the file, and of the number of values. */
  readonly offset: 4 | 8;
}
/** Layout of TIFF 6.0 and EXIF. */
const CLASSIC: IfdLayout = { count: 2, entry: 12, offset: 4 };
/** Layout of BigTIFF. */
const BIG: IfdLayout = { count: 8, entry: 20, offset: 8 };
/** Layouts of TIFF and BigTIFF by the version in the header, with the position of the offset of the first directory. */
export const TIFF_LAYOUTS: Readonly<Record<number, IfdLayout & { readonly firstAt: number }>> = {
  42: { ...CLASSIC, firstAt: 4 },
  43: { ...BIG, firstAt: 8 },
};

/** Reads the tags of the directory at `from`, by tag number. */
export async function readIfd(
  bytes: WindowReader,
  read: ReadNumber,
  from: number,
  layout = CLASSIC,
): Promise<Map<number, Tag>> {
  const start = from + layout.count;
  const entries = Math.min((await read(bytes, from, layout.count)) ?? 0, MAX_TAGS);
  // Read the directory at once: it has a few hundred bytes, and a file may have thousands of directories.
  const directory = await bytes.read(start, entries * layout.entry);
  const tags = new Map<number, Tag>();
  for (let at = 0; at + layout.entry <= directory.length; at += layout.entry) {
    const field = (from: number, length: number): number => read.in(directory, at + from, length);
    const count = field(4, layout.offset);
    const width = NUMBER_BYTES[field(2, 2)] ?? layout.offset;
    const isInline = width * count <= layout.offset;
    const value = field(4 + layout.offset, isInline ? width : layout.offset);
    tags.set(field(0, 2), { value, count, at: isInline ? start + at + 4 + layout.offset : value, width });
  }
  return tags;
}

/** Reads the first numbers of a tag, at most `max`. */
export async function readNumbers(
  bytes: WindowReader,
  read: ReadNumber,
  { value, count, at, width }: Tag,
  max: number,
): Promise<number[]> {
  if (count === 1) return [value];
  const raw = await bytes.read(at, width * Math.min(count, max));
  return Array.from({ length: Math.floor(raw.length / width) }, (_, index) =>
    read.in(raw, index * width, width),
  );
}

const ORIENTATION = 0x0112;

/** Reads the orientation from the EXIF at `start`: a TIFF directory without an image (EXIF 2.32, 4.5). */
export async function readOrientation(
  bytes: WindowReader,
  start: number,
): Promise<{ orientation?: Orientation }> {
  const read = createEndianReader((await bytes.read(start, 1))[0] === 0x4d);
  const directory = start + ((await read(bytes, start + 4, 4)) ?? 0);
  const value = (await readIfd(bytes, read, directory)).get(ORIENTATION)?.value;
  return isOrientation(value) ? { orientation: value } : {};
}

/** Checks that a tag value is an orientation: the specification allows 1 to 8, files contain other values. */
export function isOrientation(value: number | undefined): value is Orientation {
  return value !== undefined && Number.isInteger(value) && value >= 1 && value <= 8;
}

/** Skips the JPEG marker that some writers put before EXIF in other formats. */
export async function skipExifMarker(bytes: WindowReader, start: number): Promise<number> {
  const head = await bytes.read(start, 6);
  return head.toString('latin1') === 'Exif\0\0' ? start + 6 : start;
}
