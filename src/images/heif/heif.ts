/**
 * @module Reads the headers of AVIF and HEIC (ISO/IEC 14496-12 and 23008-12). The properties `irot`
 * and `imir` state the orientation. The orientation in EXIF has no effect.
 */
import { colourOf, declared, isSrgbColour } from '../colour/declared-colour.ts';
import { classifyProfile } from '../colour/icc.ts';
import { type ByteReader, bufferReader, type WindowReader } from '../containers/file.ts';
import { type Box, findBox, isComplete, parseBoxes } from '../containers/parts.ts';
import { readExif } from '../exif.ts';
import {
  type Area,
  combineOrientations,
  type ImageFacts,
  type Orientation,
  type PixelFormat,
  RGB_PIXELS,
  type Size,
} from '../image-info.ts';
import type { Kind } from '../kinds.ts';
import {
  ALPHA_TYPES,
  declaredSize,
  type HeifMeta,
  isAlpha,
  metadataKindOf,
  parseMeta,
  readNumber,
} from './heif-items.ts';
import { hasContradictorySizes, readGreyRange } from './heif-sizes.ts';

/** Bytes to read for the box `meta`, which is near the start and usually has about 1 KiB. */
export const META_BYTES = 64 * 1024;

/** Reads size, colours and metadata of an AVIF or HEIC (ISO/IEC 14496-12, section 8.11). */
export async function readHeif(bytes: WindowReader): Promise<ImageFacts> {
  const head = Buffer.from(await bytes.read(0, META_BYTES));
  const top = parseBoxes(head);
  const body = findBox(top, 'meta')?.subarray(4);
  if (!body) return { pixels: RGB_PIXELS };
  const meta = parseMeta(body);
  const { items, primary, properties, propertiesOf, references } = meta;
  // If no properties are associated with the primary image, any can be meant.
  const own = propertiesOf(primary) ?? properties;
  const lacksAlphaSize = alphasOf(meta).some((alpha) => !alpha.some(({ name }) => name === 'ispe'));
  const kinds: readonly Kind[] = [
    ...(lacksAlphaSize ? (['alpha-without-properties'] as const) : []),
    ...(isLosslessYcgco(own) ? (['ycgco-re'] as const) : []),
    ...(hasAlphaTrack(top) && alphasOf(meta).length === 0 ? (['sequence-alpha'] as const) : []),
  ];
  return {
    pixels: pixelsOf(meta, own, head),
    ...(largestSize(own) ?? largestSize(properties)),
    largest: largestSize(properties),
    ...plannedTransforms(meta, apertureIn(own)),
    // `pixi`: version and flags, number of channels, bits of each.
    deep: properties.some(({ name, body }) => name === 'pixi' && (body[5] ?? 8) > 8),
    ...colourIn(own),
    ...(await limitedGreys(meta, bytes, own)),
    ...(await resolutionIn(meta, bytes)),
    kinds,
    // The colours are multiplied by the alpha (ISO/IEC 23008-12, 6.10.1.2).
    premultiplied: references.some(({ type, from }) => type === 'prem' && from === primary),
    gainMap: items.some(({ type }) => type === TONE_MAP) || properties.some(isGainMap),
    metadata: items.flatMap((item) => metadataKindOf(item) ?? []),
    hasIgnoredFrames: framesIn(top) > 1,
    contradictory: await hasContradictorySizes(meta, bytes),
  };
}

function pixelsOf(meta: HeifMeta, own: readonly Box[], head: Buffer): PixelFormat {
  const coded = meta.propertiesOf(firstTileOf(meta)) ?? [];
  const channels = [...own, ...coded].find(({ name }) => name === 'pixi')?.body;
  const profile = profileIn(own);
  return {
    alpha: alphasOf(meta).length > 0,
    bits: channels?.[5] ?? 8,
    colourSpace: channels?.[4] === 1 ? 'grey' : 'rgb',
    profile: profile && { at: profile.byteOffset - head.byteOffset + 4, length: profile.length - 4 },
    orientation: orientationIn(own),
  };
}

