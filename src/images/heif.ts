/** @module Reads the headers of AVIF and HEIC (ISO/IEC 14496-12 and 23008-12). */
import { colourOf, declared, isSrgbColour } from './colour/code-points.ts';
import type { WindowReader } from './containers/window-reader.ts';
import {
  type Box,
  createPropertyFinder,
  findBox,
  isComplete,
  parseBoxes,
  parseItems,
  parseProperties,
  parseReferences,
  primaryIn,
  readNumber,
} from './heif-items.ts';
import { isAlpha, plannedRotation } from './heif-rotation.ts';
import { hasContradictorySizes } from './heif-sizes.ts';
import { classifyProfile } from './icc.ts';
import type { ImageFacts, MetadataKind } from './image-info.ts';

/** Bytes to read for the `meta` box, which describes the items: it is near the start and usually has about 1 KiB. */
export const META_BYTES = 64 * 1024;

/** Reads the largest size of an AVIF or HEIC and whether it is true, the colours and the metadata (ISO/IEC 14496-12, section 8.11). */
export async function readAvif(bytes: WindowReader): Promise<ImageFacts<'avif'>> {
  const file = Buffer.from(await bytes.read(0, META_BYTES));
  const top = parseBoxes(file);
  const meta = findBox(top, 'meta')?.subarray(4);
  if (!meta) return {};
  const boxes = parseBoxes(meta);
  const items = parseItems(findBox(boxes, 'iinf'));

  const primary = primaryIn(boxes);
  const references = parseReferences(findBox(boxes, 'iref'));
  const iprp = findBox(boxes, 'iprp');
  const propertiesOf = createPropertyFinder(iprp);
  // If no properties are associated with the primary image, any can be meant.
  const own = propertiesOf(primary) ?? parseProperties(iprp);
  const alphas = references.flatMap(({ type, from, to }) =>
    type === 'auxl' && primary !== undefined && to.includes(primary) ? [propertiesOf(from) ?? []] : [],
  );
  const lacksAlphaSize = alphas.some((one) => one.some(isAlpha) && !one.some(({ name }) => name === 'ispe'));
  const [tile] = references.find(({ type, from }) => type === 'dimg' && from === primary)?.to ?? [];
  return {
    ...largestSize(iprp),
    ...plannedRotation(boxes, primary),
    ...(isDeep(iprp) && { deep: true }),
    ...colourIn(own),
    ...limitedGreys(own, propertiesOf(tile) ?? own),
    ...(lacksAlphaSize && { misread: ['alpha-without-size'] as const }),
    // The colours are multiplied by the alpha (ISO/IEC 23008-12, 6.10.1.2).
    ...(references.some(({ type, from }) => type === 'prem' && from === primary) && { premultiplied: true }),
    metadata: items.flatMap(({ type }) => METADATA[type] ?? []),
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

const colourType = (colr: Buffer): string => colr.toString('latin1', 0, 4);

/** Returns whether the content of a box `colr` is an ICC profile. */
export const isProfile = (colr: Buffer): boolean => ['prof', 'rICC'].includes(colourType(colr));

/** Reads the colour space: of an ICC profile, or else of code points (`nclx`). */
function colourIn(properties: readonly Box[]): Pick<ImageFacts<'avif'>, 'profile' | 'declaredColour'> {
  const colours = properties.filter(({ name }) => name === 'colr').map(({ body }) => body);
  const profile = colours.find(isProfile);
  if (profile)
    return {
      profile: classifyProfile(profile.subarray(4)),
      ...(isComplete(profile) && { externalProfile: true }),
    };
  const points = colours.find((body) => colourType(body) === 'nclx' && body.length >= 8);
  const colour =
    points &&
    colourOf({
      primaries: points.readUInt16BE(4),
      transfer: points.readUInt16BE(6),
      peak: peakIn(properties),
    });
  return colour && !isSrgbColour(colour) ? declared(colour) : { profile: 'none' };
}

/**
 * Reads the range of the samples if the image has a single channel of limited range (ITU-T H.273, section 8.3), which libheif
 * does not expand.
 *
 * @param coded properties of the image, or of a tile
 */
function limitedGreys(own: readonly Box[], coded: readonly Box[]): Pick<ImageFacts<'avif'>, 'greyRange'> {
  const points = own.find(({ name, body }) => name === 'colr' && colourType(body) === 'nclx')?.body;
  const isFullRange = ((points?.[10] ?? 0x80) & 0x80) !== 0;
  const bits = isFullRange ? undefined : bitsOfGreys(coded);
  if (bits === undefined) return {};
  const [scale, white] = [2 ** (bits - 8), 2 ** bits - 1];
  return { greyRange: [(16 * scale) / white, (235 * scale) / white] };
}

/** Reads the bits of a single channel from the configuration of its codec; undefined if there are more channels. */
function bitsOfGreys(properties: readonly Box[]): number | undefined {
  for (const { name, body } of properties) {
    // AV1-ISOBMFF, section 2.3.3: bits for more than 8 bits, for 12 bits, and for a single channel.
    const flags = name === 'av1C' ? (body[2] ?? 0) : 0;
    if ((flags & 0x10) !== 0) return (flags & 0x40) === 0 ? 8 : (flags & 0x20) === 0 ? 10 : 12;
    // ISO/IEC 14496-15, section 8.3.3.1: the chroma format, and the bits minus 8.
    if (name === 'hvcC' && body.length > 17 && ((body[16] as number) & 3) === 0)
      return 8 + ((body[17] as number) & 7);
  }
  return undefined;
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
