import type { Picture } from '../plan/types.ts';
import type { Bytes } from './bytes.ts';

/** The `meta` box, which describes the items, is near the start; real ones have about 1 KiB. */
const META_BYTES = 64 * 1024;
const MOST_ITEMS = 1000;

/** Item types that are pictures of their own: coded, or put together from others (ISO/IEC 23008-12). */
const IMAGE_TYPES = ['av01', 'grid', 'iden', 'iovl'];

/**
 * How many pictures stand beside each other in an AVIF, and which of them is the one to
 * show, counted from 1 in the order of their numbers (ISO/IEC 14496-12, section 8.11).
 */
export async function readAvif(bytes: Bytes): Promise<Omit<Picture, 'type'>> {
  const file = await bytes.at(0, META_BYTES);
  const meta = boxesIn(file).find(({ name }) => name === 'meta');
  if (!meta) return {};
  const inside = new Map(boxesIn(meta.body.subarray(4)).map(({ name, body }) => [name, body]));

  const primary = readNumber(inside.get('pitm'), 4, inside.get('pitm')?.[0] === 0 ? 2 : 4);
  const parts = partsOfOthers(inside.get('iref'));
  const shown = imageItems(inside.get('iinf'))
    .filter((id) => !parts.has(id))
    .sort((a, b) => a - b);
  const at = primary === undefined ? -1 : shown.indexOf(primary);
  return at < 0 ? {} : { stills: { count: shown.length, primary: at + 1 } };
}

interface Box {
  readonly name: string;
  /** Version and flags are part of it, where the box has them. */
  readonly body: Buffer;
}

function boxesIn(data: Buffer): Box[] {
  const boxes: Box[] = [];
  for (let at = 0; at + 8 <= data.length && boxes.length < MOST_ITEMS; ) {
    const size = data.readUInt32BE(at);
    if (size < 8) break; // up to the end, or 64 bits long: neither is a box that is looked for
    boxes.push({ name: data.toString('latin1', at + 4, at + 8), body: data.subarray(at + 8, at + size) });
    at += size;
  }
  return boxes;
}

function readNumber(data: Buffer | undefined, at: number, length: number): number | undefined {
  return data && at + length <= data.length ? data.readUIntBE(at, length) : undefined;
}

/** The numbers of the items that are pictures and not hidden. */
function imageItems(iinf: Buffer | undefined): number[] {
  if (!iinf) return [];
  return boxesIn(iinf.subarray(iinf[0] === 0 ? 6 : 8)).flatMap(({ name, body }) => {
    const idLength = body[0] === 2 ? 2 : 4;
    const id = readNumber(body, 4, idLength);
    const type = body.toString('latin1', 6 + idLength, 10 + idLength);
    const hidden = ((body[3] ?? 0) & 1) === 1;
    return name === 'infe' && id !== undefined && !hidden && IMAGE_TYPES.includes(type) ? [id] : [];
  });
}

/** The numbers of the items that are another's thumbnail, or its transparency or depth. */
function partsOfOthers(iref: Buffer | undefined): Set<number> {
  if (!iref) return new Set();
  const idLength = iref[0] === 0 ? 2 : 4;
  const parts = boxesIn(iref.subarray(4)).filter(({ name }) => name === 'thmb' || name === 'auxl');
  return new Set(parts.flatMap(({ body }) => readNumber(body, 0, idLength) ?? []));
}
