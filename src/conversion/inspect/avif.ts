import type { ImageInfo, MetadataKind, NamedSpace, Profile } from '../plan/types.ts';
import { classifyProfile } from './icc.ts';
import type { WindowReader } from './window-reader.ts';

/** Bytes to read for the `meta` box, which describes the items: it is near the start and usually has about 1 KiB. */
const META_BYTES = 64 * 1024;
const MAX_ITEMS = 1000;

/** Item types of images: coded, or derived from other items (ISO/IEC 23008-12). */
const IMAGE_TYPES = ['av01', 'hvc1', 'hev1', 'jpeg', 'avc1', 'j2k1', 'vvc1', 'unci', 'grid', 'iden', 'iovl'];

/**
 * Reads the number of top-level images of an AVIF or HEIC, the index of the primary one (counted from 1, in the order of
 * the item IDs), the largest size, the colour profile and the metadata (ISO/IEC 14496-12, section 8.11).
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

/** Metadata items (ISO/IEC 23008-12, annex A); `mime` items are assumed to be XMP. */
const METADATA: Readonly<Record<string, MetadataKind>> = { Exif: 'exif', mime: 'xmp' };

interface Box {
  readonly name: string;
  /** The payload, including version and flags in a full box. */
  readonly body: Buffer;
}

/** Finds the payload of the first box with this name; with several names, each nested in the previous one. */
function findBox(boxes: readonly Box[], name: string, ...deeper: string[]): Buffer | undefined {
  const body = boxes.find((box) => box.name === name)?.body;
  const [next, ...rest] = deeper;
  return body && next ? findBox(parseBoxes(body), next, ...rest) : body;
}

function parseBoxes(data: Buffer): Box[] {
  const boxes: Box[] = [];
  for (let at = 0; at + 8 <= data.length && boxes.length < MAX_ITEMS; ) {
    const size = data.readUInt32BE(at);
    if (size < 8) break; // to the end of the file, or a 64-bit size: not used by the boxes read here
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

/** Collects the IDs of items that are a thumbnail, alpha or depth of another item. */
function auxiliaryItemIds(iref: Buffer | undefined): Set<number> {
  if (!iref) return new Set();
  const idLength = iref[0] === 0 ? 2 : 4;
  const parts = parseBoxes(iref.subarray(4)).filter(({ name }) => name === 'thmb' || name === 'auxl');
  return new Set(parts.flatMap(({ body }) => readNumber(body, 0, idLength) ?? []));
}

/**
 * Finds the largest item size (`ispe`). The tools may decode any item, and an image derived from tiles is larger than
 * its tiles.
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

/** Returns whether a channel has more than 8 bits (`pixi`: version and flags, number of channels, bits of each). */
function isDeep(iprp: Buffer | undefined): boolean {
  return propertiesIn(iprp).some(({ name, body }) => name === 'pixi' && (body[5] ?? 8) > 8);
}

function propertiesIn(iprp: Buffer | undefined): Box[] {
  return parseBoxes((iprp && findBox(parseBoxes(iprp), 'ipco')) ?? Buffer.alloc(0));
}

/**
 * Classifies the embedded ICC profile, or else the colours given by code points (`nclx`). A profile takes precedence
 * (ISO/IEC 14496-12, section 12.1.5).
 */
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

/** Colour spaces by their primaries (ITU-T H.273). Others are read as sRGB: they are sRGB's, or rare. */
const PRIMARIES: Readonly<Record<number, NamedSpace>> = { 9: 'rec2020', 12: 'display-p3' };
/** Transfer characteristics of PQ and HLG. No profile with the curve of sRGB describes them. */
const HIGH_DYNAMIC_RANGE: readonly (number | undefined)[] = [16, 18];

function spaceNamed(nclx: Buffer): NamedSpace | undefined {
  if (HIGH_DYNAMIC_RANGE.includes(readNumber(nclx, 2, 2))) return undefined;
  return PRIMARIES[readNumber(nclx, 0, 2) ?? 0];
}

/** Counts the frames of the first track of an image sequence (ISO/IEC 14496-12, section 8.7.3). */
function framesIn(top: readonly Box[]): number {
  const sizes = findBox(top, 'moov', 'trak', 'mdia', 'minf', 'stbl', 'stsz');
  return readNumber(sizes, 8, 4) ?? 0;
}
