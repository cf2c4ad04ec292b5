/** @module Reads a PNG, and completes a truncated one, or one with a short palette (W3C PNG, third edition). */
import { createWriteStream } from 'node:fs';
import { type FileHandle, rename } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants, crc32, createDeflate, createInflate } from 'node:zlib';
import {
  BLOCK_BYTES,
  type RepairContext,
  readAt,
  readRange,
  replaceRange,
  WindowReader,
  withFile,
  withReader,
} from './containers/file.ts';
import { MAX_PNG_CHUNKS, type Part, pngChunks } from './containers/parts.ts';
import { readOrientation } from './exif.ts';
import { classifyDeflatedProfile, MAX_PROFILE_BYTES } from './icc.ts';
import { addFacts, type ImageFacts, type ImageInfo, type PixelFormat } from './image-info.ts';
import { LENGTHS, type PngColourChunks, parseColourChunk, pngColour } from './png-colour.ts';
import { kindOfText, MAX_KEYWORD_BYTES } from './png-text.ts';
import { pngChunk } from './png-writer.ts';

const COLOUR_TYPE = { grey: 0, palette: 3 } as const;
/** Offsets of the bit depth and the colour type in the file. */
const DEPTH_AT = 24;
const COLOUR_TYPE_AT = 25;
/** Bits of the colour types that have colours, not greys, and that have alpha. */
const COLOUR_BIT = 2;
const ALPHA_BIT = 4;

/** Maximum bits per pixel of flat images: a compressed screenshot has 1 to 3, a photo 8 and more. */
const MAX_FLAT_BITS_PER_PIXEL = 4;

/** Bytes of a chunk with a profile to classify: its name, and data that can be incompressible. */
const MAX_CHUNK_BYTES = MAX_PROFILE_BYTES + 1024;

/** Chunks of which libpng reads only the first. */
const UNIQUE_CHUNKS = ['iCCP', 'eXIf', 'acTL', 'IDAT'];

type PartialInfo = ImageFacts<'png'>;

/** Reads size, colours and metadata from the chunks of a PNG (section 11). */
export async function readPng(bytes: WindowReader): Promise<PartialInfo> {
  const [first, header] = [await bytes.read(12, 4), Buffer.from(await bytes.read(16, 10))];
  // Xcode writes PNGs for iPhones with another chunk in front, which only Apple's decoders read.
  if (first.toString('latin1') !== 'IHDR' || header.length < 10) return {};
  const [depth, colourType] = [header[8] as number, header[9] as number];
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  let info: PartialInfo = {
    ...{ width, height, profile: 'none', metadata: [] },
    ...paletteKindOf(depth, colourType),
    ...(depth === 16 && { deep: true }),
  };
  let pixels: PixelFormat = {
    alpha: (colourType & ALPHA_BIT) !== 0,
    bits: colourType === COLOUR_TYPE.palette ? 8 : depth,
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
    ...(!isComplete && count < MAX_PNG_CHUNKS && { decoder: 'png' }), // which completes it
    ...declared,
    ...(declared.declaredColour && (colourType & COLOUR_BIT) === 0 && { profile: 'grey' }),
    flat: end * 8 < MAX_FLAT_BITS_PER_PIXEL * width * height,
  };
}

function paletteKindOf(depth: number, colourType: number): Pick<PartialInfo, 'paletteKind'> {
  if (colourType === COLOUR_TYPE.palette) return { paletteKind: 'palette' };
  return colourType === COLOUR_TYPE.grey && depth === 1 ? { paletteKind: 'bilevel' } : {};
}

const CHUNKS: Readonly<
  Record<string, (bytes: WindowReader, chunk: Part) => Promise<PartialInfo | undefined>>
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

async function readText(bytes: WindowReader, { offset, length }: Part): Promise<PartialInfo | undefined> {
  const kind = kindOfText(await bytes.read(offset, Math.min(length, MAX_KEYWORD_BYTES + 1)));
  return kind && { metadata: [kind] };
}

interface PngLayout {
  readonly rows: number;
  /** Bytes per row before compression, including the byte that names the filter. */
  readonly rowBytes: number;
  /** Number of bytes before the first chunk of image data. */
  readonly head: number;
  readonly data: readonly Part[];
  /** Range of the complete chunks after the image data, without IEND. */
  readonly tail: { readonly from: number; readonly to: number };
}

/** Samples per pixel by colour type. */
const SAMPLES: Readonly<Record<number, number>> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 };

/** Reads the layout of a PNG; undefined if it has no image data or is interlaced. */
async function readLayout(bytes: WindowReader): Promise<PngLayout | undefined> {
  const header = Buffer.from(await bytes.read(16, 13));
  const samples = SAMPLES[header[9] ?? -1];
  const isInterlaced = header[12] !== 0;
  if (header.length < 13 || !samples || isInterlaced || header.readUInt32BE(0) === 0) return undefined;
  const data: Part[] = [];
  let tail = { from: 0, to: 0 };
  for await (const chunk of pngChunks(bytes)) {
    const { name, end } = chunk;
    const isWhole = (await bytes.read(end - 1, 1)).length === 1;
    if (name === 'IDAT') {
      data.push(chunk);
      tail = { from: end, to: end };
    } else if (name === 'IEND' || !isWhole) {
      break;
    } else {
      tail = { ...tail, to: end };
    }
  }
  const [first] = data;
  const rowBytes = 1 + Math.ceil((header.readUInt32BE(0) * (header[8] as number) * samples) / 8);
  return first && { rows: header.readUInt32BE(4), rowBytes, head: first.start, data, tail };
}

