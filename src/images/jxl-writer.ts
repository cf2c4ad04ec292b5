/** @module Appends metadata to a JPEG XL in a container (ISO/IEC 18181-2). */
import type { FileHandle } from 'node:fs/promises';
import { bigEndian, type Edit, fileReader } from './containers/file.ts';
import { boxes, encodeBox } from './containers/parts.ts';

/** EXIF, which starts with its TIFF header, and XMP. */
export interface JxlMetadata {
  readonly exif?: Buffer | undefined;
  readonly xmp?: Buffer | undefined;
}

/** Returns the changes that append metadata as boxes, if the file has none of this kind. The codestream stays in place. */
export async function jxlMetadataEdits(
  file: FileHandle,
  size: number,
  { exif, xmp }: JxlMetadata,
): Promise<Edit[]> {
  const bytes = fileReader(file);
  const names: string[] = [];
  const edits: Edit[] = [];
  for await (const { name, start, offset, end } of boxes(bytes, { from: 0, to: size })) {
    // Compressed metadata has the name of its box in the content (section 9.3).
    names.push(name === 'brob' ? (await bytes.read(offset, 4)).toString('latin1') : name);
    // A box that extends to the end of the file could not be followed by others.
    if (end === Number.POSITIVE_INFINITY)
      edits.push({ at: start, removed: 4, bytes: bigEndian(size - start, 4) });
  }
  const added = [
    // The box starts with the offset of the TIFF header (section 9.1).
    ...(exif && !names.includes('Exif') ? [encodeBox('Exif', Buffer.alloc(4), exif)] : []),
    ...(xmp && !names.includes('xml ') ? [encodeBox('xml ', xmp)] : []),
  ];
  return [...edits, { at: size, removed: 0, bytes: Buffer.concat(added) }];
}