/** Reads the resolution from EXIF, which the offset of its header precedes (23008-12, A.2.1). */
async function resolutionIn(
  { items, locations, idat }: HeifMeta,
  bytes: ByteReader,
): Promise<Pick<ImageFacts, 'resolution'>> {
  const place = locations.get(items.find(({ type }) => type === 'Exif')?.id ?? Number.NaN);
  if (!place) return {};
  const data = place.inBox ? bufferReader(idat) : bytes;
  const skipped = readNumber(await data.read(place.offset, 4), 0, 4);
  if (skipped === undefined) return {};
  const { resolution } = await readExif(data, place.offset + 4 + skipped);
  return resolution ? { resolution } : {};
}

/** Name of the property that crops. */
export const APERTURE = 'clap';

/**
 * Reads the clean aperture (ISO/IEC 14496-12, section 12.1.4); undefined if it is not in whole
 * pixels, not inside of the image, or applies after a rotation.
 */
function apertureIn(properties: readonly Box[]): Area | undefined {
  const { name, body } = properties.find((one) => [APERTURE, ...ROTATIONS].includes(one.name)) ?? {};
  const [whole] = properties.flatMap((property) => declaredSize(property) ?? []);
  if (name !== APERTURE || !whole || !body || body.length < 32) return undefined;
  const [width = 0, height = 0] = [0, 8].map((at) => body.readUInt32BE(at) / body.readUInt32BE(at + 4));
  // The offsets are those of the centre, and signed.
  const [right = 0, down = 0] = [16, 24].map((at) => body.readInt32BE(at) / body.readUInt32BE(at + 4));
  const [x, y] = [right + (whole.width - width) / 2, down + (whole.height - height) / 2];
  const isWhole = [x, y, width, height].every((side) => Number.isInteger(side) && side >= 0);
  const isInside = width > 0 && height > 0 && x + width <= whole.width && y + height <= whole.height;
  return isWhole && isInside ? { x, y, width, height } : undefined;
}

/** Returns the properties of each alpha of the primary image. */
function alphasOf({ primary, references, propertiesOf }: HeifMeta): (readonly Box[])[] {
  return references
    .filter(({ type, to }) => type === 'auxl' && primary !== undefined && to.includes(primary))
    .map(({ from }) => propertiesOf(from) ?? [])
    .filter((properties) => properties.some(isAlpha));
}

/** Returns the first item that the primary image is derived from, such as a tile of a grid. */
const firstTileOf = ({ primary, references }: HeifMeta): number | undefined =>
  references.find(({ type, from }) => type === 'dimg' && from === primary)?.to[0];

/** Finds the largest size of an item (`ispe`); undefined if there is none. */
function largestSize(properties: readonly Box[]): Size | undefined {
  const sizes = properties.flatMap((property) => declaredSize(property) ?? []);
  return sizes.sort((one, other) => other.width * other.height - one.width * one.height)[0];
}

const colourType = (colr: Buffer): string => colr.toString('latin1', 0, 4);

/** Finds the code points (`nclx`), which state primaries, transfer, matrix and range. */
export const codePointsIn = (properties: readonly Box[]): Buffer[] =>
  properties.flatMap(({ name, body }) => (name === 'colr' && colourType(body) === 'nclx' ? body : []));

/** Returns whether the content of a box `colr` is an ICC profile. */
export const isProfile = (colr: Buffer): boolean => ['prof', 'rICC'].includes(colourType(colr));

const profileIn = (properties: readonly Box[]): Buffer | undefined =>
  properties.find(({ name, body }) => name === 'colr' && isProfile(body))?.body;

/** Matrices of YCgCo-Re and -Ro, with 1 or 2 bits more for chroma (ITU-T H.273, table 4). */
const YCGCO_R = [16, 17];

/** Returns whether code points state YCgCo-R, which libheif before 1.19 takes for YCbCr. */
function isLosslessYcgco(properties: readonly Box[]): boolean {
  return codePointsIn(properties).some((points) => YCGCO_R.includes(readNumber(points, 8, 2) ?? 0));
}

