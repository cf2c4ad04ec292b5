/** @module Reads the PNG that an external program has decoded an input to. Splits an animated PNG into frames. */
import { createWriteStream } from 'node:fs';
import { type FileHandle, open, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { inflate } from 'node:zlib';
import type { Config } from '../config.ts';
import { OPEN_FLAGS } from '../images/containers/file.ts';
import type { Animation, ImageInfo } from '../images/image-info.ts';
import { inspect } from '../images/inspect.ts';
import { PNG_SIGNATURE, pngChunk, pngChunkParts, readRange } from '../images/png-file.ts';
import { decodeRawProfile, encodeRawProfile } from '../images/raw-profile.ts';

/**
 * Inspects a decoded image: its actual size, its profile and its frames. Writes each frame to a separate file.
 *
 * @param image properties from the header of the input
 * @param output name of the PNG in `folder`
 * @param config frames beyond its limits are counted, but not written
 * @param keepsMetadata whether the result keeps the metadata of the image
 * @throws {Error} with the code of the failed system call, if the program has written no PNG, or a link with its name or the name
 *   of a frame
 */
export async function readDecoded(
  image: ImageInfo,
  folder: string,
  output: string,
  config: Config,
  keepsMetadata: boolean,
): Promise<ImageInfo> {
  const {
    width,
    height,
    profile,
    deep,
    flat,
    hasIgnoredFrames: animated,
  } = await inspect(join(folder, output), 'png');
  if (keepsMetadata && image.metadata?.includes('exif')) await copyExifToText(join(folder, output));
  const maxFrames = Math.min(config.MAX_FRAMES, config.MAX_TOTAL_PIXELS / ((width ?? 1) * (height ?? 1)));
  const frames = animated ? await splitFrames(folder, output, maxFrames) : undefined;
  const { deep: _deep, hasIgnoredFrames: _ignored, hasUncountedFrames: _uncounted, ...rest } = image;
  return {
    ...rest,
    ...(width !== undefined && height !== undefined && { width, height }),
    ...(profile && (profile !== 'none' || !(image.declaredColour || image.profileFile)) && { profile }),
    ...(deep && { deep }),
    ...(flat && { flat }),
    // djxl 0.7 writes 16 bits with wrong pixels where 8 were requested.
    ...(image.unevenDepth && deep && { unreadable: 'uneven-jxl' }),
    ...(image.type !== 'jxl' && image.hasIgnoredFrames && { hasIgnoredFrames: true }),
    decoded: frames?.files ?? [output],
    ...(frames && { animation: frames.animation }),
  };
}

const EXIF_TEXT = 'Raw profile type exif';

/**
 * Copies the EXIF of a PNG to a text chunk, because ImageMagick 6 does not read `eXIf` (Magick_png_read_raw_profile in
 * its png.c). Replaces the text that djxl 0.7 writes.
 */
async function copyExifToText(path: string): Promise<void> {
  for await (const { name, body, start } of pngChunks(path)) {
    const fromDjxl = name === 'zTXt' ? await readDjxlExif(body) : undefined;
    const tiff = name === 'eXIf' ? body : fromDjxl;
    if (!tiff) continue;
    const exif = Buffer.concat([Buffer.from('Exif\0\0', 'latin1'), tiff]);
    const keyword = Buffer.from(`${EXIF_TEXT}\0`, 'latin1');
    const { length, parts } = encodeRawProfile('exif', exif);
    const text = function* (): Generator<Buffer> {
      yield keyword;
      yield* parts;
    };
    const chunk = pngChunkParts('tEXt', keyword.length + length, text());
    await insertChunk(path, chunk, fromDjxl && { start, end: start + 12 + body.length });
    return;
  }
}

/**
 * Inserts a chunk after the header of the PNG at `path`. Only a block of the file is in memory, since it can have 200 MB.
 *
 * @param chunk parts of the chunk
 * @param removed range of a chunk to leave out
 */
async function insertChunk(
  path: string,
  chunk: Iterable<Buffer>,
  { start, end }: { readonly start: number; readonly end: number } = { start: HEADER_END, end: HEADER_END },
): Promise<void> {
  const file = await openOutput(path);
  // Writing to `path` would follow a link. Renaming replaces it.
  const copy = `${path}.exif`;
  const parts = async function* () {
    yield* readRange(file, 0, HEADER_END);
    yield* chunk;
    yield* readRange(file, HEADER_END, start);
    yield* readRange(file, end, Number.POSITIVE_INFINITY);
  };
  try {
    await pipeline(parts, createWriteStream(copy, { flags: 'wx' }));
  } finally {
    await file.close();
  }
  await rename(copy, path);
}

/** Maximum size of EXIF as text, in bytes. */
const MAX_EXIF_TEXT = 8 * 1024 ** 2;

/**
 * Reads the EXIF that djxl 0.7 copies from a box, with the offset of the TIFF header that starts it (ISO/IEC 18181-2, 9.1).
 *
 * @returns undefined for other text, for EXIF without that offset, and for damaged or too much EXIF
 */
async function readDjxlExif(chunk: Buffer): Promise<Buffer | undefined> {
  if (chunk.toString('latin1', 0, EXIF_TEXT.length) !== EXIF_TEXT) return undefined;
  const compressed = chunk.subarray(EXIF_TEXT.length + 2);
  try {
    const text = await promisify(inflate)(compressed, { maxOutputLength: MAX_EXIF_TEXT });
    const exif = await decodeRawProfile(text);
    return exif.length > 4 && exif.readUInt32BE(0) === 0 ? exif.subarray(4) : undefined;
  } catch {
    return undefined;
  }
}

/** Offset of the first byte after the signature and the chunk IHDR. */
const HEADER_END = 33;

interface Frames {
  readonly files: readonly string[];
  readonly animation: Animation;
}

/** Chunks that every frame needs: header and colours. */
const SHARED = ['IHDR', 'PLTE', 'tRNS', 'iCCP', 'sRGB', 'gAMA', 'cHRM', 'cICP', 'sBIT'];

/** Splits an animated PNG whose frames all cover the whole canvas (W3C PNG, third edition, section 4.9). */
async function splitFrames(folder: string, output: string, maxFrames: number): Promise<Frames> {
  const shared: Buffer[] = [];
  const files: string[] = [];
  const delaysMs: number[] = [];
  let data: Buffer[] = [];
  let loopCount = 0;
  const finish = async (): Promise<void> => {
    if (data.length === 0) return;
    const name = output.replace('.', `-${String(files.length).padStart(5, '0')}.`);
    const whole = Buffer.concat([PNG_SIGNATURE, ...shared, ...data, pngChunk('IEND', Buffer.alloc(0))]);
    // `wx` fails if the decoder has created a link with that name.
    await writeFile(join(folder, name), whole, { flag: 'wx' });
    files.push(name);
    data = [];
  };
  for await (const { name, body } of pngChunks(join(folder, output))) {
    if (name === 'acTL') loopCount = body.readUInt32BE(4);
    if (name === 'fcTL') {
      await finish();
      delaysMs.push(delayOf(body));
    }
    if (SHARED.includes(name)) shared.push(pngChunk(name, body));
    if (delaysMs.length > maxFrames) continue;
    if (name === 'IDAT') data.push(pngChunk('IDAT', body));
    if (name === 'fdAT') data.push(pngChunk('IDAT', body.subarray(4))); // without the sequence number
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

/** Opens a file that another program has written. Rejects links, and does not wait for a pipe. */
const openOutput = (path: string): Promise<FileHandle> => open(path, OPEN_FLAGS);

async function* pngChunks(path: string): AsyncGenerator<{ name: string; body: Buffer; start: number }> {
  const file = await openOutput(path);
  try {
    for (let offset = PNG_SIGNATURE.length; ; ) {
      const { buffer: head, bytesRead } = await file.read(Buffer.alloc(8), 0, 8, offset);
      if (bytesRead < 8) return;
      const length = head.readUInt32BE(0);
      const { size } = await file.stat();
      if (offset + 12 + length > size) return;
      const { buffer: body } = await file.read(Buffer.alloc(length), 0, length, offset + 8);
      yield { name: head.toString('latin1', 4, 8), body, start: offset };
      offset += 12 + length;
    }
  } finally {
    await file.close();
  }
}
