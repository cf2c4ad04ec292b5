/** @module Reads the chunks of a PNG (W3C PNG, third edition). */
import type { WindowReader } from './containers/file.ts';
import { MAX_PNG_CHUNKS, type Part, pngChunks } from './containers/parts.ts';
import { readOrientation } from './exif.ts';
import { classifyDeflatedProfile, MAX_PROFILE_BYTES } from './icc.ts';
import { addFacts, type ImageFacts, type PixelFormat } from './image-info.ts';
import { LENGTHS, type PngColourChunks, parseColourChunk, pngColour } from './png-colour.ts';
import { kindOfChunk } from './png-text.ts';

const COLOUR_TYPE = { grey: 0, palette: 3 } as const;
/** Offset of the colour type in the file. */
const COLOUR_TYPE_AT = 25;
/** Bits of the colour types that have colours, not greys, and that have alpha. */
const COLOUR_BIT = 2;
const ALPHA_BIT = 4;

/** Maximum bits per pixel of flat images: a compressed screenshot has 1 to 3, a photo 8 and more. */
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
    ...{ width, height, profile: 'none', metadata: [] },
    ...paletteKindOf(depth, colourType),
    ...(depth === 16 && { deep: true }),
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
    const colourBytes = LENGTHS[name];
    if (colourBytes !== undefined)
      colour = {
        ...parseColourChunk(name, await bytes.read(offset, Math.min(length, colourBytes))),
        ...colour,
      };
    info = addFacts(info, parsed);
    count += 1;
    end = chunk.end;
    isComplete = name === 'IEND' && (await bytes.read(end - 1, 1)).length === 1;
    if (name === 'IEND') break;
  }
  const declared = pngColour(colour, info.profile ?? 'none');
  return {
    ...info,
    pixels,
    ...(!isComplete && count < MAX_PNG_CHUNKS && { incomplete: true }),
    ...declared,
    ...(declared.declaredColour && (colourType & COLOUR_BIT) === 0 && { profile: 'grey' }),
    // Some files announce frames that they do not have.
    ...(info.hasIgnoredFrames && { hasIgnoredFrames: seen.has('fdAT') }),
    flat: end * 8 < MAX_FLAT_BITS_PER_PIXEL * width * height,
  };
}

function paletteKindOf(depth: number, colourType: number): Pick<ImageFacts, 'paletteKind'> {
  if (colourType === COLOUR_TYPE.palette) return { paletteKind: 'palette' };
  return colourType === COLOUR_TYPE.grey && depth === 1 ? { paletteKind: 'bilevel' } : {};
}

const CHUNKS: Readonly<
  Record<string, (bytes: WindowReader, chunk: Part) => Promise<ImageFacts | undefined>>
> = {
  eXIf: async (bytes, { offset }) => ({
    ...(await readOrientation(bytes, offset)),
    metadata: ['exif'],
  }),
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
