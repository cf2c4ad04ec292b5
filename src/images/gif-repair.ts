/** @module Repairs a GIF that ImageMagick would show in another way than browsers, or reject. */

import { type FileHandle, open } from 'node:fs/promises';
import type { InputType } from '../formats.ts';
import type { RepairContext } from './containers/file.ts';
import { HeaderTooComplexError, WindowReader } from './containers/window-reader.ts';
import { LOOP, lzwOffset, readCanvas, readGifFrames, UNDEFINED_DISPOSAL, walkSubBlocks } from './gif.ts';
import { createPixelDecoder, encodePixels } from './gif-lzw.ts';

/**
 * Enlarges the canvas to the first frame, and replaces a loop extension and a disposal method that ImageMagick does not know.
 * If the file is truncated within a frame, reduces that frame to its complete rows. Completes frames without a graphic control
 * extension.
 *
 * @throws {ServiceError} DISK_FULL if the repaired file is larger and the disk has no space for it
 */
export async function repairGif(path: string, context: RepairContext): Promise<InputType> {
  const file = await open(path, 'r+');
  try {
    await enlargeScreen(file);
    await repairFrames(file, context);
  } catch (error) {
    if (!(error instanceof HeaderTooComplexError)) throw error; // the inspection reports it
  } finally {
    await file.close();
  }
  return 'gif';
}

/** Offset of the canvas size in the file, and of the name in an application extension (GIF89a, sections 18 and 26). */
const SCREEN_AT = 6;
const EXTENSION_NAME_AT = 3;
/** Maximum width and height of a GIF: 16 bits. */
const MAX_GIF_SIDE = 65_535;

async function enlargeScreen(file: FileHandle): Promise<void> {
  const canvas = await readCanvas(new WindowReader(file));
  if (!canvas) return;
  const { screen, firstFrame, otherLoopAt } = canvas;
  const size = Buffer.alloc(4);
  size.writeUInt16LE(Math.min(MAX_GIF_SIDE, Math.max(screen.width, firstFrame.right)), 0);
  size.writeUInt16LE(Math.min(MAX_GIF_SIDE, Math.max(screen.height, firstFrame.bottom)), 2);
  await file.write(size, 0, size.length, SCREEN_AT);
  if (otherLoopAt !== undefined) await file.write(LOOP, otherLoopAt + EXTENSION_NAME_AT, 'latin1');
}

/** Disposal method that restores the pixels under a frame (GIF89a, section 23). */
const RESTORE_TO_PREVIOUS = 3;

/**
 * Replaces undefined disposal methods. Removes an incomplete last frame, except its complete rows. Completes frames without a
 * graphic control extension.
 */
async function repairFrames(file: FileHandle, context: RepairContext): Promise<void> {
  const bytes = new WindowReader(file);
  const { undefinedDisposals, uncontrolled, whole, rest } = await readGifFrames(bytes);
  for (const at of undefinedDisposals) {
    const flags = Buffer.from(await bytes.read(at, 1));
    flags[0] = (flags[0] as number) ^ ((UNDEFINED_DISPOSAL ^ RESTORE_TO_PREVIOUS) << 2);
    await file.write(flags, 0, 1, at);
  }
  if (rest) {
    const isShown =
      rest.descriptorAt !== undefined && (await keepCompleteRows(file, bytes, rest.descriptorAt, context));
    if (!isShown && whole > 0) await file.truncate(rest.start);
  }
  await insertControls(file, uncontrolled, context);
}

/** A graphic control extension with the defaults: no transparency, no delay and no disposal (GIF89a, section 23). */
const DEFAULT_CONTROL = Buffer.from([0x21, 0xf9, 4, 0, 0, 0, 0, 0]);

/** Maximum number of bytes to move for the extensions: they are in memory. */
const MAX_MOVED_BYTES = 16 * 1024 ** 2;

/**
 * Inserts a graphic control extension before image descriptors. An extension applies only to the frame after it, but
 * ImageMagick would apply it to later frames, too. Does not change a file that is too large for that.
 */
async function insertControls(
  file: FileHandle,
  descriptorsAt: readonly number[],
  context: RepairContext,
): Promise<void> {
  const { size } = await file.stat();
  const starts = descriptorsAt.filter((at) => at < size);
  const [first] = starts;
  if (first === undefined || size - first > MAX_MOVED_BYTES) return;
  const { buffer: end } = await file.read(Buffer.alloc(size - first), 0, size - first, first);
  const parts = starts.flatMap((at, index) => [
    DEFAULT_CONTROL,
    end.subarray(at - first, (starts[index + 1] ?? size) - first),
  ]);
  await replaceEnd(file, first, Buffer.concat(parts), context);
}

