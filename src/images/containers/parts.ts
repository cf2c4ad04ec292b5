/**
 * @module Iterates over the parts that files consist of, one after the other: chunks of PNG (W3C
 * PNG, third edition, section 5.3) and WebP (RFC 9649, section 2.3), boxes of HEIF (ISO/IEC
 * 14496-12, section 4.2), JPEG 2000 and JPEG XL, segments of JPEG (ITU-T T.81, section B.1), and
 * blocks of GIF (GIF89a specification, sections 15 to 26).
 */
import { type FileHandle, open } from 'node:fs/promises';
import { type ByteReader, bigEndian, fileReader, OPEN_FLAGS, readRange } from './file.ts';

/** A part of a file, such as a chunk or a box. It can extend beyond the end of a cut file. */
export interface Part {
  readonly name: string;
  /** Offset of its first byte, which is that of its length or name. */
  readonly start: number;
  readonly offset: number;
  readonly length: number;
  readonly end: number;
}

/** Range of the parts, and their maximum number. */
export interface Walk {
  readonly from: number;
  /** Offset at which the last part ends at the latest. Default: the end of the file. */
  readonly to?: number;
  /** Maximum number of parts. Later ones are ignored. */
  readonly max: number;
}

/**
 * Yields the parts of a file, up to the first one without a valid start.
 *
 * @param headBytes maximum length of the start of a part
 * @param partAt parses the start of the part at an offset; returns undefined if it is invalid
 */
async function* walkParts(
  bytes: ByteReader,
  { from, to = Number.POSITIVE_INFINITY, max }: Walk,
  headBytes: number,
  partAt: (head: Buffer, start: number) => Part | undefined,
): AsyncGenerator<Part> {
  for (let start = from, count = 0; count < max && start < to; count += 1) {
    const head = await bytes.read(start, headBytes);
    const part = head.length < HEAD_BYTES ? undefined : partAt(head, start);
    if (!part) return;
    yield part;
    start = part.end;
  }
}

export const MAX_PNG_CHUNKS = 10_000;
/** Maximum number of chunks of a WebP to read: twice the largest MAX_FRAMES. */
const MAX_RIFF_CHUNKS = 20_000;
/** Maximum number of chunks of a tool's PNG: ImageMagick 6 writes 8 KiB each, so 8 GB. */
export const MAX_WRITTEN_CHUNKS = 1_000_000;
/** Bytes of the name and the length of a chunk or a box, and of a box with a length of 64 bits. */
const HEAD_BYTES = 8;
const LARGE_HEAD_BYTES = 16;

/** Yields the chunks of a PNG. */
export function pngChunks(bytes: ByteReader, max = MAX_PNG_CHUNKS): AsyncGenerator<Part> {
  return walkParts(bytes, { from: 8, max }, HEAD_BYTES, (head, start) => {
    const length = head.readUInt32BE(0);
    const end = start + HEAD_BYTES + length + 4; // a checksum follows the content
    return { name: head.toString('latin1', 4, 8), start, offset: start + HEAD_BYTES, length, end };
  });
}

/** Yields the chunks of a WebP. */
export function riffChunks(bytes: ByteReader, max = MAX_RIFF_CHUNKS): AsyncGenerator<Part> {
  return walkParts(bytes, { from: 12, max }, HEAD_BYTES, (head, start) => {
    const length = head.readUInt32LE(4);
    const offset = start + HEAD_BYTES;
    const end = offset + length + (length % 2);
    return { name: head.toString('latin1', 0, 4), start, offset, length, end };
  });
}

/** Yields the contents of parts, one after the other, in blocks. */
export async function* readContents(file: FileHandle, parts: readonly Part[]): AsyncGenerator<Buffer> {
  for (const { offset, length } of parts) yield* readRange(file, offset, offset + length);
}

/** A chunk in a file that is open until the next chunk. */
export interface WrittenChunk extends Part {
  readonly body: () => Promise<Buffer>;
}

/**
 * Yields the complete chunks of a PNG that a tool has written. Rejects links, and does not wait for
 * a pipe. The file can be replaced meanwhile.
 */
