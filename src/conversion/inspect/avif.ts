/** @module Reads the headers of AVIF and HEIC (ISO/IEC 14496-12 and 23008-12). */
import { colourOf, declared, isSrgbColour } from '../colour/code-points.ts';
import type { ImageInfo, MetadataKind } from '../plan/types.ts';
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
    ...colourIn(propertiesOfItem(iprp, primary)),
    ...(hasPremultipliedAlpha(findBox(boxes, 'iref'), primary) && { premultiplied: true }),
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

/** Finds the properties of an item, or all properties if no association of the item is found (section 8.11.14). */
function propertiesOfItem(iprp: Buffer | undefined, id: number | undefined): Box[] {
  const properties = propertiesIn(iprp);
  const ipma = iprp && findBox(parseBoxes(iprp), 'ipma');
  const indexes = ipma && id !== undefined ? associationsOf(ipma, id) : [];
  return indexes.length > 0 ? indexes.flatMap((index) => properties[index - 1] ?? []) : properties;
}

/** Reads the indexes of the properties of an item, counted from 1. */
function associationsOf(ipma: Buffer, id: number): number[] {
  const idLength = ipma[0] === 0 ? 2 : 4;
  const indexLength = ((ipma[3] ?? 0) & 1) === 1 ? 2 : 1;
  const mask = indexLength === 2 ? 0x7fff : 0x7f; // the highest bit marks essential properties
  for (let at = 8; at + idLength < ipma.length; ) {
    const count = readNumber(ipma, at + idLength, 1) ?? 0;
    const start = at + idLength + 1;
    if (readNumber(ipma, at, idLength) === id) {
      const indexes = Array.from({ length: count }, (_, n) =>
        readNumber(ipma, start + n * indexLength, indexLength),
      );
      return indexes.map((index = 0) => index & mask);
    }
    at = start + count * indexLength;
  }
  return [];
}

/** Reads the colour space: of an ICC profile, or else of code points (`nclx`). */
function colourIn(properties: readonly Box[]): Pick<ImageInfo, 'profile' | 'declaredColour'> {
  const colours = properties.filter(({ name }) => name === 'colr').map(({ body }) => body);
  const typeOf = (body: Buffer): string => body.toString('latin1', 0, 4);
  const profile = colours.find((body) => ['prof', 'rICC'].includes(typeOf(body)));
  if (profile) return { profile: classifyProfile(profile.subarray(4)) };
  const points = colours.find((body) => typeOf(body) === 'nclx' && body.length >= 8);
  const colour =
    points &&
    colourOf({
      primaries: points.readUInt16BE(4),
      transfer: points.readUInt16BE(6),
      peak: peakIn(properties),
    });
  return colour && !isSrgbColour(colour) ? declared(colour) : { profile: 'none' };
}

/** Reads the largest luminance in cd/m²: of the content (`clli`), or else of the display it was made on (`mdcv`). */
function peakIn(properties: readonly Box[]): number | undefined {
  const content = readNumber(properties.find(({ name }) => name === 'clli')?.body, 0, 2);
  const display = readNumber(properties.find(({ name }) => name === 'mdcv')?.body, 16, 4);
  return content || (display && display / 10_000) || undefined;
}

/** Checks whether the colours of an item are multiplied by its alpha (`prem`; ISO/IEC 23008-12, 6.10.1.2). */
function hasPremultipliedAlpha(iref: Buffer | undefined, id: number | undefined): boolean {
  if (!iref || id === undefined) return false;
  const references = parseBoxes(iref.subarray(4)).filter(({ name }) => name === 'prem');
  return references.some(({ body }) => readNumber(body, 0, iref[0] === 0 ? 2 : 4) === id);
}

/** Counts the frames of the first track of an image sequence (ISO/IEC 14496-12, section 8.7.3). */
function framesIn(top: readonly Box[]): number {
  const sizes = findBox(top, 'moov', 'trak', 'mdia', 'minf', 'stbl', 'stsz');
  return readNumber(sizes, 8, 4) ?? 0;
}