/** Offsets of the height and the flags in an image descriptor, and a bit of the flags (GIF89a, section 20). */
const HEIGHT_AT = 7;
const FLAGS_AT = 9;
const INTERLACED = 0x40;

/** Maximum number of pixels of an interlaced frame to repair: they are in memory, and are encoded without yielding. */
const MAX_INTERLACED_PIXELS = 1024 ** 2;

/**
 * Reduces the height of a frame to its complete rows. The area below becomes transparent. An interlaced frame is written again
 * without interlacing.
 *
 * @returns whether the frame has a complete row
 */
async function keepCompleteRows(
  file: FileHandle,
  bytes: WindowReader,
  descriptorAt: number,
  context: RepairContext,
): Promise<boolean> {
  const descriptor = Buffer.from(await bytes.read(descriptorAt, 10));
  const [width, height] = [descriptor.readUInt16LE(5), descriptor.readUInt16LE(7)];
  const lzwAt = lzwOffset(descriptorAt, descriptor);
  const [minCodeBits = 0] = await bytes.read(lzwAt, 1);
  const isInterlaced = ((descriptor[FLAGS_AT] as number) & INTERLACED) !== 0;
  const target = isInterlaced ? new Uint8Array(Math.min(width * height, MAX_INTERLACED_PIXELS)) : undefined;
  const decode = createPixelDecoder(minCodeBits, target);
  let pixels = 0;
  let last = { at: lzwAt + 1, length: 0 };
  await walkSubBlocks(bytes, lzwAt + 1, (at, body) => {
    pixels = decode(body);
    last = { at, length: body.length };
  });
  const rows = width === 0 ? 0 : Math.min(height, Math.floor(pixels / width));
  if (rows === 0) return false;
  if (target && rows < height) {
    if (minCodeBits < 2 || minCodeBits > 8 || target.length < width * height) return false;
    const ordered = orderRows(target, { width, height, rows });
    if (!(await replaceEnd(file, lzwAt + 1, encodePixels(ordered, minCodeBits), context))) return false;
    descriptor[FLAGS_AT] = (descriptor[FLAGS_AT] as number) & ~INTERLACED;
    descriptor.writeUInt16LE(ordered.length / width, HEIGHT_AT);
    await file.write(descriptor, 0, descriptor.length, descriptorAt);
    return true;
  }
  descriptor.writeUInt16LE(rows, HEIGHT_AT);
  await file.write(descriptor, 0, descriptor.length, descriptorAt);
  await file.write(Buffer.from([last.length]), 0, 1, last.at);
  const end = last.at + 1 + last.length;
  if (last.length > 0) await file.write(Buffer.from([0]), 0, 1, end);
  return true;
}

/** Replaces the bytes from an offset on. Returns false, and changes nothing, if the file would exceed the limit. */
async function replaceEnd(
  file: FileHandle,
  offset: number,
  end: Buffer,
  { maxBytes, store }: RepairContext,
): Promise<boolean> {
  const [{ size }, newSize] = [await file.stat(), offset + end.length];
  if (newSize > maxBytes) return false;
  await store(Math.max(0, newSize - size));
  await file.truncate(offset);
  await file.write(end, 0, end.length, offset);
  return true;
}

/** Passes of an interlaced frame: first row, distance of the rows, and number of rows that each fills (GIF89a, appendix E). */
const PASSES = [
  { first: 0, step: 8, shown: 8 },
  { first: 4, step: 8, shown: 4 },
  { first: 2, step: 4, shown: 2 },
  { first: 1, step: 2, shown: 1 },
] as const;

/**
 * Puts the rows of an interlaced frame in order. Fills missing rows with the row above them, as browsers do.
 *
 * @param rows number of rows in the file
 * @returns the rows up to the last filled one
 */
function orderRows(
  pixels: Uint8Array,
  { width, height, rows }: { readonly width: number; readonly height: number; readonly rows: number },
): Uint8Array {
  const ordered = new Uint8Array(width * height);
  let [stored, end] = [0, 0];
  for (const { first, step, shown } of PASSES) {
    for (let y = first; y < height && stored < rows; y += step) {
      const row = pixels.subarray(stored * width, (stored + 1) * width);
      const last = Math.min(y + shown, height);
      for (let at = y; at < last; at += 1) ordered.set(row, at * width);
      stored += 1;
      end = Math.max(end, last);
    }
  }
  return ordered.subarray(0, end * width);
}
