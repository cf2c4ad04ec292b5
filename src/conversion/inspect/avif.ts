/** @module Reads the headers of AVIF and HEIC (ISO/IEC 14496-12 and 23008-12). */
import { colourOf, declared, isSrgbColour } from '../colour/code-points.ts';
import type { ImageInfo, MetadataKind } from '../plan/image-info.ts';
import {
  type Box,
  createPropertyFinder,
  findBox,
  parseBoxes,
  parseItems,
  parseProperties,
  parseReferences,
  readNumber,
} from './heif-items.ts';
import { plannedRotation } from './heif-rotation.ts';
import { hasContradictorySizes } from './heif-sizes.ts';
import { classifyProfile } from './icc.ts';
import type { WindowReader } from './window-reader.ts';

/** Bytes to read for the `meta` box, which describes the items: it is near the start and usually has about 1 KiB. */
export const META_BYTES = 64 * 1024;

/** Item types of images: coded, or derived from other items (ISO/IEC 23008-12). */
const IMAGE_TYPES = ['av01', 'hvc1', 'hev1', 'jpeg', 'avc1', 'j2k1', 'vvc1', 'unci', 'grid', 'iden', 'iovl'];

/**
 * Reads the number of top-level images of an AVIF or HEIC, the index of the primary one (counted from 1, in the order of
 * the item IDs), the largest size and whether it is true, the colour profile and the metadata (ISO/IEC 14496-12,
 * section 8.11).
 */
export async function readAvif(bytes: WindowReader): Promise<Omit<ImageInfo, 'type'>> {
  const file = Buffer.from(await bytes.read(0, META_BYTES));
  const top = parseBoxes(file);
  const meta = findBox(top, 'meta')?.subarray(4);
  if (!meta) return {};
  const boxes = parseBoxes(meta);
  const pitm = findBox(boxes, 'pitm');
  const items = parseItems(findBox(boxes, 'iinf'));

  const primary = readNumber(pitm, 4, pitm?.[0] === 0 ? 2 : 4);
  const references = parseReferences(findBox(boxes, 'iref'));
  const idsOf = (...types: string[]) =>
    new Set(references.filter(({ type }) => types.includes(type)).map(({ from }) => from));
  const parts = idsOf('thmb', 'auxl'); // a thumbnail, alpha or depth of another item
  const shown = items
    .filter(({ id, type, hidden }) => IMAGE_TYPES.includes(type) && !hidden && !parts.has(id))
    .map(({ id }) => id)
    .sort((a, b) => a - b);
  const at = primary === undefined ? -1 : shown.indexOf(primary);
  const iprp = findBox(boxes, 'iprp');
  return {
    ...largestSize(iprp),
    ...plannedRotation(boxes, primary),
    ...(isDeep(iprp) && { deep: true }),
    // If no properties are associated with the primary image, any can be meant.
    ...colourIn(createPropertyFinder(iprp)(primary) ?? parseProperties(iprp)),
    // The colours are multiplied by the alpha (ISO/IEC 23008-12, 6.10.1.2).
    ...(primary !== undefined && idsOf('prem').has(primary) && { premultiplied: true }),
    metadata: items.flatMap(({ type }) => METADATA[type] ?? []),
    ...(at >= 0 && { images: { count: shown.length, primary: at + 1 } }),
    ...(framesIn(top) > 1 && { hasIgnoredFrames: true }),
    ...((await hasContradictorySizes(meta, bytes)) && { contradictory: true }),
  };
}

/** Metadata items (ISO/IEC 23008-12, annex A); `mime` items are assumed to be XMP. */
const METADATA: Readonly<Record<string, MetadataKind>> = { Exif: 'exif', mime: 'xmp' };

/**
 * Finds the largest item size (`ispe`). The tools may decode any item, and an image derived from tiles is larger than
 * its tiles.
 */
function largestSize(iprp: Buffer | undefined): { width?: number; height?: number } {
  const sizes = parseProperties(iprp)
    .filter(({ name, body }) => name === 'ispe' && body.length >= 12)
    .map(({ body }) => ({ width: body.readUInt32BE(4), height: body.readUInt32BE(8) }));
  return sizes.reduce<{ width?: number; height?: number }>(
    (most, size) => (size.width * size.height > (most.width ?? 0) * (most.height ?? 0) ? size : most),
    {},
  );
}

/** Returns whether a channel has more than 8 bits (`pixi`: version and flags, number of channels, bits of each). */
function isDeep(iprp: Buffer | undefined): boolean {
  return parseProperties(iprp).some(({ name, body }) => name === 'pixi' && (body[5] ?? 8) > 8);
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

/** Counts the frames of the first track of an image sequence (ISO/IEC 14496-12, section 8.7.3). */
function framesIn(top: readonly Box[]): number {
  const sizes = findBox(top, 'moov', 'trak', 'mdia', 'minf', 'stbl', 'stsz');
  return readNumber(sizes, 8, 4) ?? 0;
}
