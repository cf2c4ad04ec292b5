/** @module Reads the segments of a JPEG before its pixels (ITU-T T.81). */
import { deflateRawSync } from 'node:zlib';
import {
  type ColourModel,
  isMisaligned,
  isProfileFor,
  MAX_PROFILE_BYTES,
  readProfile,
} from '../colour/icc.ts';
import { type WindowReader, withReader } from '../containers/file.ts';
import { JFIF_SEGMENT, jpegSegments, type Segment, START_OF_SCAN } from '../containers/parts.ts';
import { readExif } from '../exif.ts';
import { addFacts, type ImageFacts, isSameSize, type MetadataKind } from '../image-info.ts';
import { resolutionOf, UNIT } from '../resolution.ts';
import { XMP_NAMESPACES } from '../xmp-edits.ts';

const QUANTIZATION_TABLES = 0xdb;
/** Frame headers of lossless and hierarchical JPEG, Huffman and arithmetic (T.81, table B.1). */
const UNSUPPORTED_PROCESSES = [0xc3, 0xc5, 0xc6, 0xc7, 0xcb, 0xcd, 0xce, 0xcf];

/**
 * Maximum bits per pixel of smooth images, times the square root of the mean quantization step:
 * coarser steps save bits. At quality 90, these are 2 bits. Photos of a camera have 0.7 to 1.8, and
 * text, scans and small photos 2.4 to 4.2.
 */
const MAX_SMOOTH_BITS = 7;

/** log2 of the parts of a smooth scan after which samples are taken: a sixteenth to a half. */
const SAMPLED_AFTER = [4, 3, 2, 1];
const SAMPLE_BYTES = 4096;
/**
 * Minimum size of a photo's samples after compression with Deflate, relative to the samples. Photos
 * have 0.985 or more, drawings and pages of large print 0.82 to 0.98 (`bench/README.md`).
 */
const MIN_SMOOTH_DENSITY = 0.984;
/** Minimum number of pixels for taking the sample, which takes less than a millisecond. */
const MIN_SAMPLED_PIXELS = 500_000;

/** Components that libjpeg decodes; a frame header has three bytes for each. */
const MAX_COMPONENTS = 4;
/** Columns and rows of a block. */
const BLOCK = 8;
/** Kinds of pixels by the number of components. */
export const COLOUR_MODELS: Readonly<Record<number, ColourModel>> = { 1: 'grey', 3: 'rgb', 4: 'cmyk' };
/** Units of a JFIF segment by number. 0 states only the shape of the pixels. */
const JFIF_UNITS: Readonly<Record<number, number>> = { 1: UNIT.inch, 2: UNIT.centimetre };
/** Marker and name of a segment with a part of the profile. */
const PROFILE_SEGMENT = 226;
const PROFILE_NAME = 'ICC_PROFILE\0';
/** Offset of a part of the profile, after the name, its number from 1, and the number of parts. */
const PROFILE_AT = 14;
const MAX_PROFILE_PARTS = 255;
/** Bytes of XMP in which a gain map is declared (Adobe's gain map specification, 1.0). */
const MAX_XMP_START = 4096;

/** Reads the frame header, and the metadata in segments before the pixels (ITU-T T.81, B.2). */
export async function readJpeg(bytes: WindowReader): Promise<ImageFacts> {
  let frame: ImageFacts = {};
  let metadataInfo: ImageFacts = { metadata: [] };
  let model: ColourModel | undefined;
  const parts: ProfilePart[] = [];
  let step: number | undefined;
  let jfif: ImageFacts = {};
  let scan = 0;
  for await (const segment of jpegSegments(bytes)) {
    const { marker, offset, start, end } = segment;
    scan = marker === START_OF_SCAN ? start : end;
    if (isFrameHeader(marker)) {
      const header = Buffer.from(await bytes.read(offset, 6 + 3 * MAX_COMPONENTS));
      if (header.length < 6) break;
      model = COLOUR_MODELS[header[5] as number];
      frame = {
        height: header.readUInt16BE(1),
        width: header.readUInt16BE(3),
        cmyk: header[5] === 4,
        pixels: { alpha: false, bits: header[0] as number, colourSpace: model ?? 'rgb' },
        ...readCodedUnit(header),
        kinds: UNSUPPORTED_PROCESSES.includes(marker) || header[0] !== 8 ? ['jpeg-process'] : [],
      };
    }
    if (marker === QUANTIZATION_TABLES) step ??= await readMeanStep(bytes, offset);
    if (marker === JFIF_SEGMENT) jfif = { ...(await readJfif(bytes, offset)), ...jfif };
    const parsed = await APP_SEGMENTS[marker]?.(bytes, segment);
    const part = await readProfilePart(bytes, segment);
    if (part && parts.length <= MAX_PROFILE_PARTS) parts.push(part);
    if (parsed && !isRepeated(parsed, metadataInfo)) metadataInfo = addFacts(metadataInfo, parsed);
  }
  const { pixels } = frame;
  if (!pixels) return {};
  const profile = parts.find(({ number }) => number === 1);
  return {
    ...frame,
    ...metadataInfo,
    ...jfif, // takes precedence over EXIF, as in other programs
    pixels: { ...pixels, profile },
    ...(await readPartedProfile(bytes, parts, model)), // only now, because the frame header follows the profile
    detailed: await isDetailed(bytes, scan, frame, step),
    jpegQuality: step ? toQuality(step) : undefined,
  };
}

