/** @module Reads the chunks of a PNG, and its colour space (W3C PNG, third edition). */
import { BT709_PRIMARIES, colourOf, declared, isSrgbColour, powerCurve } from '../colour/declared-colour.ts';
import { classifyDeflatedProfile, MAX_PROFILE_BYTES } from '../colour/icc.ts';
import { rgbToXyzD50 } from '../colour/icc-writer.ts';
import type { WindowReader } from '../containers/file.ts';
import { MAX_PNG_CHUNKS, type Part, pngChunks } from '../containers/parts.ts';
import { readExif } from '../exif.ts';
import {
  addFacts,
  type Chromaticity,
  differsFromSrgb,
  type ImageFacts,
  type PixelFormat,
  type Primaries,
  type Profile,
} from '../image-info.ts';
import { resolutionOf, UNIT } from '../resolution.ts';
import { kindOfChunk } from './png-text.ts';

const COLOUR_TYPE = { grey: 0, palette: 3 } as const;
/** Offset of the colour type in the file. */
const COLOUR_TYPE_AT = 25;
/** Bits of the colour types that have colours, not greys, and that have alpha. */
const COLOUR_BIT = 2;
const ALPHA_BIT = 4;

/** Maximum bits per pixel of flat images: a screenshot has 1 to 3, a photo 8 and more. */
const MAX_FLAT_BITS_PER_PIXEL = 4;

/** Bytes of a chunk with a profile to classify: its name, and data that can be incompressible. */
const MAX_CHUNK_BYTES = MAX_PROFILE_BYTES + 1024;

/** Chunks of which libpng reads only the first, and the data of further frames. */
const UNIQUE_CHUNKS = ['iCCP', 'eXIf', 'acTL', 'IDAT', 'fdAT'];

/** Reads size, colours and metadata from the chunks of a PNG (section 11). */
export async function readPng(bytes: WindowReader): Promise<ImageFacts> {
  const [first, header] = [await bytes.read(12, 4), Buffer.from(await bytes.read(16, 10))];
  // Xcode writes PNGs for iPhones with another chunk in front, which only Apple's decoders read.
  if (first.toString('latin1') !== 'IHDR' || header.length < 10) return {};
  const [depth, colourType] = [header[8] as number, header[9] as number];
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  let info: ImageFacts = {
    width,
    height,
    profile: 'none',
    metadata: [],
    ...paletteKindOf(depth, colourType),
    deep: depth === 16,
  };
  let pixels: PixelFormat = {
    alpha: (colourType & ALPHA_BIT) !== 0,
    bits: depth,
    colourSpace: (colourType & COLOUR_BIT) === 0 ? 'grey' : 'rgb',
  };
  let colour: PngColourChunks = {};
  let [count, end, isComplete] = [0, 0, false];
  const seen = new Set<string>();
  for await (const chunk of pngChunks(bytes)) {
    const { name, offset, length } = chunk;
    const parsed = seen.has(name) ? undefined : await CHUNKS[name]?.(bytes, chunk);
    if (UNIQUE_CHUNKS.includes(name)) seen.add(name);
    if (name === 'tRNS' && !seen.has('IDAT')) pixels = { ...pixels, alpha: true };
    if (name === 'iCCP' && !seen.has('IDAT')) pixels = { profile: { at: offset, length }, ...pixels };
    colour = { ...(await readColourChunk(bytes, chunk)), ...colour };
    info = addFacts(info, parsed);
    count += 1;
    end = chunk.end;
    isComplete = name === 'IEND' && (await bytes.read(end - 1, 1)).length === 1;
    if (name === 'IEND') break;
  }
  const space = pngColour(colour, info.profile ?? 'none');
  return {
    ...info,
    pixels,
    incomplete: !isComplete && count < MAX_PNG_CHUNKS,
    ...space,
    ...(space.declaredColour && (colourType & COLOUR_BIT) === 0 && { profile: 'grey' }),
    // Some files announce frames that they do not have.
    hasIgnoredFrames: info.hasIgnoredFrames === true && seen.has('fdAT'),
    flat: end * 8 < MAX_FLAT_BITS_PER_PIXEL * width * height,
  };
}

function paletteKindOf(depth: number, colourType: number): ImageFacts {
  if (colourType === COLOUR_TYPE.palette) return { paletteKind: 'palette' };
  return colourType === COLOUR_TYPE.grey && depth === 1 ? { paletteKind: 'bilevel' } : {};
}

const CHUNKS: Readonly<
  Record<string, (bytes: WindowReader, chunk: Part) => Promise<ImageFacts | undefined>>
> = {
  async eXIf(bytes, { offset }) {
    const { orientation } = await readExif(bytes, offset); // pHYs states the resolution
    return { orientation, metadata: ['exif'] };
  },
  async pHYs(bytes, { offset }) {
    const body = await bytes.read(offset, 9);
    if (body.length < 9) return undefined;
    return resolutionOf(body.readUInt32BE(0), body.readUInt32BE(4), body[8] === 1 ? UNIT.metre : undefined);
  },
  async iCCP(bytes, { offset, length }) {
    const [colourType = 0] = await bytes.read(COLOUR_TYPE_AT, 1);
    const colourSpace = colourType & COLOUR_BIT ? 'RGB ' : 'GRAY';
    const chunk = await bytes.read(offset, Math.min(length, MAX_CHUNK_BYTES));
    const name = chunk.indexOf(0);
    // The method of compression after the name is always 0.
    if (name < 0 || chunk[name + 1] !== 0) return { profile: 'unusable' };
    return { profile: classifyDeflatedProfile(chunk.subarray(name + 2), colourSpace) };
  },
  // An animated PNG: decoders show its first frame or its default image.
  async acTL(bytes, { offset }) {
    const frames = await bytes.read(offset, 4);
    return { hasIgnoredFrames: frames.length === 4 && frames.readUInt32BE(0) > 1 };
  },
  iTXt: readText,
  tEXt: readText,
  zTXt: readText,
};

