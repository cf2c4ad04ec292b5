/** @module Metadata in text chunks of a PNG, which ImageMagick and djxl write in hexadecimal. */
import { createWriteStream } from 'node:fs';
import { type FileHandle, open, rename } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { inflate } from 'node:zlib';
import { isTurnOver, waitForTurn } from '../containers/event-loop.ts';
import {
  BLOCK_BYTES,
  type ByteReader,
  type Edit,
  fileReader,
  OPEN_FLAGS,
  readRange,
} from '../containers/file.ts';
import {
  MAX_WRITTEN_CHUNKS,
  type Part,
  pngChunks,
  type WrittenChunk,
  writtenChunks,
} from '../containers/parts.ts';
import type { MetadataKind } from '../image-info.ts';
import { PNG_HEADER_BYTES, pngChunk, pngChunkParts } from './png-writer.ts';

/** Maximum length of a keyword (W3C PNG, third edition, section 11.3.3.1). */
const MAX_KEYWORD_BYTES = 79;

/** Keyword of the text with EXIF that ImageMagick and djxl write. */
const EXIF_TEXT = 'Raw profile type exif';
/** Keyword of the text with XMP. */
export const XMP_TEXT = 'XML:com.adobe.xmp';

/** Metadata by the keyword of the text chunk. "APP1" can be EXIF or XMP, but is usually EXIF. */
const KEYWORDS: ReadonlyMap<string, MetadataKind> = new Map([
  [XMP_TEXT, 'xmp'],
  ['Raw profile type xmp', 'xmp'],
  [EXIF_TEXT, 'exif'],
  ['Raw profile type APP1', 'exif'],
  ['Raw profile type iptc', 'iptc'],
]);

const keywordOf = (text: Buffer): string =>
  text.toString('latin1', 0, MAX_KEYWORD_BYTES + 1).split('\0', 1)[0] as string;

/** Returns the kind of metadata in a text chunk, of which the first bytes are given. */
const kindOfText = (text: Buffer): MetadataKind | undefined => KEYWORDS.get(keywordOf(text));

/**
 * Encodes EXIF as a text: its keyword, its name, its length, and its bytes. ImageMagick writes
 * lines of 72 digits, but also reads a single line, which takes less time to encode. The parts are
 * encoded one at a time, because those of 9 MiB take 60 ms.
 *
 * @returns the length of the text in bytes, and its parts
 */
function encodeExifText(exif: Buffer): { length: number; parts: Iterable<Buffer> } {
  const head = Buffer.from(`${EXIF_TEXT}\0\nexif\n${String(exif.length).padStart(8)}\n`, 'latin1');
  const parts = function* (): Generator<Buffer> {
    yield head;
    for (let at = 0; at < exif.length; at += BLOCK_BYTES)
      yield Buffer.from(exif.toString('hex', at, at + BLOCK_BYTES), 'latin1');
    yield Buffer.from('\n');
  };
  return { length: head.length + 2 * exif.length + 1, parts: parts() };
}

/** The name, which is a line, and the length. */
const HEAD = /^\s*[^\n]*\n\s*\d+\s+/;
const MAX_HEAD_BYTES = 256;