/** Reads the resolution in a JFIF segment (T.871, 10.1). */
async function readJfif(bytes: WindowReader, offset: number): Promise<ImageFacts> {
  const head = await bytes.read(offset, 12);
  if (head.length < 12 || head.toString('latin1', 0, 5) !== 'JFIF\0') return {};
  return resolutionOf(head.readUInt16BE(8), head.readUInt16BE(10), JFIF_UNITS[head[7] as number]);
}

/** Part of a profile in a segment (ICC.1, B.4). */
interface ProfilePart {
  /** Number of the part, from 1, and the stated number of parts. */
  readonly number: number;
  readonly count: number;
  readonly at: number;
  readonly length: number;
}

async function readProfilePart(
  bytes: WindowReader,
  { marker, offset, length }: Segment,
): Promise<ProfilePart | undefined> {
  if (marker !== PROFILE_SEGMENT) return undefined;
  const head = await bytes.read(offset, PROFILE_AT);
  if (length < PROFILE_AT || !head.toString('latin1').startsWith(PROFILE_NAME)) return undefined;
  const [number = 0, count = 0] = head.subarray(PROFILE_NAME.length);
  return { number, count, at: offset + PROFILE_AT, length: length - PROFILE_AT };
}

/**
 * Returns the parts in the order of their numbers. Like libjpeg, returns none if a part is missing
 * or has the number of another.
 */
function sortParts(parts: readonly ProfilePart[]): ProfilePart[] {
  const sorted = parts.toSorted((one, other) => one.number - other.number);
  const isRight = ({ number, count }: ProfilePart, at: number): boolean =>
    number === at + 1 && count === parts.length;
  return sorted.every(isRight) ? sorted : [];
}

/**
 * Reads the kind of a profile. It is external if ImageMagick would misread it, because it joins the
 * parts in the order in which the file has them, and ignores their numbers; or if it cannot be
 * written to a PNG.
 */
async function readPartedProfile(
  bytes: WindowReader,
  parts: readonly ProfilePart[],
  model: ColourModel | undefined,
): Promise<ImageFacts> {
  if (parts.length === 0) return { profile: 'none' };
  const sorted = sortParts(parts);
  const [first] = sorted;
  if (!first || !(await isProfileFor(bytes, first.at, model))) return { profile: 'unusable' };
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const isExternal =
    sorted.some((part, at) => part !== parts[at]) || isMisaligned(await bytes.read(first.at, 9), length);
  return {
    profile: sorted.length === 1 ? await readProfile(bytes, first.at, length, model) : 'other',
    externalProfile: isExternal,
  };
}

/** Reads the profile of the JPEG at `path`, and puts its parts in order. */
export function readJpegProfile(path: string): Promise<Buffer> {
  return withReader(path, async (bytes) => {
    const parts: ProfilePart[] = [];
    for await (const segment of jpegSegments(bytes)) {
      const part = await readProfilePart(bytes, segment);
      if (part && parts.length <= MAX_PROFILE_PARTS) parts.push(part);
    }
    const contents: Buffer[] = [];
    for (const { at, length } of sortParts(parts)) contents.push(Buffer.from(await bytes.read(at, length)));
    return Buffer.concat(contents);
  });
}

