import type { Picture } from '../plan/types.ts';
import type { Bytes } from './bytes.ts';

/** The version in the header; that of BigTIFF, which is laid out differently, is 43. */
const CLASSIC = 42;
const NEW_SUBFILE_TYPE = 254;
const PHOTOMETRIC = 262;
const SEPARATED = 5;
/** A smaller version of another page, for quick display: bit 0 of NewSubfileType. */
const REDUCED = 1;

/** More pages or tags than this are refused or overlooked: no honest file comes near. */
const MOST_PAGES = 512;
const MOST_TAGS = 200;

/** The pages of a classic TIFF, and whether the first holds inks (TIFF 6.0, sections 2, 8 and 16). */
export async function readTiff(bytes: Bytes): Promise<Omit<Picture, 'type'>> {
  const read = numberReader((await bytes.at(0, 1))[0] === 0x4d);
  if ((await read(bytes, 2, 2)) !== CLASSIC) return {};
  const pages: number[] = [];
  const visited = new Set<number>();
  let cmyk: boolean | undefined;
  let offset = await read(bytes, 4, 4);

  for (let page = 0; offset && !visited.has(offset) && page < MOST_PAGES; page += 1) {
    visited.add(offset);
    const count = (await read(bytes, offset, 2)) ?? 0;
    const tags = await readTags(bytes, read, offset + 2, Math.min(count, MOST_TAGS));
    if (!((tags.get(NEW_SUBFILE_TYPE) ?? 0) & REDUCED)) pages.push(page);
    cmyk ??= tags.get(PHOTOMETRIC) === SEPARATED;
    offset = await read(bytes, offset + 2 + count * 12, 4);
  }
  return { ...(pages.length > 0 && { pages }), ...(cmyk !== undefined && { cmyk }) };
}

type ReadNumber = (bytes: Bytes, offset: number, length: number) => Promise<number | undefined>;

function numberReader(bigEndian: boolean): ReadNumber {
  return async (bytes, offset, length) => {
    const raw = await bytes.at(offset, length);
    if (raw.length < length) return undefined;
    return bigEndian ? raw.readUIntBE(0, length) : raw.readUIntLE(0, length);
  };
}

/** The tags that hold one small number; of the others, something that nobody asks for. */
async function readTags(
  bytes: Bytes,
  read: ReadNumber,
  from: number,
  count: number,
): Promise<Map<number, number>> {
  const tags = new Map<number, number>();
  for (let at = from; at < from + count * 12; at += 12) {
    const tag = await read(bytes, at, 2);
    const isLong = (await read(bytes, at + 2, 2)) === 4;
    const value = await read(bytes, at + 8, isLong ? 4 : 2);
    if (tag === undefined || value === undefined) break;
    tags.set(tag, value);
  }
  return tags;
}
