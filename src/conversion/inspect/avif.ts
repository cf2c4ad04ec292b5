import type { ImageInfo, MetadataKind, NamedSpace, Profile } from '../plan/types.ts';
import { classifyProfile } from './icc.ts';
import type { WindowReader } from './window-reader.ts';

/** The `meta` box, which describes the items, is near the start; real ones have about 1 KiB. */
const META_BYTES = 64 * 1024;
const MAX_ITEMS = 1000;

/** Item types that are pictures of their own: coded, or put together from others (ISO/IEC 23008-12). */
const IMAGE_TYPES = ['av01', 'hvc1', 'hev1', 'jpeg', 'avc1', 'j2k1', 'vvc1', 'unci', 'grid', 'iden', 'iovl'];

/**
 * How many pictures stand beside each other in an AVIF or a HEIC, which of them is the one to show, counted
 * from 1 in the order of their numbers, and what comes with it (ISO/IEC 14496-12, section 8.11).
 */
export async function readAvif(bytes: WindowReader): Promise<Omit<ImageInfo, 'type'>> {
  const file = await bytes.read(0, META_BYTES);
  const top = parseBoxes(file);
  const meta = findBox(top, 'meta')?.subarray(4);
  if (!meta) return {};
  const boxes = parseBoxes(meta);
  const pitm = findBox(boxes, 'pitm');
  const items = parseItems(findBox(boxes, 'iinf'));

  const primary = readNumber(pitm, 4, pitm?.[0] === 0 ? 2 : 4);
  const parts = auxiliaryItemIds(findBox(boxes, 'iref'));
  const shown = items
    .filter(({ id, type, hidden }) => IMAGE_TYPES.includes(type) && !hidden && !parts.has(id))
    .map(({ id }) => id)
    .sort((a, b) => a - b);
  const at = primary === undefined ? -1 : shown.indexOf(primary);
  const iprp = findBox(boxes, 'iprp');
  return {
    ...largestSize(iprp),
    ...(isDeep(iprp) && { deep: true }),
    ...coloursIn(iprp),
    metadata: items.flatMap(({ type }) => METADATA[type] ?? []),
    ...(at >= 0 && { images: { count: shown.length, primary: at + 1 } }),
    ...(framesIn(top) > 1 && { hasIgnoredFrames: true }),
  };
}

/** Items that describe others (ISO/IEC 23008-12, annex A); what is not EXIF is XMP. */
const METADATA: Readonly<Record<string, MetadataKind>> = { Exif: 'exif', mime: 'xmp' };

interface Box {
  readonly name: string;
  /** Version and flags are part of it, where the box has them. */
  readonly body: Buffer;
}

/** What is in the first box of that name; of several names, each inside the one before. */
function findBox(boxes: readonly Box[], name: string, ...deeper: string[]): Buffer | undefined {
  const body = boxes.find((box) => box.name === name)?.body;
  const [next, ...rest] = deeper;
  return body && next ? findBox(parseBoxes(body), next, ...rest) : body;
}

function parseBoxes(data: Buffer): Box[] {
  const boxes: Box[] = [];
  for (let at = 0; at + 8 <= data.length && boxes.length < MAX_ITEMS; ) {
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

interface Item {
  readonly id: number;
  readonly type: string;
  readonly hidden: boolean;
}

function parseItems(iinf: Buffer | undefined): Item[] {
  if (!iinf) return [];
  return parseBoxes(iinf.subarray(iinf[0] === 0 ? 6 : 8)).flatMap(({ name, body }) => {
    const idLength = body[0] === 2 ? 2 : 4;
    const id = readNumber(body, 4, idLength);
    const type = body.toString('latin1', 6 + idLength, 10 + idLength);
    return name === 'infe' && id !== undefined ? [{ id, type, hidden: ((body[3] ?? 0) & 1) === 1 }] : [];
  });
}

/** The numbers of the items that are another's thumbnail, or its transparency or depth. */
function auxiliaryItemIds(iref: Buffer | undefined): Set<number> {
  if (!iref) return new Set();
  const idLength = iref[0] === 0 ? 2 : 4;
  const parts = parseBoxes(iref.subarray(4)).filter(({ name }) => name === 'thmb' || name === 'auxl');
  return new Set(parts.flatMap(({ body }) => readNumber(body, 0, idLength) ?? []));
}

/**
 * The largest of the sizes that items have (`ispe`): whichever item that is of, all of them may be decoded,
 * and a picture that is put together from tiles is the largest itself.
 */
function largestSize(iprp: Buffer | undefined): { width?: number; height?: number } {
  const sizes = propertiesIn(iprp)
    .filter(({ name, body }) => name === 'ispe' && body.length >= 12)
    .map(({ body }) => ({ width: body.readUInt32BE(4), height: body.readUInt32BE(8) }));
  return sizes.reduce<{ width?: number; height?: number }>(
    (most, size) => (size.width * size.height > (most.width ?? 0) * (most.height ?? 0) ? size : most),
    {},
  );
}

/** More than 8 bits a channel (`pixi`: version and flags, a count of channels, the bits of each). */
function isDeep(iprp: Buffer | undefined): boolean {
  return propertiesIn(iprp).some(({ name, body }) => name === 'pixi' && (body[5] ?? 8) > 8);
}

function propertiesIn(iprp: Buffer | undefined): Box[] {
  return parseBoxes((iprp && findBox(parseBoxes(iprp), 'ipco')) ?? Buffer.alloc(0));
}

/** A profile that is written out comes before colours named by numbers (ISO/IEC 14496-12, section 12.1.5). */
function coloursIn(iprp: Buffer | undefined): { profile: Profile; namedSpace?: NamedSpace } {
  const colours = propertiesIn(iprp)
    .filter(({ name }) => name === 'colr')
    .map(({ body }) => ({ kind: body.toString('latin1', 0, 4), body: body.subarray(4) }));
  const profiles = colours
    .filter(({ kind }) => kind === 'prof' || kind === 'rICC')
    .map(({ body }) => classifyProfile(body));
  if (profiles.length > 0) return { profile: profiles.find((kind) => kind === 'other') ?? 'srgb' };
  const [named] = colours.filter(({ kind }) => kind === 'nclx').map(({ body }) => spaceNamed(body));
  return named ? { profile: 'other', namedSpace: named } : { profile: 'none' };
}

/** By their numbers in ITU-T H.273; other primaries are sRGB's, or too rare. */
const PRIMARIES: Readonly<Record<number, NamedSpace>> = { 9: 'rec2020', 12: 'display-p3' };
/** PQ and HLG, whose light no profile of sRGB's curve describes. */
const HIGH_DYNAMIC_RANGE: readonly (number | undefined)[] = [16, 18];

function spaceNamed(nclx: Buffer): NamedSpace | undefined {
  if (HIGH_DYNAMIC_RANGE.includes(readNumber(nclx, 2, 2))) return undefined;
  return PRIMARIES[readNumber(nclx, 0, 2) ?? 0];
}

/** How many pictures the first track of a sequence has (ISO/IEC 14496-12, section 8.7.3). */
function framesIn(top: readonly Box[]): number {
  const sizes = findBox(top, 'moov', 'trak', 'mdia', 'minf', 'stbl', 'stsz');
  return readNumber(sizes, 8, 4) ?? 0;
}
