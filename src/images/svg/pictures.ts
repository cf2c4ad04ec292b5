/** @module Corrects media types of pictures in SVG, and marks those that are not upright. */
import type { FileHandle } from 'node:fs/promises';
import { isTurnOver, waitForTurn } from '../containers/event-loop.ts';
import { bufferReader, readAt, writeAt } from '../containers/file.ts';
import { readExif } from '../exif.ts';

/** Media types of pictures by the first characters of their data in Base64. */
const TYPES: Readonly<Record<string, string>> = {
  iVBOR: 'image/png',
  '/9j/': 'image/jpeg',
  R0lG: 'image/gif',
  UklG: 'image/webp',
};
const PICTURE = new RegExp(
  `data:([\\w.+-]{1,40}/[\\w.+-]{1,40});base64,\\s{0,9}(${Object.keys(TYPES).join('|')})`,
  'g',
);
/** Exif of a JPEG, after JFIF or without, in Base64. */
const EXIF = /^\/9j\/[\w+/]{4,60}?RXhpZgAA([\w+/]{200})/;
/** A media type that librsvg reads like `image/jpeg`, and that is found as a feature. */
const MARKED = 'IMAGE/JPEG';

/** Bytes to read at once. Searching them takes up to 3 ms. */
const WINDOW_BYTES = 64 * 1024;
/** Bytes to read again: more than the start of a picture has. */
const OVERLAP = 512;

/**
 * Corrects the media types of pictures in place. librsvg finds the type itself if there are only
 * blanks. It ignores the orientation of a JPEG, whose type becomes {@link MARKED}.
 */
export async function correctPictures(file: FileHandle): Promise<void> {
  for (let at = 0; ; at += WINDOW_BYTES - OVERLAP) {
    if (isTurnOver()) await waitForTurn();
    const { bytes, found } = await readAt(file, at, WINDOW_BYTES);
    const text = bytes.toString('latin1', 0, found);
    let isChanged = false;
    for (const { 0: whole, 1: type = '', 2: start = '', index } of text.matchAll(PICTURE)) {
      const actual = TYPES[start];
      const data = text.slice(index + whole.length - start.length, index + whole.length + OVERLAP);
      const corrected =
        actual !== type.toLowerCase() ? ' '.repeat(type.length) : (await isTurned(data)) ? MARKED : type;
      if (corrected === type) continue;
      bytes.write(corrected, index + 'data:'.length, 'latin1');
      isChanged = true;
    }
    if (isChanged) await writeAt(file, at, bytes.subarray(0, found));
    if (found < WINDOW_BYTES) return;
  }
}

/** Returns whether a JPEG, of which the start is given in Base64, is turned or flipped by Exif. */
async function isTurned(data: string): Promise<boolean> {
  const exif = Buffer.from(EXIF.exec(data)?.[1] ?? '', 'base64');
  const { orientation = 1 } = await readExif(bufferReader(exif), 0);
  return orientation > 1;
}
