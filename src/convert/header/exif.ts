import type { Orientation } from '../plan/types.ts';
import type { WindowReader } from './bytes.ts';
import { createEndianReader, readIfd } from './tags.ts';

const ORIENTATION = 0x0112;

/** The orientation in the EXIF that starts at `start`: a TIFF directory without a picture (EXIF 2.32, 4.5). */
export async function readOrientation(bytes: WindowReader, start: number): Promise<{ orientation?: Orientation }> {
  const read = createEndianReader((await bytes.read(start, 1))[0] === 0x4d);
  const directory = start + ((await read(bytes, start + 4, 4)) ?? 0);
  const value = (await readIfd(bytes, read, directory)).get(ORIENTATION)?.value;
  return isOrientation(value) ? { orientation: value } : {};
}

/** Whether a tag's value is an orientation: the specification has 1 to 8, and files have anything. */
export function isOrientation(value: number | undefined): value is Orientation {
  return value !== undefined && Number.isInteger(value) && value >= 1 && value <= 8;
}

/** Some writers put JPEG's marker in front of EXIF in other formats, too. */
export async function skipExifMarker(bytes: WindowReader, start: number): Promise<number> {
  const head = await bytes.read(start, 6);
  return head.toString('latin1') === 'Exif\0\0' ? start + 6 : start;
}