/**
 * Replaces the truncated PNG at `path` by a complete one. Keeps the chunks before the image data, and fills the missing rows
 * with zeros. `shownRows` of the result states how many rows were in the file. Only a few blocks are in memory at a time.
 *
 * @returns the properties of the complete PNG; undefined if the file is interlaced, contains no row, or has damaged image data
 */
export async function completePng(path: string, signal: AbortSignal): Promise<ImageInfo | undefined> {
  const output = `${path}.png`;
  const rows = await withFile(path, 'r', async (file) => {
    const layout = await readLayout(new WindowReader(file));
    return layout && Math.floor((await writeComplete(file, layout, output, signal)) / layout.rowBytes);
  }).catch((error) => {
    if (isDamage(error)) return undefined;
    throw error;
  });
  if (!rows) return undefined;
  await rename(output, path);
  const info = await withReader(path, readPng);
  return { type: 'png', ...info, truncated: true, shownRows: rows };
}

/**
 * Writes the complete PNG.
 *
 * @returns the number of bytes of uncompressed image data that the file contains
 */
async function writeComplete(
  file: FileHandle,
  { rows, rowBytes, head, data, tail }: PngLayout,
  output: string,
  signal: AbortSignal,
): Promise<number> {
  const total = rows * rowBytes;
  let found = 0;
  async function* compressed(): AsyncGenerator<Buffer> {
    for (const chunk of data) {
      for await (const block of readData(file, chunk)) {
        if (found < total) yield block;
      }
    }
  }
  async function* filled(blocks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const block of blocks) {
      const wanted = block.subarray(0, total - found);
      found += wanted.length;
      if (wanted.length > 0) yield wanted;
    }
    for (let at = found; at < total; at += BLOCK_BYTES) yield Buffer.alloc(Math.min(BLOCK_BYTES, total - at));
  }
  async function* chunks(blocks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    yield* readRange(file, 0, head);
    for await (const block of blocks) yield pngChunk('IDAT', block);
    yield* readRange(file, tail.from, tail.to);
    yield pngChunk('IEND', Buffer.alloc(0));
  }
  await pipeline(
    Readable.from(compressed(), { objectMode: false }),
    createInflate({ finishFlush: constants.Z_SYNC_FLUSH }),
    filled,
    createDeflate({ level: 1 }),
    chunks,
    createWriteStream(output, { flags: 'wx' }),
    { signal },
  );
  return found;
}

/** The checksum of a complete chunk is wrong. */
class ChecksumError extends Error {
  override readonly name = 'ChecksumError';
}

async function* readData(file: FileHandle, { offset, length }: Part): AsyncGenerator<Buffer> {
  let checksum = crc32('IDAT');
  let found = 0;
  for await (const block of readRange(file, offset, offset + length)) {
    checksum = crc32(block, checksum);
    found += block.length;
    yield block;
  }
  const stored = await readAt(file, offset + length, 4);
  if (found === length && stored.found === 4 && stored.bytes.readUInt32BE(0) !== checksum)
    throw new ChecksumError();
}

/** Returns whether an error means damaged image data: zlib reports it as `Z_DATA_ERROR` or `Z_NEED_DICT`. */
function isDamage(error: unknown): boolean {
  return error instanceof ChecksumError || String((error as NodeJS.ErrnoException).code).startsWith('Z_');
}

/** Maximum number of colours of a palette (section 11.2.2). */
const MAX_COLOURS = 256;

/**
 * Appends black to the palette of the PNG at `path`. Browsers and sharp show an index beyond the palette black.
 *
 * @returns whether it has a palette
 * @throws {ServiceError} DISK_FULL if the disk has no space for the repaired file beside the input
 */
export function completePalette(path: string, context: RepairContext): Promise<boolean> {
  return withFile(path, 'r', async (file) => {
    const place = await findPalette(new WindowReader(file));
    if (!place) return false;
    const { offset, length } = place;
    const [depth = 0] = (await readAt(file, DEPTH_AT, 1)).bytes;
    const stored = await readAt(file, offset, Math.min(length, MAX_COLOURS * 3));
    const colours = Buffer.alloc(2 ** Math.min(8, depth) * 3);
    stored.bytes.copy(colours);
    await replaceRange({ ...context, path, file }, place, pngChunk('PLTE', colours));
    return true;
  });
}

/** Finds the chunk with the palette, which precedes the image data. */
async function findPalette(bytes: WindowReader): Promise<Part | undefined> {
  for await (const chunk of pngChunks(bytes)) {
    if (chunk.name === 'PLTE') return chunk;
    if (chunk.name === 'IDAT') return undefined;
  }
  return undefined;
}
