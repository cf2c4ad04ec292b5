/**
 * @module Adjusts the metadata of an image that is rotated upright. ImageMagick resets the orientation in EXIF, but
 * changes neither the thumbnail nor the size that EXIF states. Version 6 also keeps the orientation in XMP, so some viewers
 * would rotate the result again.
 */

import { readFile, writeFile } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import type { InputType } from '../formats.ts';
import { MAX_PNG_CHUNKS } from './containers/chunks.ts';
import { MAX_TAGS } from './containers/ifd.ts';
import type { ImageInfo } from './image-info.ts';

/** First of the orientations that swap width and height (EXIF 2.32, section 4.6.4). */
const QUARTER_TURN = 5;

/** Maximum number of parts, and of orientations in XMP, to adjust. Real files have a few; changing many takes long. */
const MAX_PARTS = 100;
const MAX_ORIENTATIONS = 1000;

/**
 * Removes the EXIF thumbnail, swaps width and height in EXIF, and resets the orientation in XMP, in place, if the image at
 * `path` will be rotated.
 */
export async function makeMetadataUpright(
  path: string,
  { type, orientation = 1, pages }: ImageInfo,
): Promise<void> {
  const isRotated = orientation !== 1 || pages?.some((page) => (page.orientation ?? 1) !== 1);
  const partsOf = PARTS[type];
  if (!isRotated || !partsOf) return;
  const file = await readFile(path);
  for (const part of partsOf(file).slice(0, MAX_PARTS)) {
    const body = file.subarray(part.start, part.end);
    if (part.kind === 'exif') makeExifUpright(body, orientation >= QUARTER_TURN);
    else resetXmpOrientation(body);
    if (type === 'png') file.writeUInt32BE(crc32(file.subarray(part.start - 4, part.end)), part.end);
  }
  await writeFile(path, file);
}

interface Part {
  readonly kind: 'exif' | 'xmp';
  readonly start: number;
  readonly end: number;
}

/** Finds the metadata of a file by its type, in at most {@link MAX_PNG_CHUNKS} segments or chunks. */
const PARTS: Partial<Record<InputType, (file: Buffer) => Part[]>> = {
  jpg: jpegParts,
  png: (file) =>
    chunkParts(file, 8, { eXIf: 'exif', iTXt: 'xmp' }, (at) => ({
      name: file.toString('latin1', at + 4, at + 8),
      length: file.readUInt32BE(at),
      next: at + 12 + file.readUInt32BE(at),
    })),
  webp: (file) =>
    chunkParts(file, 12, { EXIF: 'exif', 'XMP ': 'xmp' }, (at) => {
      const length = file.readUInt32LE(at + 4);
      return { name: file.toString('latin1', at, at + 4), length, next: at + 8 + length + (length % 2) };
    }),
  tiff: (file) => [{ kind: 'xmp', start: 0, end: file.length }],
};

/** Finds APP1 segments (ITU-T T.81, B.1.1.4). Skips fill bytes before a marker (B.1.1.2). */
function jpegParts(file: Buffer): Part[] {
  const parts: Part[] = [];
  let segments = 0;
  for (let at = 2; at + 4 <= file.length && file[at] === 0xff && file[at + 1] !== 0xda; ) {
    if (file[at + 1] === 0xff) {
      at += 1;
      continue;
    }
    if (segments === MAX_PNG_CHUNKS) break;
    segments += 1;
    const end = at + 2 + file.readUInt16BE(at + 2);
    const kind = file.toString('latin1', at + 4, at + 8) === 'Exif' ? 'exif' : 'xmp';
    if (file[at + 1] === 0xe1 && end <= file.length) parts.push({ kind, start: at + 4, end });
    at = end;
  }
  return parts;
}

function chunkParts(
  file: Buffer,
  first: number,
  kinds: Readonly<Record<string, Part['kind']>>,
  read: (at: number) => { readonly name: string; readonly length: number; readonly next: number },
): Part[] {
  const parts: Part[] = [];
  let at = first;
  for (let chunk = 0; chunk < MAX_PNG_CHUNKS && at + 8 <= file.length; chunk += 1) {
    const { name, length, next } = read(at);
    const kind = kinds[name];
    if (kind && next <= file.length) parts.push({ kind, start: at + 8, end: at + 8 + length });
    at = next;
  }
  return parts;
}