export async function* writtenChunks(path: string): AsyncGenerator<WrittenChunk> {
  await using file = await open(path, OPEN_FLAGS);
  const { size } = await file.stat();
  const bytes = fileReader(file);
  for await (const chunk of pngChunks(bytes, MAX_WRITTEN_CHUNKS)) {
    if (chunk.end > size) return;
    yield { ...chunk, body: () => bytes.read(chunk.offset, chunk.length) };
  }
}

/** Maximum number of boxes to read from a file or from another box. */
const MAX_BOXES = 1000;

/** Yields the boxes of a file or a range. One that extends to the end has an infinite length. */
export function boxes(bytes: ByteReader, range: Omit<Walk, 'max'> = { from: 0 }): AsyncGenerator<Part> {
  return walkParts(bytes, { ...range, max: MAX_BOXES }, LARGE_HEAD_BYTES, (head, start) => {
    const stated = head.readUInt32BE(0);
    const isLarge = stated === 1 && head.length === LARGE_HEAD_BYTES;
    const size = isLarge ? Number(head.readBigUInt64BE(8)) : stated || Number.POSITIVE_INFINITY;
    const offset = start + (isLarge ? LARGE_HEAD_BYTES : HEAD_BYTES);
    const [length, end] = [start + size - offset, start + size];
    return length < 0 ? undefined : { name: head.toString('latin1', 4, 8), start, offset, length, end };
  });
}

export interface Box {
  /** Four-character type. */
  readonly name: string;
  /** The payload, including version and flags in a full box. */
  readonly body: Buffer;
}

/**
 * Parses boxes that follow one another, up to the first one with a length of 64 bits.
 *
 * @param isLastOpen whether the last box can extend to the end of the data, which a length of 0
 *   states. Otherwise, it is left out.
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

/** Finds the content of the first box of a name; of several names, each in the previous one. */
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

export function encodeBox(name: string, ...body: readonly Buffer[]): Buffer {
  const length = HEAD_BYTES + body.reduce((sum, part) => sum + part.length, 0);
  return Buffer.concat([bigEndian(length, 4), Buffer.from(name, 'latin1'), ...body]);
}

/** Maximum number of segments to read; real files have a few dozen before the pixels. */
const MAX_SEGMENTS = 10_000;
/** Bytes of the window in which a marker is searched at once. */
const SEARCHED_BYTES = 4096;

/** Markers of the segment that must come first (JFIF 1.02), and of that which the pixels follow. */
export const JFIF_SEGMENT = 0xe0;
export const START_OF_SCAN = 0xda;

export interface Segment extends Omit<Part, 'name'> {
  readonly marker: number;
}

/**
 * Yields the segments up to the pixels, which is the last one. As libjpeg does, it skips fill bytes
 * (section B.1.1.2) and bytes that belong to no segment, and takes one that is shorter than its
 * length field as empty.
 */
export async function* jpegSegments(bytes: ByteReader): AsyncGenerator<Segment> {
  let start = 2;
  for (let count = 0; count < MAX_SEGMENTS; count += 1) {
    const head = await bytes.read(start, 4);
    if (head.length < 4) return;
    if (!isMarkerAt(head, 0)) {
      start += await countSkipped(bytes, start);
      continue;
    }
    const marker = head[1] as number;
    const length = hasNoLength(marker) ? 0 : Math.max(0, head.readUInt16BE(2) - 2);
    const offset = start + (hasNoLength(marker) ? 2 : 4);
    const end = offset + length;
    yield { marker, start, offset, length, end };
    if (marker === START_OF_SCAN) return;
    start = end;
  }
}

/** Checks for a marker: a byte 0xFF, and one that is neither a fill byte nor 0. */
function isMarkerAt(bytes: Buffer, at: number): boolean {
  return bytes[at] === 0xff && bytes[at + 1] !== 0xff && bytes[at + 1] !== 0;
}

/** Counts the bytes before the next marker, or all but the last of a window without a marker. */
async function countSkipped(bytes: ByteReader, start: number): Promise<number> {
  const window = await bytes.read(start, SEARCHED_BYTES);
  const last = window.length - 1;
  for (let at = window.indexOf(0xff); at >= 0 && at < last; at = window.indexOf(0xff, at + 1))
    if (isMarkerAt(window, at)) return at;
  return last;
}

