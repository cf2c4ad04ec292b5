/** @module Adds EXIF and XMP to a JPEG XL: cjxl 0.7, the version of Debian 12, drops those of a PNG. */

import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { promisify } from 'node:util';
import { inflate } from 'node:zlib';
import { decodeRawProfile } from '../../images/raw-profile.ts';
import { isNoFile, type VerifiedOutput } from './result.ts';

/** Metadata by the names of their boxes in a JPEG XL (ISO/IEC 18181-2, 9.1). */
type Metadata = Partial<Record<'Exif' | 'xml ', Buffer>>;
/** Name of a chunk, with the offset and the length of its content. */
interface Chunk {
  readonly name: string;
  readonly start: number;
  readonly length: number;
}

/**
 * Appends the metadata of a PNG as boxes, if the JPEG XL does not contain them. The codestream stays in place, so the memory
 * depends only on the metadata.
 *
 * @param png path of the PNG that was encoded
 */
export async function addJxlMetadata(result: VerifiedOutput, png: string): Promise<VerifiedOutput> {
  const metadata = await readPngMetadata(png);
  const file = await open(result.path, 'r+');
  try {
    const present: string[] = [];
    for await (const name of boxNames(file, result.bytes)) present.push(name);
    const added = Object.entries(metadata).filter(([name]) => !present.includes(name));
    const boxes = Buffer.concat(added.map(([name, body]) => encodeBox(name, body)));
    await file.write(boxes, 0, boxes.length, result.bytes);
    return { ...result, bytes: result.bytes + boxes.length };
  } finally {
    await file.close();
  }
}

function encodeBox(name: string, body: Buffer): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(8 + body.length);
  head.write(name, 4, 'latin1');
  return Buffer.concat([head, body]);
}

/** Yields the names of the boxes. Compressed metadata has the name of its box in the content (ISO/IEC 18181-2, 9.3). */
async function* boxNames(file: FileHandle, size: number): AsyncGenerator<string> {
  for (let at = 0; at < size; ) {
    const head = await readAt(file, at, 16);
    const stated = head.readUInt32BE(0);
    const length = stated === 1 ? Number(head.readBigUInt64BE(8)) : stated || size - at;
    if (length < 8) return;
    const name = head.toString('latin1', 4, 8);
    yield name === 'brob' ? head.toString('latin1', 8, 12) : name;
    // A length of 0 extends to the end of the file, so no box could follow.
    if (stated === 0) await writeLength(file, length, at);
    at += length;
  }
}

async function writeLength(file: FileHandle, length: number, at: number): Promise<void> {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(length);
  await file.write(bytes, 0, 4, at);
}

/** Maximum size of metadata to copy, in bytes. EXIF of a JPEG has at most 64 KiB. */
const MAX_METADATA_BYTES = 4 * 1024 ** 2;
const MAX_CHUNK_BYTES = 2 * MAX_METADATA_BYTES; // hexadecimal digits

/** Chunks of a PNG with metadata (W3C PNG, third edition, 11.3). */
const CHUNKS: Readonly<Record<string, (body: Buffer) => Metadata | Promise<Metadata>>> = {
  eXIf: exifBox,
  tEXt: (body) => fromText(keywordOf(body), afterNul(body)),
  async zTXt(body) {
    const compressed = afterNul(body).subarray(1);
    return fromText(keywordOf(body), await inflateText(compressed));
  },
  async iTXt(body) {
    const rest = afterNul(body);
    const text = afterNul(afterNul(rest.subarray(2)));
    return fromText(keywordOf(body), rest[0] === 1 ? await inflateText(text) : text);
  },
};

/** Reads the metadata of a PNG that ImageMagick wrote. Ignores a chunk that is damaged or too large. */
async function readPngMetadata(path: string): Promise<Metadata> {
  let found: Metadata = {};
  try {
    // A tool could replace the file by a link or a pipe.
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      for await (const { name, start, length } of chunksOf(file)) {
        if (!Object.hasOwn(CHUNKS, name) || length > MAX_CHUNK_BYTES) continue;
        const body = await readAt(file, start, length);
        found = { ...(await CHUNKS[name]?.(body)), ...found };
      }
    } finally {
      await file.close();
    }
  } catch (error) {
    if (!isNoFile(error)) throw error;
  }
  return found;
}

async function* chunksOf(file: FileHandle): AsyncGenerator<Chunk> {
  const { size } = await file.stat();
  for (let at = 8; at + 12 <= size; ) {
    const head = await readAt(file, at, 8);
    const length = head.readUInt32BE(0);
    yield { name: head.toString('latin1', 4, 8), start: at + 8, length: Math.min(length, size - at - 8) };
    at += 12 + length;
  }
}

async function readAt(file: FileHandle, at: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length);
  await file.read(buffer, 0, length, at);
  return buffer;
}

const keywordOf = (body: Buffer): string => body.toString('latin1', 0, Math.max(0, body.indexOf(0)));
const afterNul = (body: Buffer): Buffer => body.subarray(body.indexOf(0) + 1);

const inflateText = (data: Buffer): Promise<Buffer> =>
  promisify(inflate)(data, { maxOutputLength: MAX_CHUNK_BYTES }).catch(() => Buffer.alloc(0));

/** Metadata by the keyword of the text. ImageMagick writes hexadecimal digits in "raw profiles". */
const KEYWORDS: Readonly<Record<string, (text: Buffer) => Metadata | Promise<Metadata>>> = {
  'XML:com.adobe.xmp': xmpBox,
  'Raw profile type xmp': async (text) => xmpBox(await decodeRawProfile(text)),
  'Raw profile type exif': async (text) => exifBox(await decodeRawProfile(text)),
  'Raw profile type APP1': async (text) => exifBox(await decodeRawProfile(text)),
};

async function fromText(keyword: string, text: Buffer): Promise<Metadata> {
  return Object.hasOwn(KEYWORDS, keyword) ? ((await KEYWORDS[keyword]?.(text)) ?? {}) : {};
}

function xmpBox(xmp: Buffer): Metadata {
  return xmp.length > 0 ? { 'xml ': xmp } : {};
}

/** Byte orders of a TIFF header, with its number 42 (EXIF 2.32, 4.5.2). */
const TIFF_HEADERS = ['II*\0', 'MM\0*'];
const EXIF_MARKER = 'Exif\0\0';

/** The box starts with the offset of the TIFF header (ISO/IEC 18181-2, 9.1). */
function exifBox(exif: Buffer): Metadata {
  const tiff = exif.toString('latin1', 0, 6) === EXIF_MARKER ? exif.subarray(EXIF_MARKER.length) : exif;
  return TIFF_HEADERS.includes(tiff.toString('latin1', 0, 4))
    ? { Exif: Buffer.concat([Buffer.alloc(4), tiff]) }
    : {};
}
