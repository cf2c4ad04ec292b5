import type { Picture } from '../plan/types.ts';
import type { Bytes } from './bytes.ts';

const TAG = {
  newSubfileType: 254,
  width: 256,
  height: 257,
  bitsPerSample: 258,
  compression: 259,
  photometric: 262,
  orientation: 274,
} as const;
/** A smaller version of another page, for quick display: bit 0 of NewSubfileType. */
const REDUCED = 1;
const PHOTOMETRIC = { whiteIsZero: 0, separated: 5 } as const;
/** Whatever its colours, such a file is read with its orientation half applied. */
const JPEG = 7;

/** The version in the header; that of BigTIFF, which is laid out differently, is 43. */
const CLASSIC = 42;
/** More pages or tags than this are refused or overlooked: no honest file comes near. */
const MOST_PAGES = 512;
const MOST_TAGS = 200;

/** The pages of a classic TIFF, and what is special about the first (TIFF 6.0, sections 2, 8, 16 and 22). */
export async function readTiff(bytes: Bytes): Promise<Omit<Picture, 'type'>> {
  const read = numberReader((await bytes.at(0, 1))[0] === 0x4d);
  if ((await read(bytes, 2, 2)) !== CLASSIC) return {};
  const pages: number[] = [];
  const visited = new Set<number>();
  let first: ReadonlyMap<number, number> | undefined;
  let offset = await read(bytes, 4, 4);

  for (let page = 0; offset && !visited.has(offset) && page < MOST_PAGES; page += 1) {
    visited.add(offset);
    const tags = await readTags(bytes, read, offset);
    if (!((tags.get(TAG.newSubfileType) ?? 0) & REDUCED)) {
      pages.push(page);
      first ??= tags;
    }
    const count = (await read(bytes, offset, 2)) ?? 0;
    offset = await read(bytes, offset + 2 + count * 12, 4);
  }
  return first ? { pages, ...traits(first) } : {};
}

function traits(tags: ReadonlyMap<number, number>): Omit<Picture, 'type'> {
  const [width, height] = [tags.get(TAG.width), tags.get(TAG.height)];
  const photometric = tags.get(TAG.photometric);
  return {
    ...(width !== undefined && height !== undefined && { width, height }),
    cmyk: photometric === PHOTOMETRIC.separated,
    inverted: photometric === PHOTOMETRIC.whiteIsZero && [2, 4].includes(tags.get(TAG.bitsPerSample) ?? 1),
    ...(tags.get(TAG.compression) === JPEG && { mirroredFor: tags.get(TAG.orientation) ?? 1 }),
  };
}

export type ReadNumber = (bytes: Bytes, offset: number, length: number) => Promise<number | undefined>;

/** Reads unsigned numbers in the order of bytes that a TIFF is in. */
export function numberReader(bigEndian: boolean): ReadNumber {
  return async (bytes, offset, length) => {
    const raw = await bytes.at(offset, length);
    if (raw.length < length) return undefined;
    return bigEndian ? raw.readUIntBE(0, length) : raw.readUIntLE(0, length);
  };
}

/** The tags of the directory at `from` that hold one small number; of the others, something that nobody asks for. */
export async function readTags(bytes: Bytes, read: ReadNumber, from: number): Promise<Map<number, number>> {
  const count = Math.min((await read(bytes, from, 2)) ?? 0, MOST_TAGS);
  const tags = new Map<number, number>();
  for (let at = from + 2; at < from + 2 + count * 12; at += 12) {
    const tag = await read(bytes, at, 2);
    const isLong = (await read(bytes, at + 2, 2)) === 4;
    const value = await read(bytes, at + 8, isLong ? 4 : 2);
    if (tag === undefined || value === undefined) break;
    tags.set(tag, value);
  }
  return tags;
}
