/** @module Adds EXIF and XMP to a JPEG XL: cjxl 0.7, the version of Debian 12, drops those of a PNG. */

import { type FileHandle, open } from 'node:fs/promises';
import { type PngMetadata, readPngMetadata } from '../../images/png-text.ts';
import { isNoFile, type VerifiedOutput } from './result.ts';

/** Metadata by the names of their boxes in a JPEG XL (ISO/IEC 18181-2, 9.1). */
type Metadata = Partial<Record<'Exif' | 'xml ', Buffer>>;

/**
 * Appends the metadata of a PNG as boxes, if the JPEG XL does not contain them. The codestream stays in place, so the memory
 * depends only on the metadata.
 *
 * @param png path of the PNG that was encoded
 */
export async function addJxlMetadata(result: VerifiedOutput, png: string): Promise<VerifiedOutput> {
  const metadata = await metadataOf(png);
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

async function readAt(file: FileHandle, at: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length);
  await file.read(buffer, 0, length, at);
  return buffer;
}

/** Reads the metadata of a PNG that ImageMagick wrote, if there is one. */
async function metadataOf(png: string): Promise<Metadata> {
  const found = await readPngMetadata(png).catch((error): PngMetadata[] => {
    if (isNoFile(error)) return [];
    throw error;
  });
  return Object.assign({}, ...found.reverse().map(boxOf));
}

/** Returns the content of the box for some metadata; none if it is invalid. */
function boxOf({ kind, bytes }: PngMetadata): Metadata {
  if (kind === 'exif') return exifBox(bytes);
  return kind === 'xmp' && bytes.length > 0 ? { 'xml ': bytes } : {};
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
