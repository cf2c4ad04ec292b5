/**
 * @module Writes a chunk of a PNG (W3C PNG, third edition, sections 5 and 11), or each frame of an
 * animated one (section 4.9).
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { bigEndian } from '../containers/file.ts';
import { writtenChunks } from '../containers/parts.ts';
import type { Animation } from '../image-info.ts';

/** First bytes of every PNG. */
export const PNG_SIGNATURE = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');

/** Bytes of the signature and the chunk IHDR, which all others follow. */
export const PNG_HEADER_BYTES = 33;

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

/** Chunks that every frame needs: header and colours. */
const SHARED = ['IHDR', 'PLTE', 'tRNS', 'iCCP', 'sRGB', 'gAMA', 'cHRM', 'cICP', 'sBIT'];

/**
 * Writes the frames of an animated PNG to separate files. All must cover the whole canvas, as those
 * of djxl do.
 *
 * @param name name of the PNG in `folder`
 * @param maxFrames later frames are counted, but not written
 * @throws {Error} EEXIST if there is a file or link with the name of a frame
 */
export async function splitFrames(
  folder: string,
  name: string,
  maxFrames: number,
): Promise<{ readonly files: readonly string[]; readonly animation: Animation }> {
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
  for await (const { name: chunk, body } of writtenChunks(join(folder, name))) {
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
}

/** Returns the delay in milliseconds. A denominator of 0 means hundredths of a second. */
function delayOf(control: Buffer): number {
  const [numerator, denominator] = [control.readUInt16BE(20), control.readUInt16BE(22)];
  return Math.round((numerator * 1000) / (denominator || 100));
}
