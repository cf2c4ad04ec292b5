/** @module Reads a WebP, and cuts an animation after its first frame (RFC 9649). */
import { open } from 'node:fs/promises';
import { readProfile } from './colour/icc.ts';
import { littleEndian, WindowReader, writeAt } from './containers/file.ts';
import { type Part, riffChunks } from './containers/parts.ts';
import { readExif } from './exif.ts';
import {
  type Area,
  addFacts,
  type FrameDisposal,
  type ImageFacts,
  type PixelFormat,
  RGB_PIXELS,
} from './image-info.ts';

/** Delay that viewers use for a frame with a delay of 0, in ms. */
const DEFAULT_DELAY_MS = 100;
/** Flags of the VP8X chunk. Alpha is also in the fifth byte of a lossless image. */
export const WEBP_FLAGS = { animation: 0x02, xmp: 0x04, exif: 0x08, alpha: 0x10 } as const;
/** Reserved bits of the flags. libwebp rejects an animation with one of these. */
const RESERVED = 0xc1;
/** Flags in the last header byte of a frame: dispose to background, do not blend. */
const DISPOSE = 1;
export const NO_BLEND = 2;
/** Bytes before the size of a lossy image. */
const START_CODE = Buffer.from([0x9d, 0x01, 0x2a]);

/** Reads size, animation and metadata of a WebP from its chunks (RFC 9649, section 2.7). */
export async function readWebp(bytes: WindowReader): Promise<ImageFacts> {
  const delaysMs: number[] = [];
  const frames: FrameDisposal[] = [];
  let info: ImageFacts = { profile: 'none', metadata: [] };
  let firstFrame: Area | undefined;
  let isFirstFrameUsable = false;
  let flags = 0;
  let last: Part | undefined;
  let profile: PixelFormat['profile'];
  let plays = 0;
  let transparent = false;
  const seen = new Set<string>();
  for await (const chunk of riffChunks(bytes)) {
    const { name } = chunk;
    last = chunk;
    const head = await bytes.read(chunk.offset, 16);
    transparent ||= hasAlpha(name, head);
    if (name === 'ICCP') profile ??= { at: chunk.offset, length: chunk.length };
    if (name === 'ANIM' && head.length >= 6) plays = head.readUInt16LE(4);
    if (name === 'ANMF' && head.length === 16) {
      delaysMs.push(u24(head, 12) || DEFAULT_DELAY_MS);
      const how = head[15] as number;
      frames.push({ disposeToBackground: (how & DISPOSE) !== 0, noBlend: (how & NO_BLEND) !== 0 });
      if (!firstFrame && seen.has('ANIM'))
        isFirstFrameUsable = isInside(await readFrameArea(bytes, chunk), info);
      firstFrame ??= areaOf(head);
    }
    if (name === 'VP8X') flags = head[0] ?? 0;
    info = { ...info, ...sizeOf(name, head) };
    // The first chunk of each kind counts (RFC 9649, sections 2.7.1.4 and 2.7.1.5).
    const parsed = seen.has(name) ? undefined : await CHUNKS[name]?.(bytes, chunk);
    if (name === 'ANIM' || Object.hasOwn(CHUNKS, name)) seen.add(name);
    info = addFacts(info, parsed);
  }
  // ImageMagick decodes such an animation to an empty canvas, without an error.
  const isCut = delaysMs.length < 2 && last !== undefined && !(await isWhole(bytes, last));
  const isEmpty =
    (flags & WEBP_FLAGS.animation) !== 0 && ((flags & RESERVED) !== 0 || !isFirstFrameUsable || isCut);
  const alpha = transparent || isEmpty || delaysMs.length === 1;
  info = { ...info, pixels: { ...RGB_PIXELS, alpha, profile } };
  if (isEmpty) return { ...info, contradictory: true };
  if (!firstFrame) return transparent ? info : { ...info, opaque: true };
  const covers = firstFrame.width === info.width && firstFrame.height === info.height;
  // The tools ignore the profile and EXIF of an animated WebP, and viewers do not rotate
  // animations.
  const { orientation, ...rest } = info;
  return {
    ...rest,
    firstFrame: covers ? undefined : firstFrame,
    externalProfile: info.profile !== 'none',
    animation: delaysMs.length > 1 ? { delaysMs, loopCount: plays, transparent, frames } : undefined,
  };
}

function hasAlpha(name: string, head: Buffer): boolean {
  if (name === 'VP8X') return ((head[0] ?? 0) & WEBP_FLAGS.alpha) !== 0;
  return name === 'VP8L' ? ((head[4] ?? WEBP_FLAGS.alpha) & WEBP_FLAGS.alpha) !== 0 : name === 'ALPH';
}

