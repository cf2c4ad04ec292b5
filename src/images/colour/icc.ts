/** @module Classifies embedded colour profiles: sRGB, greys or other (ICC.1:2022). */
import { constants, inflateSync } from 'node:zlib';
import type { WindowReader } from '../containers/file.ts';
import type { ImageInfo, Profile } from '../image-info.ts';
import { encodeSrgb } from './declared-colour.ts';
import {
  assembleProfile,
  determinant,
  type Matrix3,
  neutralTexts,
  type ProfileTag,
  type Vector,
} from './icc-writer.ts';

/** Maximum bytes of a profile to classify. Larger ones have lookup tables, and are not sRGB. */
export const MAX_PROFILE_BYTES = 64 * 1024;

/** Maximum bytes of a profile to extract. The largest printer profiles have about 2 MiB. */
export const MAX_EXTRACTED_BYTES = 4 * 1024 ** 2;

/** sRGB's primaries as profiles state them, adapted to D50 (IEC 61966-2-1; ICC.1, annex E). */
const SRGB_PRIMARIES = [0.4361, 0.2225, 0.0139, 0.3851, 0.7169, 0.0971, 0.1431, 0.0606, 0.7141];
/** Tolerance for rounding by writers; the nearest other colour spaces are 20 times as far away. */
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
 * Checks whether the profile at `start` describes such pixels. ImageMagick would apply a profile of
 * greys, Lab or XYZ to RGB pixels.
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

/** Offset of the major version of a profile. */
const VERSION_AT = 8;

/**
 * Returns whether the length of a profile is not a multiple of 4, as version 4 requires
 * (ICC.1:2022, 7.2.2). libpng writes no such profile: ImageMagick 6 drops it, and 7 fails.
 *
 * @param head its first 9 bytes at least
 */
export const isMisaligned = (head: Buffer, length: number): boolean =>
  length % 4 !== 0 && (head[VERSION_AT] as number) > 3;

