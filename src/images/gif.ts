/** @module Reads the blocks of a GIF (GIF89a specification). */

import type { WindowReader } from './containers/window-reader.ts';
import type { ImageFacts, MetadataKind } from './image-info.ts';

/** Maximum number of frames to read: one more than the largest MAX_FRAMES. */
const MAX_FRAMES = 10_001;
/** Maximum loop count of a WebP. */
const MAX_LOOP_COUNT = 65_535;
/** Bytes to read at once, so that many small sub-blocks take no longer than a few large ones. */
const READ_BYTES = 16 * 1024;
/** Delay of a frame with a delay of 0, in ms. */
const DEFAULT_DELAY_MS = 100;

/** Reads the size, animation and metadata of a GIF from its blocks (GIF89a specification, sections 18 to 26). */
export async function readGif(bytes: WindowReader): Promise<ImageFacts<'gif'>> {
  const screen = Buffer.from(await bytes.read(0, 13));
  if (screen.length < 13) return {};
  let offset = 13 + colourTableLength(screen[10] as number);
  let [width, height] = [screen.readUInt16LE(6), screen.readUInt16LE(8)];
  const delaysMs: number[] = [];
  const metadata: MetadataKind[] = [];
  let delay = 0;
  let loopCount = 1;
  let truncated = false;

  while (delaysMs.length < MAX_FRAMES) {
    const block = await bytes.read(offset, 19);
    let next: number | undefined;
    if (block[0] === IMAGE && block.length >= DESCRIPTOR_BYTES) {
      delaysMs.push(delay || DEFAULT_DELAY_MS);
      // A frame may be larger than the logical screen, and all its pixels are decoded.
      width = Math.max(width, block.readUInt16LE(5));
      height = Math.max(height, block.readUInt16LE(7));
      delay = 0;
      next = await walkSubBlocks(bytes, lzwOffset(offset, block) + 1);
    } else if (block[0] === EXTENSION && block.length >= 3) {
      if (block[1] === 0xf9 && block.length >= 8) delay = block.readUInt16LE(4) * 10;
      if (isLoop(block)) loopCount = toLoopCount(block.readUInt16LE(16));
      if (isXmp(block) && metadata.length === 0) metadata.push('xmp');
      next = await walkSubBlocks(bytes, offset + 2);
    } else if (block.length > 0 && block[0] !== IMAGE && block[0] !== EXTENSION) {
      break; // trailer or invalid data
    }
    if (next === undefined) {
      truncated = true;
      break;
    }
    offset = next;
  }
  const info: ImageFacts<'gif'> = {
    ...{ width, height, paletteKind: 'palette', profile: 'none', metadata },
    ...(truncated && { truncated }),
  };
  return delaysMs.length > 1 ? { ...info, animation: { delaysMs, loopCount } } : info;
}

/** Extents of the canvas of a GIF and of its first frame, and the offset of a loop extension with the less common name. */
export interface GifCanvas {
  readonly screen: { readonly width: number; readonly height: number };
  readonly firstFrame: { readonly right: number; readonly bottom: number };
  readonly otherLoopAt?: number;
}

/**
 * Reads a GIF up to its first frame.
 *
 * @returns undefined if there is none
 * @throws {HeaderTooComplexError} if it takes too many reads
 */
export async function readCanvas(bytes: WindowReader): Promise<GifCanvas | undefined> {
  const screen = Buffer.from(await bytes.read(0, 13));
  if (screen.length < 13) return undefined;
  let otherLoopAt: number | undefined;
  let offset = 13 + colourTableLength(screen[10] as number);
  for (;;) {
    const block = await bytes.read(offset, 19);
    if (block[0] === IMAGE && block.length >= DESCRIPTOR_BYTES) {
      return {
        screen: { width: screen.readUInt16LE(6), height: screen.readUInt16LE(8) },
        firstFrame: {
          right: block.readUInt16LE(1) + block.readUInt16LE(5),
          bottom: block.readUInt16LE(3) + block.readUInt16LE(7),
        },
        ...(otherLoopAt !== undefined && { otherLoopAt }),
      };
    }
    if (block[0] !== EXTENSION || block.length < 3) return undefined;
    if (isNamed(block, OTHER_LOOP)) otherLoopAt = offset;
    const next = await walkSubBlocks(bytes, offset + 2);
    if (next === undefined) return undefined;
    offset = next;
  }
}

/** Offsets in a GIF that {@link readGifFrames} finds. */
export interface GifFrames {
  /** Offset of the flags of each graphic control extension whose disposal method is {@link UNDEFINED_DISPOSAL}. */
  readonly undefinedDisposals: readonly number[];
  /** Offset of each image descriptor without a graphic control extension, if an earlier frame has one. */
  readonly uncontrolled: readonly number[];
  /** Number of complete frames. */
  readonly whole: number;
  /** Position after the last complete frame, if the file ends within or before another one. */
  readonly rest?: {
    /** Offset of the first byte after the last complete frame. */
    readonly start: number;
    /** Offset of the image descriptor of the incomplete frame, if the file contains the descriptor. */
    readonly descriptorAt?: number;
  };
}

