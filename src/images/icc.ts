/** @module Classifies embedded colour profiles: sRGB, greys or other (ICC.1:2022). */
import { constants, inflateSync } from 'node:zlib';
import { encodeSrgb } from './colour/declared-colour.ts';
import { determinant, type Matrix3, type Vector } from './colour/icc-writer.ts';
import type { WindowReader } from './containers/file.ts';
import type { ImageInfo, Profile } from './image-info.ts';

/** Maximum size of a profile to classify, in bytes. Larger profiles contain lookup tables and are not plain sRGB. */
export const MAX_PROFILE_BYTES = 64 * 1024;

/** Maximum size of a profile to extract, in bytes. The largest printer profiles have about 2 MiB. */
export const MAX_EXTRACTED_BYTES = 4 * 1024 ** 2;

/** sRGB's primaries as profiles state them, adapted to D50 (IEC 61966-2-1; ICC.1, annex E). */
const SRGB_PRIMARIES = [0.4361, 0.2225, 0.0139, 0.3851, 0.7169, 0.0971, 0.1431, 0.0606, 0.7141];
/** Tolerance for rounding by profile writers; the nearest other colour spaces are 20 times as far away. */
const PRIMARY_TOLERANCE = 0.002;
/** Less than one step of 8 bits, so that a conversion would hardly change a pixel. */
const CURVE_TOLERANCE = 0.75 / 255;
/** Lookup tables, which override primaries and curves. */
const TABLES = ['A2B0', 'A2B1', 'A2B2'];
const MAX_TAGS = 100;

/** Kinds of pixels that a profile can describe. */
export type ColourModel = 'grey' | 'rgb' | 'cmyk';

/** Colour spaces of usable profiles (ICC.1, 7.2.6). Many greyscale images have an RGB profile. */
const COLOUR_SPACES: Readonly<Record<ColourModel, readonly string[]>> = {
  grey: ['GRAY', 'RGB '],
  rgb: ['RGB '],
  cmyk: ['CMYK'],
};

/**
 * Checks whether the profile at `start` describes such pixels. ImageMagick would apply a profile of greys, Lab or XYZ
 * to RGB pixels.
 *
 * @param model undefined if the profile can be of any kind
 */
export async function isProfileFor(
  bytes: WindowReader,
  start: number,
  model: ColourModel | undefined,
): Promise<boolean> {
  return !model || COLOUR_SPACES[model].includes(await readColourSpace(bytes, start));
}

/** Reads the colour space of the profile at `start`, such as `RGB ` (ICC.1, 7.2.6). */
export async function readColourSpace(bytes: WindowReader, start: number): Promise<string> {
  return (await bytes.read(start + 16, 4)).toString('latin1');
}

/** Classifies the uncompressed profile at `start`. `model` is as in {@link isProfileFor}. */
export async function readProfile(
  bytes: WindowReader,
  start: number,
  length: number,
  model?: ColourModel,
): Promise<Profile> {
  if (!(await isProfileFor(bytes, start, model))) return 'unusable';
  // Browsers ignore a profile that states more bytes than it has, but ImageMagick applies it.
  const stated = await bytes.read(start, 4);
  if (stated.length === 4 && stated.readUInt32BE() > length) return 'unusable';
  if (length > MAX_PROFILE_BYTES) return 'other';
  return classifyProfile(await bytes.read(start, Math.max(0, length)));
}

/**
 * Checks whether a profile equals sRGB, so that no conversion is needed. A profile whose primaries are on one line cannot describe
 * colours: all would become one. Invalid profiles are `other`.
 */
export function classifyProfile(profile: Buffer): Profile {
  try {
    if (profile.toString('latin1', 16, 20) === 'GRAY') return 'grey';
    const primaries = readPrimaries(profile);
    if (primaries && Math.abs(determinant(primaries)) < MIN_DETERMINANT) return 'unusable';
    return primaries && isSrgb(primaries, readTags(profile)) ? 'srgb' : 'other';
  } catch {
    return 'other'; // truncated or invalid: the tool reports it
  }
}

/**
 * Reads the description of the profile of an image (ICC.1:2022, 9.2.41 and 10.15; version 2, 6.5.17), such as "sRGB
 * IEC61966-2.1".
 *
 * @returns undefined if it has no profile, or if that has no description
 */
export async function describeProfile(
  bytes: WindowReader,
  { type, pixels }: ImageInfo,
): Promise<string | undefined> {
  if (!pixels?.profile) return undefined;
  const { at, length } = pixels.profile;
  const stored = Buffer.from(await bytes.read(at, Math.min(length, MAX_PROFILE_BYTES)));
  const profile = type === 'png' ? inflateAfterName(stored) : stored;
  return profile && describe(profile);
}

/** Decompresses the start of a profile in a PNG, after its name. */
function inflateAfterName(chunk: Buffer): Buffer | undefined {
  try {
    const compressed = chunk.subarray(chunk.indexOf(0) + 2);
    return inflateStart(compressed, 64 * MAX_PROFILE_BYTES).subarray(0, MAX_PROFILE_BYTES);
  } catch {
    return undefined;
  }
}

function describe(profile: Buffer): string | undefined {
  const tag = readTags(profile).get('desc');
  const kind = tag?.toString('latin1', 0, 4);
  if (tag && kind === 'desc' && tag.length >= 12)
    return tag.toString('latin1', 12, 12 + tag.readUInt32BE(8)).replace(/\0.*$/s, '') || undefined;
  if (!tag || kind !== 'mluc' || tag.length < 28) return undefined;
  const text = tag.subarray(tag.readUInt32BE(24)).subarray(0, tag.readUInt32BE(20));
  const whole = Buffer.from(text.subarray(0, text.length & ~1)); // an incomplete profile can end within a character
  return whole.swap16().toString('utf16le').replace(/\0.*$/s, '') || undefined;
}