/** Reads the sampling factors of a frame header (T.81, A.1.1 and A.2). */
function readCodedUnit(header: Buffer): ImageFacts {
  const count = Math.min(header[5] ?? 0, MAX_COMPONENTS);
  if (count < 2 || header.length < 6 + 3 * count) return {};
  const factors = Array.from({ length: count }, (_, at) => header[7 + 3 * at] ?? 0);
  const [columns, rows] = [factors.map((factor) => factor >> 4), factors.map((factor) => factor & 15)];
  const [across, down] = [Math.max(...columns), Math.max(...rows)];
  const isEven = (_: number, at: number): boolean => {
    const ratio = across / (columns[at] || 1);
    return ratio <= 2 && ratio === down / (rows[at] || 1);
  };
  const codedUnit = { width: BLOCK * across, height: BLOCK * down, even: factors.every(isEven) };
  return codedUnit.even && isSameSize(codedUnit, { width: BLOCK, height: BLOCK }) ? {} : { codedUnit };
}

/** Returns the mean of the first quantization table, for luminance (T.81, B.2.4.1). */
async function readMeanStep(bytes: WindowReader, start: number): Promise<number | undefined> {
  const table = await bytes.read(start, 1 + 64 * 2);
  const bytesPerStep = (table[0] ?? 0) >> 4 === 0 ? 1 : 2;
  if (table.length < 1 + 64 * bytesPerStep) return undefined;
  let sum = 0;
  for (let at = 0; at < 64; at += 1) sum += table.readUIntBE(1 + at * bytesPerStep, bytesPerStep);
  return sum / 64;
}

/** Mean of the table for luminance that encoders scale by the quality (T.81, table K.1). */
const STANDARD_STEP = 3685 / 64;

/** Returns the quality for which libjpeg scales tables to this mean (`jpeg_quality_scaling`). */
function toQuality(step: number): number {
  const scale = (100 * step) / STANDARD_STEP;
  const quality = scale > 100 ? 5000 / scale : (200 - scale) / 2;
  return Math.min(100, Math.max(1, Math.round(quality)));
}

/** Checks for sharp edges: everywhere, or between empty areas, as in a line drawing. */
async function isDetailed(
  bytes: WindowReader,
  scan: number,
  { width = 0, height = 0 }: ImageFacts,
  step: number | undefined,
): Promise<boolean> {
  if (!step) return false;
  const pixels = width * height;
  const smoothBytes = Math.floor((pixels * MAX_SMOOTH_BITS) / Math.sqrt(step) / 8);
  if ((await bytes.read(scan + smoothBytes, 1)).length > 0) return true;
  if (pixels < MIN_SAMPLED_PIXELS) return false;
  const length = Math.min(SAMPLE_BYTES, smoothBytes >> 4); // so that samples do not overlap
  const samples: Buffer[] = [];
  for (const shift of SAMPLED_AFTER)
    samples.push(Buffer.from(await bytes.read(scan + (smoothBytes >> shift), length)));
  return hasEmptyAreas(Buffer.concat(samples));
}

/** Checks a scan for repeated bytes, which equal empty blocks cause, but no photo has. */
function hasEmptyAreas(sample: Buffer): boolean {
  return deflateRawSync(sample, { level: 1 }).length < sample.length * MIN_SMOOTH_DENSITY;
}

/** Checks for a repeated segment: the first of each kind counts, as in viewers. */
function isRepeated({ metadata: kinds = [] }: ImageFacts, { metadata = [] }: ImageFacts): boolean {
  return kinds.every((kind) => metadata.includes(kind));
}

/** Readers of application segments (EXIF 2.32, 4.7; XMP part 3, 1.1.3; IPTC in Photoshop's). */
const APP_SEGMENTS: Readonly<
  Record<number, (bytes: WindowReader, segment: Segment) => Promise<ImageFacts | undefined>>
> = {
  225: async (bytes, { offset, length }) => {
    const name = (await bytes.read(offset, 28)).toString('latin1');
    if (name.startsWith('Exif\0\0')) return { ...(await readExif(bytes, offset)), metadata: ['exif'] };
    if (!name.startsWith('http://ns.adobe.com/xap/1.0/')) return undefined;
    const xmp = await bytes.read(offset, Math.min(length, MAX_XMP_START));
    return { metadata: ['xmp'], gainMap: xmp.includes(XMP_NAMESPACES.gainMap) };
  },
  237: async (bytes, { offset, length }) => {
    const resources = (await bytes.read(offset, Math.min(length, MAX_PROFILE_BYTES))).toString('latin1');
    const metadata: MetadataKind[] = resources.includes('8BIM\x04\x04') ? ['iptc'] : [];
    return resources.startsWith('Photoshop 3.0\0') ? { metadata } : undefined;
  },
};

/** Checks for SOF0 to SOF15, except DHT, JPG and DAC in the same range. */
function isFrameHeader(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
}