/** A disposal method that the specification leaves undefined. Browsers treat it as 3, restore to previous. */
export const UNDEFINED_DISPOSAL = 4;

/**
 * Walks the frames of a GIF.
 *
 * @throws {HeaderTooComplexError} if it takes too many reads
 */
export async function readGifFrames(bytes: WindowReader): Promise<GifFrames> {
  const screen = Buffer.from(await bytes.read(0, 13));
  const undefinedDisposals: number[] = [];
  const uncontrolled: number[] = [];
  let control: 'none' | 'earlier' | 'own' = 'none';
  let offset = 13 + colourTableLength(screen[10] ?? 0);
  let start = offset;
  let whole = 0;
  while (whole < MAX_FRAMES) {
    const block = Buffer.from(await bytes.read(offset, DESCRIPTOR_BYTES));
    const isFrame = block[0] === IMAGE;
    if (block.length === 0 ? offset === start : !isFrame && block[0] !== EXTENSION) break;
    if (block.length < (isFrame ? DESCRIPTOR_BYTES : 3))
      return { undefinedDisposals, uncontrolled, whole, rest: { start } };
    const isControl = !isFrame && block[1] === 0xf9;
    const disposal = isControl ? ((block[3] ?? 0) >> 2) & 7 : 0;
    if (disposal === UNDEFINED_DISPOSAL) undefinedDisposals.push(offset + 3);
    if (isControl) control = 'own';
    if (isFrame && control === 'earlier') uncontrolled.push(offset);
    if (isFrame && control === 'own') control = 'earlier';
    const next = await walkSubBlocks(bytes, isFrame ? lzwOffset(offset, block) + 1 : offset + 2);
    if (next === undefined) {
      const rest = { start, ...(isFrame && { descriptorAt: offset }) };
      return { undefinedDisposals, uncontrolled, whole, rest };
    }
    offset = next;
    if (isFrame) {
      start = offset;
      whole += 1;
    }
  }
  return { undefinedDisposals, uncontrolled, whole };
}

const IMAGE = 0x2c;
const EXTENSION = 0x21;
const DESCRIPTOR_BYTES = 10;

/** Returns the offset of the byte "LZW minimum code size", which precedes the compressed pixels of a frame. */
export function lzwOffset(descriptorAt: number, descriptor: Buffer): number {
  return descriptorAt + DESCRIPTOR_BYTES + colourTableLength(descriptor[9] as number);
}

/** Usual name of the loop extension. */
export const LOOP = 'NETSCAPE2.0';
/** Other name of the loop extension, which browsers also accept. */
const OTHER_LOOP = 'ANIMEXTS1.0';

function colourTableLength(flags: number): number {
  return flags & 0x80 ? 3 * 2 ** ((flags & 7) + 1) : 0;
}

/**
 * Walks sub-blocks. Each has a length byte and that many bytes. Length 0 terminates them. The last sub-block of a truncated file
 * may be shorter than its length states.
 *
 * @param visit called with the offset and the content of each. The content is valid until the call returns.
 * @returns the offset after the terminator; undefined if the file ends before it
 */
export async function walkSubBlocks(
  bytes: WindowReader,
  from: number,
  visit?: (at: number, body: Buffer) => void,
): Promise<number | undefined> {
  for (let offset = from; ; ) {
    const piece = await bytes.read(offset, READ_BYTES);
    if (piece.length === 0) return undefined;
    let at = 0;
    while (at < piece.length) {
      const length = piece[at] as number;
      if (length === 0) return offset + at + 1;
      const end = at + 1 + length;
      if (end > READ_BYTES) break; // it continues in the next piece
      visit?.(offset + at, piece.subarray(at + 1, end));
      at = end;
    }
    offset += at;
  }
}

function isLoop(block: Buffer): boolean {
  return block.length >= 19 && isNamed(block, LOOP);
}

/** Checks for an application extension of this name. */
function isNamed(block: Buffer, name: string): boolean {
  return block[1] === 0xff && block.toString('latin1', 3, 14) === name;
}

/** Checks for an XMP application extension (XMP specification, part 3, section 1.1.2). */
function isXmp(block: Buffer): boolean {
  return isNamed(block, 'XMP DataXMP');
}

/** Converts the repeat count of a GIF, which excludes the first playback, to a loop count; 0 means forever. */
function toLoopCount(repeats: number): number {
  return repeats === 0 ? 0 : Math.min(repeats + 1, MAX_LOOP_COUNT);
}
