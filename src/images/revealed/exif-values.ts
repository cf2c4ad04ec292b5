/** @module Reads what EXIF, or the first directory of a TIFF, gives away (EXIF 2.32, 4.6). */
import type { ByteReader } from '../containers/file.ts';
import { type IfdEntry, TAG, type Tags, TiffReader } from '../containers/ifd.ts';
import { decodeText, MAX_TEXT_BYTES } from '../copyright/fields.ts';
import { findThumbnail } from '../exif.ts';
import {
  CAMERA_TAGS,
  IMAGE_TAGS,
  PLACE_TAGS,
  type RevealedKind,
  USER_COMMENT,
  WINDOWS_TAGS,
} from './fields-table.ts';

/** A value, or the bytes that are stated to be a thumbnail. */
type ExifValue =
  | { readonly kind: RevealedKind; readonly name: string; readonly value: string | undefined }
  | { readonly thumbnail: Buffer };

/** Tags of a position. Each side has its half of the globe, and degrees, minutes and seconds. */
const SIDES = [
  { half: 1, degrees: 2, negative: 'S', max: 90 },
  { half: 3, degrees: 4, negative: 'W', max: 180 },
] as const;
const ALTITUDE = { below: 5, metres: 6 } as const;

/** Maximum bytes of a thumbnail: those of a segment of a JPEG. */
export const MAX_THUMBNAIL_BYTES = 64 * 1024;

/**
 * Yields the values in the directories.
 *
 * @param hasThumbnail whether the second directory is that of a thumbnail. In a TIFF, it is the
 *   second page.
 */
export async function* exifValues(bytes: ByteReader, hasThumbnail: boolean): AsyncGenerator<ExifValue> {
  const tiff = await TiffReader.open(bytes);
  const first = await tiff?.first();
  if (!tiff || !first) return;
  const image = await tiff.tags(first);
  const directory = async (tag: number): Promise<Tags> => {
    const at = image.get(tag)?.value;
    return at ? tiff.tags(at) : new Map();
  };
  const [camera, place] = [await directory(TAG.exif), await directory(TAG.gps)];
  const position = await readPosition(tiff, place);
  if (position) yield { kind: 'place', name: 'GPSPosition', value: position };
  const altitude = position && (await readAltitude(tiff, place));
  if (altitude) yield { kind: 'place', name: 'GPSAltitude', value: altitude };
  for (const [tags, fields, decode] of [
    [image, IMAGE_TAGS, decodePlain],
    [camera, CAMERA_TAGS, decodePlain],
    [place, PLACE_TAGS, decodePlain],
    [image, WINDOWS_TAGS, decodeUtf16],
    [camera, { [USER_COMMENT]: ['comment', 'UserComment'] }, decodeComment],
  ] as const)
    for (const [tag, [kind, name]] of Object.entries(fields)) {
      const entry = tags.get(Number(tag));
      if (entry) yield { kind, name, value: decode(await readValue(bytes, entry), tiff) };
    }
  const thumbnail = hasThumbnail ? await findThumbnail(tiff, first) : undefined;
  if (thumbnail) {
    const { start, length } = thumbnail;
    yield { thumbnail: await bytes.read(start, Math.min(length, MAX_THUMBNAIL_BYTES)) };
  }
}

/** Reads the bytes of a value that is no number. */
const readValue = async (bytes: ByteReader, { at, count, width }: IfdEntry): Promise<Buffer> =>
  bytes.read(at, Math.min(count * width, MAX_TEXT_BYTES));

/** Decodes a text, or several that have a NUL between them, without NULs at the end. */
function decodePlain(bytes: Buffer): string | undefined {
  const parts = bytes.toString('latin1').split('\0');
  const text = parts.filter((part) => part.trim() !== '').join('; ');
  return decodeText(Buffer.from(text, 'latin1'));
}

function decodeUtf16(bytes: Buffer): string {
  return new TextDecoder('utf-16le').decode(bytes).split('\0', 1)[0] as string;
}

/** Bytes of the name of the encoding, which precede a comment. */
const ENCODING_BYTES = 8;

function decodeComment(bytes: Buffer, tiff: TiffReader): string | undefined {
  const text = bytes.subarray(ENCODING_BYTES);
  if (bytes.toString('latin1', 0, 7) !== 'UNICODE') return decodePlain(text);
  const isBigEndian = tiff.encode(1, 2)[1] === 1;
  return new TextDecoder(isBigEndian ? 'utf-16be' : 'utf-16le').decode(text).split('\0', 1)[0];
}

/** Reads the position in degrees, as `48.137154, 11.576124`; undefined if the camera had none. */
async function readPosition(tiff: TiffReader, place: Tags): Promise<string | undefined> {
  const sides: string[] = [];
  for (const { half, degrees, negative, max } of SIDES) {
    const entry = place.get(degrees);
    const [whole = Number.NaN, ...parts] = entry ? await tiff.fractions(entry, 3) : [];
    const [minutes, seconds] = parts.map((part) => (Number.isFinite(part) ? part : 0));
    const size = whole + (minutes ?? 0) / 60 + (seconds ?? 0) / 3600;
    if (!(size <= max)) return undefined;
    const letter = place.get(half);
    const isNegative = letter && (await readValue(tiff.bytes, letter)).toString('latin1', 0, 1) === negative;
    sides.push((isNegative ? -size : size).toFixed(6));
  }
  return sides.join(', ');
}

async function readAltitude(tiff: TiffReader, place: Tags): Promise<string | undefined> {
  const entry = place.get(ALTITUDE.metres);
  const [metres = Number.NaN] = entry ? await tiff.fractions(entry, 1) : [];
  const sign = place.get(ALTITUDE.below)?.value === 1 ? -1 : 1;
  return Number.isFinite(metres) ? `${(sign * metres).toFixed(1)} m` : undefined;
}
