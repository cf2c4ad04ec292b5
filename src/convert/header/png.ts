import type { Picture } from '../plan/types.ts';
import type { Bytes } from './bytes.ts';
import { numberReader, readTags } from './tiff.ts';

/** Chunks that are looked at; an image cut into more is not looked through to its end. */
const MOST_CHUNKS = 10_000;
const ORIENTATION = 0x0112;

/** Size and orientation of a PNG (W3C PNG, third edition, 11.2.1 and 11.3.4.5). */
export async function readPng(bytes: Bytes): Promise<Omit<Picture, 'type'>> {
  const header = await bytes.at(16, 8);
  if (header.length < 8) return {};
  const size = { width: header.readUInt32BE(0), height: header.readUInt32BE(4) };
  let offset = 8;
  for (let chunk = 0; chunk < MOST_CHUNKS; chunk += 1) {
    const head = await bytes.at(offset, 8);
    if (head.length < 8) break;
    const length = head.readUInt32BE(0);
    if (head.toString('latin1', 4, 8) === 'eXIf') return { ...size, ...(await readExif(bytes, offset + 8)) };
    offset += 12 + length;
  }
  return size;
}

/** EXIF is a TIFF directory, here without a picture (EXIF 2.32, 4.5). */
async function readExif(bytes: Bytes, start: number): Promise<Pick<Picture, 'orientation'>> {
  const read = numberReader((await bytes.at(start, 1))[0] === 0x4d);
  const directory = start + ((await read(bytes, start + 4, 4)) ?? 0);
  const tags = await readTags(bytes, read, directory);
  const orientation = tags.get(ORIENTATION);
  return orientation === undefined ? {} : { orientation };
}