/** Pads a profile to the length that its version requires. */
export function alignProfile(profile: Buffer): Buffer {
  if (!isMisaligned(profile, profile.length)) return profile;
  const aligned = Buffer.concat([profile, Buffer.alloc(-profile.length & 3)]);
  aligned.writeUInt32BE(aligned.length);
  return aligned;
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
 * Checks whether a profile equals sRGB, so that no conversion is needed. A profile whose primaries
 * are on one line cannot describe colours: all would become one. Invalid profiles are `other`.
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
 * Reads the description of the profile of an image (ICC.1:2022, 9.2.41 and 10.15; version 2,
 * 6.5.17), such as "sRGB IEC61966-2.1"; undefined if there is none.
 */
export async function describeProfile(bytes: WindowReader, image: ImageInfo): Promise<string | undefined> {
  const profile = await readEmbeddedProfile(bytes, image);
  return profile && describe(profile);
}

/** Reads the profile in a file, or the first {@link MAX_PROFILE_BYTES}; undefined without one. */
export async function readEmbeddedProfile(
  bytes: WindowReader,
  { type, pixels }: ImageInfo,
): Promise<Buffer | undefined> {
  if (!pixels?.profile) return undefined;
  const { at, length } = pixels.profile;
  const stored = Buffer.from(await bytes.read(at, Math.min(length, MAX_PROFILE_BYTES)));
  return type === 'png' ? inflateAfterName(stored) : stored;
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
 * Classifies a profile that PNG has compressed, as {@link classifyProfile} does. libpng ignores a
 * profile of another colour space than that of the pixels, and a profile with wrong lengths. A
 * profile above {@link MAX_PROFILE_BYTES} is not checked for these.
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
 * Checks the length of a profile and the positions of its tags, as libpng does
 * (png_icc_check_length, png_icc_check_header and png_icc_check_tag_table). From version 4 on, the
 * length is a multiple of 4.
 */
function hasRightLengths(profile: Buffer): boolean {
  const length = profile.readUInt32BE();
  if (length > profile.length || isMisaligned(profile, length)) return false;
  const count = profile.readUInt32BE(128);
  if (132 + count * 12 > length) return false;
  return Array.from({ length: count }, (_, at) => 136 + at * 12).every(
    (at) => profile.readUInt32BE(at) + profile.readUInt32BE(at + 4) <= length,
  );
}

/** Minimum determinant of usable primaries: sRGB has 0.2, half its saturation has 0.05. */
const MIN_DETERMINANT = 0.0001;

function isSrgb(primaries: Matrix3, tags: ReadonlyMap<string, Buffer>): boolean {
  const isNear = (value: number, at: number): boolean =>
    Math.abs(value - (SRGB_PRIMARIES[at] as number)) < PRIMARY_TOLERANCE;
  return (
    primaries.flat().every(isNear) && ['rTRC', 'gTRC', 'bTRC'].every((name) => isSrgbCurve(tags.get(name)))
  );
}

/** Reads XYZ of red, green and blue; undefined without primaries, or with lookup tables. */
export function readPrimaries(profile: Buffer): Matrix3 | undefined {
  if (profile.toString('latin1', 16, 20) !== 'RGB ' || profile.toString('latin1', 20, 24) !== 'XYZ ')
    return undefined;
  const tags = readTags(profile);
  const [red, green, blue] = ['rXYZ', 'gXYZ', 'bXYZ'].map((name) => tags.get(name));
  if (!red || !green || !blue || TABLES.some((name) => tags.has(name))) return undefined;
  const xyz = (tag: Buffer): Vector => [fixed(tag, 8), fixed(tag, 12), fixed(tag, 16)];
  return [xyz(red), xyz(green), xyz(blue)];
}

/** Finds the start of each tag by its name (ICC.1, 7.3). The content states its length, too. */
export const readTags = (profile: Buffer): Map<string, Buffer> =>
  new Map(readTagTable(profile).map(({ name, offset }) => [name, profile.subarray(offset)]));

function readTagTable(profile: Buffer) {
  const complete = Math.max(0, Math.floor((profile.length - 132) / 12));
  const count = complete && Math.min(profile.readUInt32BE(128), complete, MAX_TAGS);
  return Array.from({ length: count }, (_, index) => {
    const at = 132 + index * 12;
    const [offset, length] = [profile.readUInt32BE(at + 4), profile.readUInt32BE(at + 8)];
    return { name: profile.toString('latin1', at, at + 4), offset, length };
  });
}

/** Tags that decide the colours of a device (ICC.1:2022, section 8; `bkpt` of version 2). */
const COLOUR_TAGS = /^(?:wtpt|bkpt|chad|[rgb]XYZ|[rgbk]TRC|[AB]2[AB][012]|gamt)$/;
/**
 * Parts of a header that decide the colours: the version to the connection space, the signature,
 * the intent and the white point.
 */
const COLOUR_FIELDS = [
  [8, 24],
  [36, 40],
  [64, 80],
] as const;

/** Returns a profile with the same colours, but no texts, date, or bytes outside of tags. */
export function withoutTexts(profile: Buffer): Buffer {
  const head = Buffer.alloc(128);
  for (const [start, end] of COLOUR_FIELDS) profile.copy(head, start, start, end);
  const contents = new Map<string, Buffer>();
  const tags = readTagTable(profile)
    .filter(({ name }) => COLOUR_TAGS.test(name))
    .map(({ name, offset, length }): ProfileTag => {
      const key = `${offset} ${length}`;
      const content = contents.get(key) ?? padded(profile.subarray(offset, offset + length));
      contents.set(key, content);
      return [name, content];
    });
  return assembleProfile(head, [...neutralTexts((profile[8] ?? 0) < 4), ...tags]);
}

const padded = (content: Buffer): Buffer => Buffer.concat([content, Buffer.alloc(-content.length & 3)]);

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

/** A function from 0..1, usually to 0..1. */
type Curve = (value: number) => number;

/**
 * Parameters g, a, b, c, d, e, f of each type of parametric curve: Y = (aX + b)^g + e for X ≥ d,
 * and Y = cX + f below (ICC.1:2022, table 68).
 */
const PARAMETRIC: readonly ((...parameters: number[]) => readonly number[])[] = [
  (g = 1) => [g, 1, 0, 0, 0, 0, 0],
  (g = 1, a = 1, b = 0) => [g, a, b, 0, -b / a, 0, 0],
  (g = 1, a = 1, b = 0, c = 0) => [g, a, b, 0, -b / a, c, c],
  (g = 1, a = 1, b = 0, c = 0, d = 0) => [g, a, b, c, d, 0, 0],
  (...parameters) => parameters,
];

/** Reads a curve: an exponent, samples, or a formula (ICC.1:2022, 10.6, 10.18), or undefined. */
export function readCurve(tag: Buffer): Curve | undefined {
  const type = tag.toString('latin1', 0, 4);
  if (type === 'para') {
    const stored = Array.from({ length: 7 }, (_, at) =>
      16 + at * 4 <= tag.length ? fixed(tag, 12 + at * 4) : 0,
    );
    const parameters = PARAMETRIC[tag.readUInt16BE(8)]?.(...stored);
    if (!parameters) return undefined;
    const [g = 1, a = 1, b = 0, c = 0, d = 0, e = 0, f = 0] = parameters;
    return (value) => (value >= d ? Math.max(0, a * value + b) ** g + e : c * value + f);
  }
  if (type !== 'curv') return undefined;
  const count = tag.readUInt32BE(8);
  if (count === 0) return (value) => value;
  if (count === 1) return (value) => value ** (tag.readUInt16BE(12) / 256);
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
