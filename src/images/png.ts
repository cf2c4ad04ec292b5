/** @module Reads the chunks of a PNG (W3C PNG, third edition). */

import { readOrientation, skipExifMarker } from './containers/ifd.ts';
import type { WindowReader } from './containers/window-reader.ts';
import { classifyDeflatedProfile, MAX_PROFILE_BYTES } from './icc.ts';
import type { ImageInfo, MetadataKind } from './image-info.ts';
import { LENGTHS, type PngColourChunks, parseColourChunk, pngColour } from './png-colour.ts';
import { MAX_CHUNKS } from './png-data.ts';

const COLOUR_TYPE = { grey: 0, palette: 3 } as const;
/** Offset of the colour type in the file. */
const COLOUR_TYPE_AT = 25;
/** Bit of the colour types that have colours, not greys. */
const COLOUR_BIT = 2;

/** Maximum bits per pixel of flat images: a compressed screenshot has 1 to 3, a photo 8 and more. */
const MAX_FLAT_BITS_PER_PIXEL = 4;

/** Bytes of a chunk with a profile to classify: its name, and data that can be incompressible. */
const MAX_CHUNK_BYTES = MAX_PROFILE_BYTES + 1024;

/** Chunks of which libpng reads only the first. */
const UNIQUE_CHUNKS = ['iCCP', 'eXIf', 'acTL'];

type PartialInfo = Omit<ImageInfo, 'type'>;

/** Reads size, colours and metadata from the chunks of a PNG (W3C PNG, third edition, section 11). */
export async function readPng(bytes: WindowReader): Promise<PartialInfo> {
  const header = Buffer.from(await bytes.read(16, 10));
  if (header.length < 10) return {};
  let info: PartialInfo = {
    width: header.readUInt32BE(0),
    height: header.readUInt32BE(4),
    ...paletteKindOf(header[8] as number, header[9] as number),
    ...(header[8] === 16 && { deep: true }),
    profile: 'none',
    metadata: [],
  };
  let colour: PngColourChunks = {};
  const seen = new Set<string>();
  let offset = 8;
  let decoder: ImageInfo['decoder'];
  for (let chunk = 0; chunk < MAX_CHUNKS; chunk += 1) {
    const head = await bytes.read(offset, 8);
    if (head.length < 8) {
      decoder = 'png'; // which completes it
      break;
    }
    const length = head.readUInt32BE(0);
    const name = head.toString('latin1', 4, 8);
    const parsed = seen.has(name) ? undefined : await CHUNKS[name]?.(bytes, offset + 8, length);
    if (UNIQUE_CHUNKS.includes(name)) seen.add(name);
    const colourBytes = LENGTHS[name];
    if (colourBytes !== undefined)
      colour = {
        ...parseColourChunk(name, await bytes.read(offset + 8, Math.min(length, colourBytes))),
        ...colour,
      };
    const metadata = [...new Set([...(info.metadata ?? []), ...(parsed?.metadata ?? [])])];
    info = { ...info, ...parsed, metadata };
    offset += 12 + length;
    if (name === 'IEND') {
      if ((await bytes.read(offset - 1, 1)).length === 0) decoder = 'png';
      break;
    }
  }
  const declared = pngColour(colour, info.profile ?? 'none');
  const isGrey = ((header[9] as number) & COLOUR_BIT) === 0;
  return {
    ...info,
    ...(decoder && { decoder }),
    ...declared,
    ...(declared.declaredColour && isGrey && { profile: 'grey' }),
    flat: offset * 8 < MAX_FLAT_BITS_PER_PIXEL * (info.width ?? 0) * (info.height ?? 0),
  };
}

function paletteKindOf(depth: number, colourType: number): Pick<PartialInfo, 'paletteKind'> {
  if (colourType === COLOUR_TYPE.palette) return { paletteKind: 'palette' };
  return colourType === COLOUR_TYPE.grey && depth === 1 ? { paletteKind: 'bilevel' } : {};
}

const CHUNKS: Readonly<
  Record<string, (bytes: WindowReader, start: number, length: number) => Promise<PartialInfo | undefined>>
> = {
  eXIf: async (bytes, start) => ({
    ...(await readOrientation(bytes, await skipExifMarker(bytes, start))),
    metadata: ['exif'],
  }),
  async iCCP(bytes, start, length) {
    const [colourType = 0] = await bytes.read(COLOUR_TYPE_AT, 1);
    const colourSpace = colourType & COLOUR_BIT ? 'RGB ' : 'GRAY';
    const chunk = await bytes.read(start, Math.min(length, MAX_CHUNK_BYTES));
    const name = chunk.indexOf(0);
    // The method of compression after the name is always 0.
    if (name < 0 || chunk[name + 1] !== 0) return { profile: 'unusable' };
    return { profile: classifyDeflatedProfile(chunk.subarray(name + 2), colourSpace) };
  },
  // An animated PNG: decoders show its first frame or its default image.
  async acTL(bytes, start) {
    const frames = await bytes.read(start, 4);
    return { hasIgnoredFrames: frames.length === 4 && frames.readUInt32BE(0) > 1 };
  },
  iTXt: readText,
  tEXt: readText,
  zTXt: readText,
};

/** Metadata by the keyword of the text chunk. "APP1" can be EXIF or XMP, but is usually EXIF. */
const KEYWORDS: Readonly<Record<string, MetadataKind>> = {
  'XML:com.adobe.xmp': 'xmp',
  'Raw profile type xmp': 'xmp',
  'Raw profile type exif': 'exif',
  'Raw profile type APP1': 'exif',
  'Raw profile type iptc': 'iptc',
};

async function readText(
  bytes: WindowReader,
  start: number,
  length: number,
): Promise<PartialInfo | undefined> {
  const [keyword = ''] = (await bytes.read(start, Math.min(length, 80))).toString('latin1').split('\0');
  const kind = Object.hasOwn(KEYWORDS, keyword) ? KEYWORDS[keyword] : undefined;
  return kind && { metadata: [kind] };
}