/** Reads the colour space: of an ICC profile, or else of code points (`nclx`). */
function colourIn(properties: readonly Box[]): ImageFacts {
  const profile = profileIn(properties);
  if (profile) return { profile: classifyProfile(profile.subarray(4)), externalProfile: isComplete(profile) };
  const points = codePointsIn(properties).find(({ length }) => length >= 8);
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
 * Reads the range of the samples if the image has a single channel of limited range (ITU-T H.273,
 * section 8.3), which libheif does not expand. The code points take precedence over the sequence
 * header of AV1.
 */
async function limitedGreys(meta: HeifMeta, bytes: ByteReader, own: readonly Box[]): Promise<ImageFacts> {
  const coded = firstTileOf(meta) ?? meta.primary;
  const bits = bitsOfGreys(meta.propertiesOf(coded) ?? own);
  if (bits === undefined) return {};
  const [points] = codePointsIn(own);
  const isLimited = points
    ? ((points[10] ?? 0x80) & 0x80) === 0
    : coded !== undefined && (await readGreyRange(meta, bytes, coded)) === false;
  if (!isLimited) return {};
  const [scale, white] = [2 ** (bits - 8), 2 ** bits - 1];
  return { greyRange: [(16 * scale) / white, (235 * scale) / white] };
}

/** Reads the bits of a single channel from its codec's configuration; undefined for more. */
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

/** Reads the largest luminance in cd/m²: of the content (`clli`), or of its display (`mdcv`). */
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

/** Returns whether a sequence has a track of alpha (AVIF, section 3; ISO/IEC 14496-12, 12.1.1). */
function hasAlphaTrack(top: readonly Box[]): boolean {
  const tracks = parseBoxes(findBox(top, 'moov')).filter(({ name }) => name === 'trak');
  return tracks.some(({ body }) => ALPHA_TYPES.some((type) => body.includes(type)));
}

/** Names of the properties that rotate and mirror. */
export const ROTATIONS = ['irot', 'imir'];

/** Orientations by the number of quarter turns anticlockwise, and by the axis of a mirroring. */
const TURNED = [1, 8, 3, 6] as const;
const MIRRORED = [4, 2] as const;

/**
 * Returns the aperture and the rotation of the primary image if it has an aperture, or if its alpha
 * has another rotation. libheif crops and rotates each image by its own properties, and libavif
 * writes none for the alpha, to which those of the primary image apply.
 */
function plannedTransforms(meta: HeifMeta, aperture: Area | undefined): ImageFacts {
  const orientation = orientationIn(meta.propertiesOf(meta.primary) ?? []);
  if (orientation === undefined) return {};
  const differs = orientation !== 1 && alphasOf(meta).some((alpha) => orientationIn(alpha) !== orientation);
  return aperture || differs ? { orientation, plannedTransforms: true, aperture } : {};
}

/** Type of an item that derives HDR with a gain map (ISO 21496-1; ISO/IEC 23008-12, 6.6.2.4). */
const TONE_MAP = 'tmap';
/** Type of Apple's gain maps. */
const APPLE_GAIN_MAP = 'urn:com:apple:photo:2020:aux:hdrgainmap';
const isGainMap = ({ name, body }: Box): boolean =>
  name === 'auxC' && body.toString('latin1', 4).startsWith(APPLE_GAIN_MAP);

/** Returns the orientation of properties in their order; undefined if one is repeated. */
function orientationIn(properties: readonly Box[]): Orientation | undefined {
  const transforms = properties.filter(({ name }) => ROTATIONS.includes(name));
  if (new Set(transforms.map(({ name }) => name)).size < transforms.length) return undefined;
  return transforms
    .map(
      ({ name, body: [value = 0] }): Orientation =>
        name === 'irot' ? (TURNED[value & 3] as Orientation) : (MIRRORED[value & 1] as Orientation),
    )
    .reduce(combineOrientations, 1);
}
