/**
 * @module Corrects the metadata that tools write: the title of a PDF, and EXIF and XMP of a JPEG XL, which cjxl 0.7, the version of
 * Debian 12, drops from a PNG.
 */

import { closeSync, fstatSync, openSync, readSync, writeSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { fileReader, withFile, writeAt } from '../../images/containers/file.ts';
import { boxes, encodeBox } from '../../images/containers/parts.ts';
import { type PngMetadata, readPngMetadata } from '../../images/png-text.ts';
import { OUTPUT_STEM, outputStem } from '../plan/types.ts';
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
  return withFile(result.path, 'r+', async (file) => {
    const present = await boxNames(file, result.bytes);
    const added = Object.entries(metadata).filter(([name]) => !present.includes(name));
    const content = Buffer.concat(added.map(([name, body]) => encodeBox(name, body)));
    await writeAt(file, result.bytes, content);
    return { ...result, bytes: result.bytes + content.length };
  });
}

/** Returns the names of the boxes. Compressed metadata has the name of its box in the content (ISO/IEC 18181-2, 9.3). */
async function boxNames(file: FileHandle, size: number): Promise<string[]> {
  const bytes = fileReader(file);
  const names: string[] = [];
  for await (const { name, start, offset, end } of boxes(bytes, { from: 0, to: size })) {
    names.push(name === 'brob' ? (await bytes.read(offset, 4)).toString('latin1') : name);
    if (end !== Number.POSITIVE_INFINITY) continue;
    // It extends to the end of the file, so no box could follow.
    const length = Buffer.alloc(4);
    length.writeUInt32BE(size - start);
    await writeAt(file, start, length);
  }
  return names;
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

const utf16 = (text: string): string => Buffer.from(text, 'utf16le').swap16().toString('hex').toUpperCase();

/** Title that ImageMagick 6 writes: the file name in UTF-16, with a NUL, but no byte order mark. Viewers show "\0i\0m…". */
const garbled = (stem: string): string => `<${utf16(`${stem}\0`)}>`;
/** Correct title (ISO 32000-1, section 7.9.2.2). It has the same length, so all offsets stay valid. */
const CORRECT = `<${utf16(`\uFEFF${OUTPUT_STEM}`)}>`;
/** Bytes at the end of a PDF that contain the title. Only the object table, 20 bytes per object, follows it. */
const END_BYTES = 256 * 1024;

/** Corrects the title of the PDF at `path` in place. `suffix` is that of its job. */
export function correctPdfTitle(path: string, suffix: string): void {
  const file = openSync(path, 'r+');
  try {
    const { size } = fstatSync(file);
    const start = Math.max(0, size - END_BYTES);
    const end = Buffer.alloc(size - start);
    readSync(file, end, 0, end.length, start);
    const at = end.lastIndexOf(`/Title ${garbled(outputStem(suffix))}`);
    if (at >= 0) writeSync(file, `/Title ${CORRECT}`, start + at);
  } finally {
    closeSync(file);
  }
}
