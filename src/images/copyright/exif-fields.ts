/**
 * @module Reads the copyright of EXIF or TIFF, and writes EXIF with nothing else (EXIF 2.32, 4.6.2
 * and 4.6.5; TIFF 6.0, section 2).
 */
import type { ByteReader } from '../containers/file.ts';
import { TiffReader } from '../containers/ifd.ts';
import { decodeText, EXIF_FIELDS, type Field, type FieldText, MAX_TEXT_BYTES } from './fields.ts';

const FIELDS = Object.entries(EXIF_FIELDS) as [Field, number][];

/**
 * Reads the fields from the first directory: several texts if a NUL separates them, as the
 * copyrights of photographer and editor. Returns undefined if there is no directory.
 */
export async function readExifTexts(bytes: ByteReader): Promise<FieldText[] | undefined> {
  const tiff = await TiffReader.open(bytes);
  if (!tiff) return undefined;
  const tags = await tiff.tags((await tiff.first()) ?? 0);
  const found: FieldText[] = [];
  for (const [field, tag] of FIELDS) {
    const { at, count } = tags.get(tag) ?? { at: 0, count: 0 };
    const value = count > MAX_TEXT_BYTES ? undefined : (await bytes.read(at, count)).toString('latin1');
    const parts = value?.split('\0').filter((part) => part.trim() !== '') ?? [undefined];
    for (const part of parts) found.push({ field, text: part && decodeText(Buffer.from(part, 'latin1')) });
  }
  return found;
}

/** An entry of a directory to write: one that is copied, or a new one with bytes as its value. */
export type DirectoryEntry =
  | { readonly tag: number; readonly copy: Buffer }
  | { readonly tag: number; readonly type: number; readonly value: Buffer };

/** Types of values (TIFF 6.0, section 2). */
const ASCII = 2;
export const UNDEFINED = 7;

const ENTRY_BYTES = 12;

/**
 * Encodes a directory with the least significant byte first, followed by the values that do not fit
 * into its entries.
 *
 * @param at its offset in the file
 * @param next offset of the next directory; 0 if there is none
 */
export function encodeDirectory(at: number, entries: readonly DirectoryEntry[], next = 0): Buffer {
  const directory = Buffer.alloc(2 + ENTRY_BYTES * entries.length + 4);
  const values: Buffer[] = [];
  let valueAt = at + directory.length;
  let entryAt = directory.writeUInt16LE(entries.length);
  for (const entry of entries.toSorted((one, other) => one.tag - other.tag)) {
    if ('copy' in entry) {
      entry.copy.copy(directory, entryAt);
    } else {
      const { tag, type, value } = entry;
      directory.writeUInt16LE(tag, entryAt);
      directory.writeUInt16LE(type, entryAt + 2);
      directory.writeUInt32LE(value.length, entryAt + 4);
      if (value.length <= 4) {
        value.copy(directory, entryAt + 8);
      } else {
        directory.writeUInt32LE(valueAt, entryAt + 8);
        values.push(value, Buffer.alloc(value.length % 2)); // values start at even offsets
        valueAt += value.length + (value.length % 2);
      }
    }
    entryAt += ENTRY_BYTES;
  }
  directory.writeUInt32LE(next, entryAt);
  return Buffer.concat([directory, ...values]);
}

/** Returns the entries with the fields. */
export function exifEntries(texts: readonly FieldText[]): DirectoryEntry[] {
  return FIELDS.flatMap(([field, tag]) => {
    const parts = texts.filter((one) => one.field === field).map(({ text }) => `${text}\0`);
    return parts.length > 0 ? [{ tag, type: ASCII, value: Buffer.from(parts.join('')) }] : [];
  });
}

const HEADER = Buffer.from('II*\0\x08\0\0\0', 'latin1');

/** Writes EXIF with the fields; undefined if there are none. */
export function writeExif(texts: readonly FieldText[]): Buffer | undefined {
  const entries = exifEntries(texts);
  return entries.length > 0 ? Buffer.concat([HEADER, encodeDirectory(HEADER.length, entries)]) : undefined;
}
