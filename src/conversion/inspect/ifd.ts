import type { Orientation } from '../plan/types.ts';
import type { WindowReader } from './window-reader.ts';

/** The directories that TIFF and EXIF are made of (TIFF 6.0, section 2). */

/** More tags than this are overlooked: no honest file comes near. */
const MAX_TAGS = 200;

export interface Tag {
  /** The first number, when it stands in the directory itself; else where the numbers are. */
  readonly value: number;
  /** How many numbers, or bytes, there are. */
  readonly count: number;
}

export interface ReadNumber {
  (bytes: WindowReader, offset: number, length: number): Promise<number | undefined>;
  /** The same of bytes that are there already. */
  in(buffer: Buffer, offset: number, length: number): number;
}

/** Reads unsigned numbers in the order of bytes that a TIFF is in. */
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

/** Bytes of one number, by the type of its tag: BYTE, SHORT, LONG, and BigTIFF's LONG8. */
const NUMBER_BYTES: Readonly<Record<number, 1 | 2 | 4 | 8>> = { 1: 1, 3: 2, 4: 4, 16: 8 };

/** How many bytes things take; BigTIFF only differs in that (its specification is Adobe's Technote 3, 2007). */
export interface IfdLayout {
  /** How many tags a directory has. */
  readonly count: 2 | 8;
  readonly entry: 12 | 20;
  /** A place in the file, and how many values a tag has. */
  readonly offset: 4 | 8;
}
export const CLASSIC: IfdLayout = { count: 2, entry: 12, offset: 4 };
export const BIG: IfdLayout = { count: 8, entry: 20, offset: 8 };

/** The tags of the directory at `from`, by their numbers. */
export async function readIfd(
  bytes: WindowReader,
  read: ReadNumber,
  from: number,
  layout = CLASSIC,
): Promise<Map<number, Tag>> {
  const start = from + layout.count;
  const entries = Math.min((await read(bytes, from, layout.count)) ?? 0, MAX_TAGS);
  // All of it at once: a directory is a few hundred bytes, and there may be thousands.
  const directory = await bytes.read(start, entries * layout.entry);
  const tags = new Map<number, Tag>();
  for (let at = 0; at + layout.entry <= directory.length; at += layout.entry) {
    const field = (from: number, length: number): number => read.in(directory, at + from, length);
    const count = field(4, layout.offset);
    const width = widthOf(field(2, 2), count, layout);
    tags.set(field(0, 2), { value: field(4 + layout.offset, width), count });
  }
  return tags;
}

/** Of what stands in the directory itself: the first number, if all of them have room there, or where they are. */
function widthOf(type: number, count: number, { offset }: IfdLayout): number {
  const width = NUMBER_BYTES[type] ?? offset;
  return width * count <= offset ? width : offset;
}

const ORIENTATION = 0x0112;

/** The orientation in the EXIF that starts at `start`: a TIFF directory without a picture (EXIF 2.32, 4.5). */
export async function readOrientation(
  bytes: WindowReader,
  start: number,
): Promise<{ orientation?: Orientation }> {
  const read = createEndianReader((await bytes.read(start, 1))[0] === 0x4d);
  const directory = start + ((await read(bytes, start + 4, 4)) ?? 0);
  const value = (await readIfd(bytes, read, directory)).get(ORIENTATION)?.value;
  return isOrientation(value) ? { orientation: value } : {};
}

/** Whether a tag's value is an orientation: the specification has 1 to 8, and files have anything. */
export function isOrientation(value: number | undefined): value is Orientation {
  return value !== undefined && Number.isInteger(value) && value >= 1 && value <= 8;
}

/** Some writers put JPEG's marker in front of EXIF in other formats, too. */
export async function skipExifMarker(bytes: WindowReader, start: number): Promise<number> {
  const head = await bytes.read(start, 6);
  return head.toString('latin1') === 'Exif\0\0' ? start + 6 : start;
}