const EXIF_MARKER = 'Exif\0\0';
/** Tags (EXIF 2.32, 4.6). */
const TAGS = { exifDirectory: 0x8769, thumbnailOffset: 0x0201, thumbnailLength: 0x0202 } as const;
/** Tags of the width and the height, in the first directory and in that of EXIF. */
const SIZE_TAGS = [
  [0x0100, 0x0101],
  [0xa002, 0xa003],
] as const;

/** A list of entries, and the offset of the link to the next list. */
interface Directory {
  /** The last 10 bytes of each entry by tag: type, count and value. */
  readonly entries: ReadonlyMap<number, Buffer>;
  readonly link: number;
}

/** Reads the numbers and directories of EXIF in its byte order. Numbers beyond its end are 0. */
function exifReader(exif: Buffer) {
  const isBig = exif[0] === 0x4d;
  const inside = (at: number, bytes: number): boolean => at + bytes <= exif.length;
  const u16 = (at: number): number =>
    !inside(at, 2) ? 0 : isBig ? exif.readUInt16BE(at) : exif.readUInt16LE(at);
  const u32 = (at: number): number =>
    !inside(at, 4) ? 0 : isBig ? exif.readUInt32BE(at) : exif.readUInt32LE(at);
  const directory = (at: number): Directory => {
    const link = at + 2 + u16(at) * 12;
    const end = Math.min(link, at + 2 + MAX_TAGS * 12);
    const entries = new Map<number, Buffer>();
    for (let entry = at + 2; entry < end && inside(entry, 12); entry += 12)
      entries.set(u16(entry), exif.subarray(entry + 2, entry + 12));
    return { entries, link };
  };
  const readValue = (entry: Buffer | undefined): number =>
    !entry ? 0 : isBig ? entry.readUInt32BE(6) : entry.readUInt32LE(6);
  return { u32, directory, readValue };
}

/** Removes the thumbnail, and swaps the stated width and height if the image is rotated by 90 degrees. */
function makeExifUpright(body: Buffer, isQuarterTurn: boolean): void {
  const exif = body.toString('latin1', 0, 6) === EXIF_MARKER ? body.subarray(EXIF_MARKER.length) : body;
  const { u32, directory, readValue } = exifReader(exif);
  const first = directory(u32(4));
  const exifAt = readValue(first.entries.get(TAGS.exifDirectory));
  if (isQuarterTurn) swapSides([first, ...(exifAt > 0 ? [directory(exifAt)] : [])]);
  removeThumbnail(exif, first.link);
}

function swapSides(directories: readonly Directory[]): void {
  for (const { entries } of directories) {
    for (const [widthTag, heightTag] of SIZE_TAGS) {
      const [width, height] = [entries.get(widthTag), entries.get(heightTag)];
      if (!width || !height) continue;
      const stated = Buffer.from(width);
      height.copy(width);
      stated.copy(height);
    }
  }
}

/** Overwrites the thumbnail with zeros, and ends the list of directories before it (EXIF 2.32, 4.5). */
function removeThumbnail(exif: Buffer, link: number): void {
  const { u32, directory, readValue } = exifReader(exif);
  const second = u32(link);
  if (second === 0) return;
  const { entries } = directory(second);
  const start = readValue(entries.get(TAGS.thumbnailOffset));
  const end = Math.min(exif.length, start + readValue(entries.get(TAGS.thumbnailLength)));
  if (start > 0 && start < end) exif.fill(0, start, end);
  exif.fill(0, link, link + 4);
}

/** The orientation as an attribute or an element (XMP part 2, 8.4). */
const XMP_ORIENTATION = /tiff:Orientation(?:\s*=\s*["']|>)\s*([2-8])/g;

function resetXmpOrientation(body: Buffer): void {
  if (!body.includes('tiff:Orientation')) return;
  let count = 0;
  for (const match of body.toString('latin1').matchAll(XMP_ORIENTATION)) {
    if (count === MAX_ORIENTATIONS) return;
    body.write('1', match.index + match[0].length - 1, 'latin1');
    count += 1;
  }
}