/** Decodes a raw profile, up to the first other character. Yields to the event loop. */
async function decodeRawProfile(text: Buffer): Promise<Buffer> {
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

/**
 * Maximum length of a chunk with metadata, and of its text, in bytes. EXIF of a JPEG has at most 64
 * KiB, twice that as digits.
 */
const MAX_TEXT_BYTES = 8 * 1024 ** 2;

const afterNul = (body: Buffer): Buffer => body.subarray(body.indexOf(0) + 1);

/** Decompresses a text. Returns no bytes if it is damaged or too long. */
const inflateText = (data: Buffer, maxOutputLength: number): Promise<Buffer> =>
  promisify(inflate)(data, { maxOutputLength }).catch(() => Buffer.alloc(0));

/** Text by the kind of its chunk (section 11.3.3), with the maximum length of a compressed one. */
const TEXTS: Readonly<Record<string, (body: Buffer, maxBytes: number) => Buffer | Promise<Buffer>>> = {
  tEXt: afterNul,
  zTXt: (body, maxBytes) => inflateText(afterNul(body).subarray(1), maxBytes),
  iTXt(body, maxBytes) {
    const rest = afterNul(body);
    const text = afterNul(afterNul(rest.subarray(2)));
    return rest[0] === 1 ? inflateText(text, maxBytes) : text;
  },
};

export interface PngMetadata {
  readonly kind: MetadataKind;
  readonly bytes: Buffer;
}

/** Returns the kind of metadata in a chunk. */
export async function kindOfChunk(
  { name, offset, length }: Part,
  bytes: ByteReader,
): Promise<MetadataKind | undefined> {
  if (name === 'eXIf') return 'exif';
  return TEXTS[name] && kindOfText(await bytes.read(offset, Math.min(length, MAX_KEYWORD_BYTES + 1)));
}

/** Reads the metadata of a chunk; undefined if it has none, or is too large. */
export async function readMetadataChunk(chunk: WrittenChunk): Promise<PngMetadata | undefined> {
  if (chunk.length > MAX_TEXT_BYTES) return undefined;
  if (chunk.name === 'eXIf') return { kind: 'exif', bytes: await chunk.body() };
  const textOf = TEXTS[chunk.name];
  if (!textOf) return undefined;
  const body = await chunk.body();
  const kind = kindOfText(body);
  if (!kind) return undefined;
  const text = await textOf(body, MAX_TEXT_BYTES);
  return { kind, bytes: keywordOf(body) === XMP_TEXT ? text : await decodeRawProfile(text) };
}

/** Returns whether a chunk has a text. */
export const isText = ({ name }: Part): boolean => TEXTS[name] !== undefined;

/**
 * Reads a text that is no metadata, such as an author; undefined for other chunks, and for one of
 * more than {@link BLOCK_BYTES}.
 */
export async function readPlainText(
  { name, offset, length }: Part,
  bytes: ByteReader,
): Promise<{ readonly keyword: string; readonly text: Buffer } | undefined> {
  const textOf = TEXTS[name];
  if (!textOf || length > BLOCK_BYTES) return undefined;
  const body = Buffer.from(await bytes.read(offset, length));
  return kindOfText(body) ? undefined : { keyword: keywordOf(body), text: await textOf(body, BLOCK_BYTES) };
}

/** Reads the metadata of a PNG that a tool has written, in the order of the chunks. */
export async function readPngMetadata(path: string): Promise<PngMetadata[]> {
  const found: PngMetadata[] = [];
  for await (const chunk of writtenChunks(path)) {
    const metadata = await readMetadataChunk(chunk);
    if (metadata) found.push(metadata);
  }
  return found;
}

/** Chunks with the profile, metadata, texts, and the time of a change. */
const METADATA_CHUNKS = ['iCCP', 'eXIf', ...Object.keys(TEXTS), 'tIME'];

/**
 * Returns the changes that copy the profile, the metadata and the texts of a PNG that a tool has
 * written to another, which has none.
 */
export async function pngMetadataEdits(path: string): Promise<Edit[]> {
  const copies: Edit[] = [];
  for await (const { name, body, length } of writtenChunks(path)) {
    if (!METADATA_CHUNKS.includes(name) || length > MAX_TEXT_BYTES) continue;
    if (isTurnOver()) await waitForTurn();
    copies.push({ at: PNG_HEADER_BYTES, removed: 0, bytes: pngChunk(name, await body()) });
  }
  return copies;
}

/** Returns the changes that remove all texts from a PNG that a tool has written. */
export async function pngTextRemovals(file: FileHandle): Promise<Edit[]> {
  const removals: Edit[] = [];
  for await (const chunk of pngChunks(fileReader(file), MAX_WRITTEN_CHUNKS))
    if (isText(chunk))
      removals.push({ at: chunk.start, removed: chunk.end - chunk.start, bytes: Buffer.alloc(0) });
  return removals;
}

/**
 * Copies the EXIF of a PNG to a text chunk, because ImageMagick 6 does not read `eXIf`
 * (Magick_png_read_raw_profile in its png.c). Replaces the text that djxl 0.7 writes. Only a block
 * of the file is in memory, since it can have 200 MB.
 *
 * @throws {Error} with the code of the failed system call, if there is no such file, or a link with
 *   its name
 */
export async function copyExifToText(path: string): Promise<void> {
  for await (const chunk of writtenChunks(path)) {
    const fromDjxl = chunk.name === 'zTXt' ? await readDjxlExif(chunk) : undefined;
    const tiff = chunk.name === 'eXIf' ? await chunk.body() : fromDjxl;
    if (!tiff) continue;
    const removed = fromDjxl ? chunk : { start: PNG_HEADER_BYTES, end: PNG_HEADER_BYTES };
    return await insertText(path, Buffer.concat([Buffer.from('Exif\0\0', 'latin1'), tiff]), removed);
  }
}

/** Inserts EXIF as text after the header of the PNG at `path`, and leaves out a range. */
async function insertText(
  path: string,
  exif: Buffer,
  { start, end }: { readonly start: number; readonly end: number },
): Promise<void> {
  const { length, parts } = encodeExifText(exif);
  // Writing to `path` would follow a link. Renaming replaces it.
  const copy = `${path}.exif`;
  await using file = await open(path, OPEN_FLAGS);
  const whole = async function* () {
    yield* readRange(file, 0, PNG_HEADER_BYTES);
    yield* pngChunkParts('tEXt', length, parts);
    yield* readRange(file, PNG_HEADER_BYTES, start);
    yield* readRange(file, end, Number.POSITIVE_INFINITY);
  };
  await pipeline(whole, createWriteStream(copy, { flags: 'wx' }));
  await rename(copy, path);
}

/**
 * Reads the EXIF that djxl 0.7 copies from a box, with the offset of the TIFF header that starts it
 * (ISO/IEC 18181-2, 9.1).
 *
 * @returns undefined for other text, for EXIF without that offset, and for damaged or too much EXIF
 */
async function readDjxlExif(chunk: WrittenChunk): Promise<Buffer | undefined> {
  const { kind, bytes = Buffer.alloc(0) } = (await readMetadataChunk(chunk)) ?? {};
  return kind === 'exif' && bytes.length > 4 && bytes.readUInt32BE(0) === 0 ? bytes.subarray(4) : undefined;
}