/** Reads the size of the canvas, or of a simple file (sections 2.5 to 2.7; RFC 6386, 9.1). */
function sizeOf(name: string, head: Buffer): ImageFacts {
  if (name === 'VP8X' && head.length >= 10) return { width: u24(head, 4) + 1, height: u24(head, 7) + 1 };
  if (name === 'VP8 ' && head.length >= 10) {
    return { width: head.readUInt16LE(6) & 0x3fff, height: head.readUInt16LE(8) & 0x3fff };
  }
  if (name !== 'VP8L' || head.length < 5) return {};
  const bits = head.readUInt32LE(1);
  return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
}

const CHUNKS: Readonly<Record<string, (bytes: WindowReader, chunk: Part) => Promise<ImageFacts>>> = {
  EXIF: async (bytes, { offset }) => ({ ...(await readExif(bytes, offset)), metadata: ['exif'] }),
  'XMP ': async () => ({ metadata: ['xmp'] }),
  ICCP: async (bytes, { offset, length }) => ({ profile: await readProfile(bytes, offset, length, 'rgb') }),
};

const u24 = (buffer: Buffer, at: number): number => buffer.readUIntLE(at, 3);

/** Reads the area of a frame: the offset is stored halved, the size minus one. */
function areaOf(head: Buffer): Area {
  return { x: u24(head, 0) * 2, y: u24(head, 3) * 2, width: u24(head, 6) + 1, height: u24(head, 9) + 1 };
}

/** Returns the offset and size of a frame; undefined if libwebp finds no image in it. */
async function readFrameArea(bytes: WindowReader, { offset, end }: Part): Promise<Area | undefined> {
  const { x, y } = areaOf(await bytes.read(offset, 16));
  const alphaOrImage = await bytes.read(offset + 16, 8);
  const isAlpha = alphaOrImage.toString('latin1', 0, 4) === 'ALPH' && alphaOrImage.length === 8;
  const length = isAlpha ? alphaOrImage.readUInt32LE(4) : 0;
  const at = offset + 16 + (isAlpha ? 8 + length + (length % 2) : 0);
  const chunk = await bytes.read(at, 8 + 10);
  if (chunk.length < 8 + 5) return undefined;
  const [name, head] = [chunk.toString('latin1', 0, 4), chunk.subarray(8)];
  const bytesOfImage = chunk.readUInt32LE(4);
  const { width, height } = sizeOf(name, head);
  const isUsable = at + 8 + bytesOfImage <= end && hasBitstream(name, head, bytesOfImage);
  return isUsable && width && height ? { x, y, width, height } : undefined;
}

/** Checks the start of a bitstream of this length (RFC 6386, 9.1; RFC 9649, 3.4). */
function hasBitstream(name: string, head: Buffer, length: number): boolean {
  if (name === 'VP8L') return head[0] === 0x2f && (head[4] as number) >> 5 === 0;
  const bits = u24(head, 0);
  const isShownKeyFrame = (bits & 0x11) === 0x10 && ((bits >> 1) & 7) <= 3;
  return name === 'VP8 ' && isShownKeyFrame && bits >> 5 < length && head.subarray(3, 6).equals(START_CODE);
}

/** Checks whether the file has all bytes of a chunk. */
async function isWhole(bytes: WindowReader, { offset, length }: Part): Promise<boolean> {
  return length === 0 || (await bytes.read(offset + length - 1, 1)).length === 1;
}

function isInside(frame: Area | undefined, { width = 0, height = 0 }: ImageFacts): boolean {
  return frame !== undefined && frame.x + frame.width <= width && frame.y + frame.height <= height;
}

/** Maximum number of chunks before the first frame of a WebP: usually VP8X, ICCP and ANIM. */
const MAX_CHUNKS_BEFORE_FRAME = 16;

/**
 * Cuts the animation at `path` after its first frame (section 2.7), if only that one is converted.
 * ImageMagick would decode all frames, and reject the file if a later one is damaged. A file that
 * ends within the first frame is not changed.
 */
export async function cutAfterFirstFrame(path: string): Promise<void> {
  await using file = await open(path, 'r+');
  const { size } = await file.stat();
  for await (const { name, end } of riffChunks(new WindowReader(file), MAX_CHUNKS_BEFORE_FRAME)) {
    if (end > size) return;
    if (name !== 'ANMF') continue;
    await writeAt(file, 4, littleEndian(end - 8, 4)); // length of the RIFF chunk
    return await file.truncate(end);
  }
}
