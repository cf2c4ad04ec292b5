/** @module Reads JPEG, PNG and Group 4 whose encoded bytes a PDF contains (ISO 32000-1, 7.4). */
import { open } from 'node:fs/promises';
import { fileReader, OPEN_FLAGS, readRange } from '../containers/file.ts';
import { TAG, TiffReader } from '../containers/ifd.ts';
import { jpegSegments, MAX_WRITTEN_CHUNKS, type Part, pngChunks, readContents } from '../containers/parts.ts';
import { COLOUR_MODELS } from '../jpeg/jpeg.ts';
import { withoutSegments } from '../jpeg/jpeg-data.ts';
import { COMPRESSION, PHOTOMETRIC } from '../tiff/tiff.ts';
import type { PdfPicture } from './pdf-writer.ts';

/** Uses a picture while its file is open. Links are rejected, and pipes are not waited for. */
type UsePicture<T> = (picture: PdfPicture) => Promise<T>;

/** A file that is no picture which a PDF can contain. */
export class PictureError extends Error {
  override readonly name = 'PictureError';
}

/** Frame headers of DCT (T.81, table B.1): baseline, extended and progressive. */
const DCT_FRAMES: readonly number[] = [0xc0, 0xc1, 0xc2];

/**
 * Reads a JPEG. Its entropy-coded data and its tables are not changed, and only the segments that
 * decoding needs are kept. CMYK is inverted, as Adobe's programs write it and ImageMagick reads it.
 *
 * @param parts the profile to show it with, and whether EXIF, XMP and IPTC stay in the JPEG
 * @throws {PictureError} for a file without a frame of 8 bits, or of another number of components
 *   than 1, 3 and 4
 */
export async function withJpeg<T>(
  path: string,
  { profile, keepsMetadata }: { readonly profile?: Buffer | undefined; readonly keepsMetadata: boolean },
  use: UsePicture<T>,
): Promise<T> {
  await using file = await open(path, OPEN_FLAGS);
  const bytes = fileReader(file);
  for await (const { marker, offset } of jpegSegments(bytes)) {
    if (!DCT_FRAMES.includes(marker)) continue;
    const header = await bytes.read(offset, 6);
    if (header.length < 6 || header[0] !== 8) continue;
    const colours = COLOUR_MODELS[header[5] as number];
    if (!colours) throw new PictureError(`a JPEG of ${header[5]} components`);
    return await use({
      width: header.readUInt16BE(3),
      height: header.readUInt16BE(1),
      bits: 8,
      colours,
      inverted: colours === 'cmyk',
      profile,
      filter: 'DCTDecode',
      bytes: withoutSegments(file, keepsMetadata),
    });
  }
  throw new PictureError('no JPEG with a frame of 8 bits');
}

/** Components by the colour type of a PNG (W3C PNG, 6.1). Alpha has a picture of its own. */
const PNG_COLOURS = { 0: { components: 1, colours: 'grey' }, 2: { components: 3, colours: 'rgb' } } as const;
const PALETTE = 3;

/**
 * Reads a PNG without alpha, of which a PDF contains the compressed rows with their filters.
 *
 * @throws {PictureError} for another file, or one with interlaced rows
 */
export async function withPng<T>(path: string, use: UsePicture<T>): Promise<T> {
  await using file = await open(path, OPEN_FLAGS);
  const { size } = await file.stat();
  const bytes = fileReader(file);
  const header = await bytes.read(16, 13);
  const [width, height] = header.length < 13 ? [0, 0] : [header.readUInt32BE(0), header.readUInt32BE(4)];
  const [bits = 0, type = 0, , , interlaced = 1] = header.subarray(8);
  const chunks: Part[] = [];
  let palette: Buffer | undefined;
  for await (const chunk of pngChunks(bytes, MAX_WRITTEN_CHUNKS)) {
    if (chunk.end > size) break;
    if (chunk.name === 'PLTE') palette = await bytes.read(chunk.offset, Math.min(chunk.length, 768));
    if (chunk.name === 'IDAT') chunks.push(chunk);
  }
  const { components, colours } = PNG_COLOURS[type as keyof typeof PNG_COLOURS] ?? {
    components: 1,
    colours: type === PALETTE && palette ? { palette } : undefined,
  };
  if (!colours || interlaced !== 0 || chunks.length === 0) throw new PictureError(`a PNG of type ${type}`);
  return await use({
    width,
    height,
    bits: bits as PdfPicture['bits'],
    colours,
    filter: 'FlateDecode',
    parameters: `/Predictor 15 /Colors ${components} /BitsPerComponent ${bits} /Columns ${width}`,
    bytes: readContents(file, chunks),
  });
}

/**
 * Reads a TIFF of one strip in Group 4 (ITU-T T.6).
 *
 * @throws {PictureError} for another TIFF, and another file
 */
export async function withFax<T>(
  path: string,
  use: (picture: PdfPicture & { readonly length: number }) => Promise<T>,
): Promise<T> {
  await using file = await open(path, OPEN_FLAGS);
  const tiff = await TiffReader.open(fileReader(file));
  const first = await tiff?.first();
  const tags = first ? await tiff?.tags(first) : undefined;
  const value = (tag: number): number | undefined => tags?.get(tag)?.value;
  const [width, height] = [value(TAG.width) ?? 0, value(TAG.height) ?? 0];
  const [start, length] = [value(TAG.strips), value(TAG.stripBytes)];
  const isNegative = value(TAG.photometric) === PHOTOMETRIC.blackIsZero;
  if (!start || !length || tags?.get(TAG.strips)?.count !== 1 || value(TAG.compression) !== COMPRESSION.fax4)
    throw new PictureError('no TIFF of one strip in Group 4');
  return await use({
    width,
    height,
    bits: 1,
    colours: 'grey',
    filter: 'CCITTFaxDecode',
    parameters: `/K -1 /Columns ${width} /Rows ${height} /BlackIs1 ${isNegative}`,
    bytes: readRange(file, start, start + length),
    length,
  });
}