/** Compressed bytes that contain the header of a profile. */
const DEFLATED_HEADER_BYTES = 1024;

/**
 * Classifies a profile that PNG has compressed, as {@link classifyProfile} does. libpng ignores a profile of another colour
 * space, and a profile with wrong lengths. A profile above {@link MAX_PROFILE_BYTES} is not checked for these.
 *
 * @param colourSpace colour space of the pixels
 */
export function classifyDeflatedProfile(compressed: Buffer, colourSpace: 'GRAY' | 'RGB '): Profile {
  try {
    const start = inflateStart(compressed.subarray(0, DEFLATED_HEADER_BYTES));
    if (start.toString('latin1', 16, 20) !== colourSpace) return 'unusable';
    if (start.readUInt32BE() > MAX_PROFILE_BYTES) return 'other';
    const profile = inflateProfile(compressed);
    return hasRightLengths(profile) ? classifyProfile(profile) : 'unusable';
  } catch {
    return 'other';
  }
}

/** Decompresses as much as there is. */
function inflateStart(compressed: Buffer, maxOutputLength = MAX_PROFILE_BYTES): Buffer {
  return inflateSync(compressed, { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength });
}

/** Decompresses a profile. Ignores a wrong checksum of four bytes at the end, as libpng does. */
function inflateProfile(compressed: Buffer): Buffer {
  try {
    return inflateStart(compressed);
  } catch {
    return inflateStart(compressed.subarray(0, -4));
  }
}

/**
 * Checks the length of a profile and the positions of its tags, as libpng does (png_icc_check_length, png_icc_check_header and
 * png_icc_check_tag_table). From version 4 on, the length is a multiple of 4.
 */
function hasRightLengths(profile: Buffer): boolean {
  const length = profile.readUInt32BE();
  if (length > profile.length || (length % 4 !== 0 && (profile[8] as number) > 3)) return false;
  const count = profile.readUInt32BE(128);
  if (132 + count * 12 > length) return false;
  return Array.from({ length: count }, (_, at) => 136 + at * 12).every(
    (at) => profile.readUInt32BE(at) + profile.readUInt32BE(at + 4) <= length,
  );
}

/** Minimum determinant of usable primaries. That of sRGB is 0.2, and that of a display with half its saturation is 0.05. */
const MIN_DETERMINANT = 0.0001;

function isSrgb(primaries: Matrix3, tags: ReadonlyMap<string, Buffer>): boolean {
  const isNear = (value: number, at: number): boolean =>
    Math.abs(value - (SRGB_PRIMARIES[at] as number)) < PRIMARY_TOLERANCE;
  return (
    primaries.flat().every(isNear) && ['rTRC', 'gTRC', 'bTRC'].every((name) => isSrgbCurve(tags.get(name)))
  );
}

/** Reads X, Y and Z of red, green and blue. Returns undefined for a profile without primaries, or with lookup tables. */
function readPrimaries(profile: Buffer): Matrix3 | undefined {
  if (profile.toString('latin1', 16, 20) !== 'RGB ' || profile.toString('latin1', 20, 24) !== 'XYZ ')
    return undefined;
  const tags = readTags(profile);
  const [red, green, blue] = ['rXYZ', 'gXYZ', 'bXYZ'].map((name) => tags.get(name));
  if (!red || !green || !blue || TABLES.some((name) => tags.has(name))) return undefined;
  const xyz = (tag: Buffer): Vector => [fixed(tag, 8), fixed(tag, 12), fixed(tag, 16)];
  return [xyz(red), xyz(green), xyz(blue)];
}

/** Finds the start of each tag by its name (ICC.1, 7.3). The content of a tag states its length, too. */
function readTags(profile: Buffer): Map<string, Buffer> {
  const complete = Math.max(0, Math.floor((profile.length - 132) / 12));
  const count = complete && Math.min(profile.readUInt32BE(128), complete, MAX_TAGS);
  const entry = (at: number): [string, Buffer] => [
    profile.toString('latin1', at, at + 4),
    profile.subarray(profile.readUInt32BE(at + 4)),
  ];
  return new Map(Array.from({ length: count }, (_, index) => entry(132 + index * 12)));
}

/** Compares a curve with sRGB's at every sixteenth, in the gamma-encoded scale. */
function isSrgbCurve(tag: Buffer | undefined): boolean {
  const curve = tag && readCurve(tag);
  return (
    curve !== undefined &&
    Array.from({ length: 17 }, (_, step) => step / 16).every(
      (value) => Math.abs(encodeSrgb(curve(value)) - value) < CURVE_TOLERANCE,
    )
  );
}

/** Reads a curve as a function from 0..1 to 0..1; supports only the types that encode sRGB. */
function readCurve(tag: Buffer): ((value: number) => number) | undefined {
  const type = tag.toString('latin1', 0, 4);
  if (type === 'para' && tag.readUInt16BE(8) === 3) {
    const [g = 1, a = 1, b = 0, c = 1, d = 0] = [0, 1, 2, 3, 4].map((item) => fixed(tag, 12 + item * 4));
    return (value) => (value >= d ? (a * value + b) ** g : c * value);
  }
  const count = type === 'curv' ? tag.readUInt32BE(8) : 0;
  if (count < 2) return undefined;
  const sample = (index: number): number => tag.readUInt16BE(12 + index * 2) / 65535;
  return (value) => {
    const place = value * (count - 1);
    const below = Math.min(Math.floor(place), count - 2);
    return sample(below) + (sample(below + 1) - sample(below)) * (place - below);
  };
}

function fixed(tag: Buffer, at: number): number {
  return tag.readInt32BE(at) / 65536;
}