async function readText(bytes: WindowReader, chunk: Part): Promise<ImageFacts | undefined> {
  const kind = await kindOfChunk(chunk, bytes);
  return kind && { metadata: [kind] };
}

interface PngColourChunks {
  readonly cICP?: { readonly primaries: number; readonly transfer: number };
  /** Whether there is an sRGB chunk. */
  readonly sRGB?: boolean;
  readonly cHRM?: Primaries;
  /** Display gamma: 2.2 for the usual value of 0.45455. */
  readonly gAMA?: number;
  /** Peak luminance of the content, in cd/m². */
  readonly cLLI?: number;
  /** Peak luminance of the mastering display, in cd/m². */
  readonly mDCV?: number;
}

/** Display gamma of Chromium for BT.709 and similar code points, which define only a camera. */
const VIDEO_SCREEN = powerCurve(2.4);

/** Tolerances of sRGB. Writers round, and state a gamma of 2.2, as 11.3.2.5 requires. */
const CHROMATICITY_TOLERANCE = 0.005;
const GAMMA_TOLERANCE = 0.05;
const SRGB_GAMMA = 2.2;
/** Range of plausible gammas. */
const MIN_GAMMA = 0.2;
const MAX_GAMMA = 10;

/**
 * Returns the colour space by the precedence of section 4.3: code points, profile, sRGB, primaries
 * with gamma. A gamma without primaries is ignored, as most decoders do, because many files contain
 * a wrong one.
 */
function pngColour({ cICP, sRGB, cHRM, gAMA, cLLI, mDCV }: PngColourChunks, profile: Profile): ImageFacts {
  const colour = cICP && colourOf({ ...cICP, screen: VIDEO_SCREEN, peak: cLLI || mDCV });
  if (colour) return isSrgbColour(colour) && !differsFromSrgb(profile) ? { profile } : declared(colour);
  if (profile !== 'none' || sRGB || !cHRM || !gAMA) return { profile };
  const isSrgb = isNear(cHRM, BT709_PRIMARIES) && Math.abs(gAMA / SRGB_GAMMA - 1) < GAMMA_TOLERANCE;
  return isSrgb ? { profile } : declared({ primaries: cHRM, transfer: powerCurve(gAMA) });
}

function isNear(some: Primaries, other: Primaries): boolean {
  const near = ([x, y]: Chromaticity, [otherX, otherY]: Chromaticity): boolean =>
    Math.max(Math.abs(x - otherX), Math.abs(y - otherY)) < CHROMATICITY_TOLERANCE;
  return (['red', 'green', 'blue', 'white'] as const).every((name) => near(some[name], other[name]));
}

/** Reads a chunk with colours; undefined if it is too short or impossible. */
async function readColourChunk(
  bytes: WindowReader,
  { name, offset, length }: Part,
): Promise<PngColourChunks | undefined> {
  const [expected, parse] = COLOUR_CHUNKS[name] ?? [];
  if (!expected || !parse || length < expected) return undefined;
  const body = await bytes.read(offset, expected);
  return body.length === expected ? parse(body) : undefined;
}

/** Chunks with colours: their length in bytes, and the parser of their content. */
const COLOUR_CHUNKS: Readonly<
  Record<string, readonly [length: number, parse: (body: Buffer) => PngColourChunks]>
> = {
  cICP: [4, ([primaries = 0, transfer = 0]) => ({ cICP: { primaries, transfer } })],
  sRGB: [1, () => ({ sRGB: true })],
  cHRM: [32, parsePrimaries],
  gAMA: [4, parseGamma],
  cLLI: [8, (body) => ({ cLLI: body.readUInt32BE(0) / 10_000 })],
  mDCV: [24, (body) => ({ mDCV: body.readUInt32BE(16) / 10_000 })],
};

function parsePrimaries(body: Buffer): PngColourChunks {
  const at = (index: number): Chromaticity => [
    body.readUInt32BE(index * 8) / 100_000,
    body.readUInt32BE(index * 8 + 4) / 100_000,
  ];
  const primaries = { white: at(0), red: at(1), green: at(2), blue: at(3) };
  return isPossible(primaries) ? { cHRM: primaries } : {};
}

function parseGamma(body: Buffer): PngColourChunks {
  const gamma = 100_000 / body.readUInt32BE(0);
  return gamma >= MIN_GAMMA && gamma <= MAX_GAMMA ? { gAMA: gamma } : {};
}

/** Checks for chromaticities whose triangle has an area, and that a profile can hold. */
function isPossible(primaries: Primaries): boolean {
  const { red, green, blue, white } = primaries;
  const points = [red, green, blue, white];
  const area = (green[0] - red[0]) * (blue[1] - red[1]) - (blue[0] - red[0]) * (green[1] - red[1]);
  return (
    points.every(([x, y]) => x >= 0 && y >= 0 && x + y <= 1) &&
    Math.abs(area) > MIN_AREA &&
    rgbToXyzD50(primaries)
      .flat()
      .every((value) => Math.abs(value) < MAX_XYZ)
  );
}

/** Smallest area of two triangles of primaries; sRGB has 0.22. */
const MIN_AREA = 0.01;
/** Largest s15Fixed16Number (ICC.1:2022, 4.6). A white that hardly excites a cone exceeds it. */
const MAX_XYZ = 32_767;