/** Checks for TEM and the restart markers, which have no length field. */
function hasNoLength(marker: number): boolean {
  return marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8);
}

/** Maximum number of frames to read: one more than the largest MAX_FRAMES. */
const MAX_FRAMES = 10_001;
/** Maximum number of blocks to read. `WindowReader` allows about half as many. */
const MAX_BLOCKS = 100_000;
/** Bytes to read at once, so that many small sub-blocks take no longer than a few large ones. */
const READ_BYTES = 16 * 1024;

/** Bytes of the header and the logical screen descriptor, and offsets of its size and its flags. */
export const SCREEN_BYTES = 13;
export const SCREEN_AT = 6;
export const SCREEN_FLAGS_AT = 10;
/** First bytes of an image descriptor and of an extension. */
const IMAGE = 0x2c;
const EXTENSION = 0x21;
/** Length of an image descriptor, and offset of its flags. */
export const DESCRIPTOR_BYTES = 10;
export const FLAGS_AT = 9;
const EXTENSION_BYTES = 3;
/** Second byte of a graphic control extension, and its flag of a transparent colour. */
export const CONTROL = 0xf9;
export const TRANSPARENT = 1;
/** Flag of a colour table, and the bits of its size. */
export const HAS_TABLE = 0x80;
export const TABLE_SIZE = 0x07;
/** Length of a loop extension up to its count, the longest start of a block that is read. */
const GIF_HEAD_BYTES = 19;

export interface GifBlock {
  /** `cut` is the place where the file ends within the start of a block, or without a trailer. */
  readonly name: 'image' | 'extension' | 'cut';
  readonly offset: number;
  /** Its first bytes, at most 19. Stays valid. */
  readonly head: Buffer;
  /** Offset of the next block; undefined if the file ends before it. */
  readonly end: number | undefined;
}

/** Yields the blocks up to the trailer, an invalid block or the end of the file. */
export async function* gifBlocks(bytes: ByteReader): AsyncGenerator<GifBlock> {
  const [flags] = (await bytes.read(0, SCREEN_BYTES)).subarray(SCREEN_FLAGS_AT);
  if (flags === undefined) return;
  let offset: number | undefined = SCREEN_BYTES + colourTableLength(flags);
  for (let count = 0, frames = 0; count < MAX_BLOCKS && frames < MAX_FRAMES; count += 1) {
    const head = Buffer.from(await bytes.read(offset, GIF_HEAD_BYTES));
    const isImage = head[0] === IMAGE;
    if (head.length > 0 && !isImage && head[0] !== EXTENSION) return;
    if (head.length < (isImage ? DESCRIPTOR_BYTES : EXTENSION_BYTES)) {
      yield { name: 'cut', offset, head, end: undefined };
      return;
    }
    const data = isImage
      ? offset + DESCRIPTOR_BYTES + colourTableLength(head[FLAGS_AT] as number) + 1
      : offset + 2;
    const end = await walkSubBlocks(bytes, data);
    yield { name: isImage ? 'image' : 'extension', offset, head, end };
    if (end === undefined) return;
    if (isImage) frames += 1;
    offset = end;
  }
}

function colourTableLength(flags: number): number {
  return flags & HAS_TABLE ? 3 * 2 ** ((flags & TABLE_SIZE) + 1) : 0;
}

/**
 * Iterates over sub-blocks. Each has a length byte and that many bytes. Length 0 terminates them.
 *
 * @returns the offset after the terminator; undefined if the file ends before it
 */
async function walkSubBlocks(bytes: ByteReader, from: number): Promise<number | undefined> {
  for (let offset = from; ; ) {
    const piece = await bytes.read(offset, READ_BYTES);
    if (piece.length === 0) return undefined;
    let at = 0;
    while (at < piece.length) {
      const length = piece[at] as number;
      if (length === 0) return offset + at + 1;
      const end = at + 1 + length;
      if (end > READ_BYTES) break; // it continues in the next piece
      at = end;
    }
    offset += at;
  }
}
