/**
 * @module Writes a PNG of rows of red, green, blue and alpha, a chunk of one (W3C PNG, third edition, sections 5 and 11), or each
 * frame of an animated one (section 4.9).
 */
import { createWriteStream } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { crc32, createDeflate, deflate } from 'node:zlib';
import { bigEndian } from './containers/file.ts';
import { withWrittenChunks } from './containers/parts.ts';
import type { Animation } from './image-info.ts';

/** First bytes of every PNG. */
export const PNG_SIGNATURE = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');
/** 8 bits per channel, with alpha. */
const FORMAT = Buffer.from([8, 6, 0, 0, 0]);
const PIXEL_BYTES = 4;

/** Properties of a PNG to write. */
export interface PngHead {
  readonly width: number;
  readonly height: number;
  /** ICC profile. */
  readonly profile?: Buffer | undefined;
}

/**
 * Writes a new file, with only a few blocks in memory.
 *
 * @param blocks whole rows, from the top
 * @throws {Error} with code EEXIST if the file exists
 */
export async function writePng(
  path: string,
  head: PngHead,
  blocks: AsyncIterable<Buffer>,
  signal: AbortSignal,
): Promise<void> {
  const scanlines = Readable.from(withFilters(blocks, head.width * PIXEL_BYTES), { objectMode: false });
  const file = createWriteStream(path, { flags: 'wx' });
  await pipeline(scanlines, createDeflate({ level: 1 }), (data) => encodeChunks(head, data), file, {
    signal,
  });
}

/** Prepends filter type 0 (none) to each row. */
async function* withFilters(blocks: AsyncIterable<Buffer>, rowBytes: number): AsyncGenerator<Buffer> {
  for await (const block of blocks) {
    const rows = block.length / rowBytes;
    const filtered = Buffer.alloc(rows * (rowBytes + 1));
    for (let row = 0; row < rows; row += 1) {
      block.copy(filtered, row * (rowBytes + 1) + 1, row * rowBytes, (row + 1) * rowBytes);
    }
    yield filtered;
  }
}

async function* encodeChunks(head: PngHead, data: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  yield PNG_SIGNATURE;
  yield pngChunk('IHDR', Buffer.concat([bigEndian(head.width, 4), bigEndian(head.height, 4), FORMAT]));
  if (head.profile) {
    const name = Buffer.from('profile\0\0', 'latin1');
    yield pngChunk('iCCP', Buffer.concat([name, await promisify(deflate)(head.profile, { level: 1 })]));
  }
  for await (const piece of data) yield pngChunk('IDAT', piece);
  yield pngChunk('IEND', Buffer.alloc(0));
}

/** Encodes a chunk with its length and checksum. */
export function pngChunk(name: string, body: Buffer): Buffer {
  return Buffer.concat([...pngChunkParts(name, body.length, [body])]);
}

/** Encodes a chunk whose content has `length` bytes in several parts. */
export function* pngChunkParts(name: string, length: number, parts: Iterable<Buffer>): Generator<Buffer> {
  yield Buffer.concat([bigEndian(length, 4), Buffer.from(name, 'latin1')]);
  let checksum = crc32(name);
  for (const part of parts) {
    checksum = crc32(part, checksum);
    yield part;
  }
  yield bigEndian(checksum, 4);
}

interface Frames {
  readonly files: readonly string[];
  readonly animation: Animation;
}

/** Chunks that every frame needs: header and colours. */
const SHARED = ['IHDR', 'PLTE', 'tRNS', 'iCCP', 'sRGB', 'gAMA', 'cHRM', 'cICP', 'sBIT'];

/**
 * Writes the frames of an animated PNG to separate files. All must cover the whole canvas, as those of djxl do.
 *
 * @param name name of the PNG in `folder`
 * @param maxFrames later frames are counted, but not written
 * @throws {Error} EEXIST if there is a file or link with the name of a frame
 */
export function splitFrames(folder: string, name: string, maxFrames: number): Promise<Frames> {
  const shared: Buffer[] = [];
  const files: string[] = [];
  const delaysMs: number[] = [];
  let data: Buffer[] = [];
  let loopCount = 0;
  const finish = async (): Promise<void> => {
    if (data.length === 0) return;
    const frame = name.replace('.', `-${String(files.length).padStart(5, '0')}.`);
    const whole = Buffer.concat([PNG_SIGNATURE, ...shared, ...data, pngChunk('IEND', Buffer.alloc(0))]);
    // `wx` fails if the decoder has created a link with that name.
    await writeFile(join(folder, frame), whole, { flag: 'wx' });
    files.push(frame);
    data = [];
  };
  return withWrittenChunks(join(folder, name), async (chunks) => {
    for await (const { name: chunk, body } of chunks) {
      if (chunk === 'acTL') loopCount = (await body()).readUInt32BE(4);
      if (chunk === 'fcTL') {
        await finish();
        delaysMs.push(delayOf(await body()));
      }
      if (SHARED.includes(chunk)) shared.push(pngChunk(chunk, await body()));
      if (delaysMs.length > maxFrames) continue;
      if (chunk === 'IDAT') data.push(pngChunk('IDAT', await body()));
      if (chunk === 'fdAT') data.push(pngChunk('IDAT', (await body()).subarray(4))); // without the sequence number
    }
    await finish();
    const frames = delaysMs.map(() => ({ disposeToBackground: true, noBlend: false }));
    return { files, animation: { delaysMs, loopCount, transparent: true, frames } };
  });
}

/** Returns the delay in milliseconds. A denominator of 0 means hundredths of a second. */
function delayOf(control: Buffer): number {
  const [numerator, denominator] = [control.readUInt16BE(20), control.readUInt16BE(22)];
  return Math.round((numerator * 1000) / (denominator || 100));
}
