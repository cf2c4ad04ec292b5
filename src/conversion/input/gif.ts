/** @module Repairs a GIF that ImageMagick would show in another way than browsers, or reject. */

import { type FileHandle, open } from 'node:fs/promises';
import type { InputType } from '../../formats.ts';
import {
  LOOP,
  lzwOffset,
  readCanvas,
  readGifFrames,
  UNDEFINED_DISPOSAL,
  walkSubBlocks,
} from '../inspect/gif.ts';
import { HeaderTooComplexError, WindowReader } from '../inspect/window-reader.ts';
import { createPixelCounter } from './gif-lzw.ts';

/**
 * Enlarges the canvas to the first frame, and renames what ImageMagick does not know: a loop extension and a disposal
 * method. Reduces the frame in which a truncated file ends to its whole rows.
 */
export async function repairGif(path: string): Promise<InputType> {
  const file = await open(path, 'r+');
  try {
    await enlargeScreen(file);
    await repairFrames(file);
  } catch (error) {
    if (!(error instanceof HeaderTooComplexError)) throw error; // the inspection reports it
  } finally {
    await file.close();
  }
  return 'gif';
}

/** Offset of the canvas size, and of the name in an application extension (GIF89a, sections 18 and 26). */
const SCREEN_AT = 6;
const EXTENSION_NAME_AT = 3;
/** The largest number that a GIF holds. */
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

/** The method of a graphic control extension that restores what was there before (section 23). */
const RESTORE_TO_PREVIOUS = 3;

/** Also removes what follows the last whole frame, except the whole rows of the next frame. */
async function repairFrames(file: FileHandle): Promise<void> {
  const bytes = new WindowReader(file);
  const { undefinedDisposals, whole, rest } = await readGifFrames(bytes);
  for (const at of undefinedDisposals) {
    const flags = Buffer.from(await bytes.read(at, 1));
    flags[0] = (flags[0] as number) ^ ((UNDEFINED_DISPOSAL ^ RESTORE_TO_PREVIOUS) << 2);
    await file.write(flags, 0, 1, at);
  }
  if (!rest) return;
  const isShown = rest.descriptorAt !== undefined && (await keepWholeRows(file, bytes, rest.descriptorAt));
  if (!isShown && whole > 0) await file.truncate(rest.start);
}

/** Offset of the height in an image descriptor (GIF89a, section 20). */
const HEIGHT_AT = 7;
const INTERLACED = 0x40;

/**
 * Reduces the height of the frame to its whole rows. What is below is transparent then.
 *
 * @returns whether there is a whole row
 */
async function keepWholeRows(file: FileHandle, bytes: WindowReader, descriptorAt: number): Promise<boolean> {
  const descriptor = Buffer.from(await bytes.read(descriptorAt, 10));
  const [width, height] = [descriptor.readUInt16LE(5), descriptor.readUInt16LE(7)];
  const lzwAt = lzwOffset(descriptorAt, descriptor);
  const [minCodeBits = 0] = await bytes.read(lzwAt, 1);
  const count = createPixelCounter(minCodeBits);
  let pixels = 0;
  let last = { at: lzwAt + 1, length: 0 };
  await walkSubBlocks(bytes, lzwAt + 1, (at, body) => {
    pixels = count(body);
    last = { at, length: body.length };
  });
  const rows = width === 0 ? 0 : Math.min(height, Math.floor(pixels / width));
  const isInterlaced = ((descriptor[9] as number) & INTERLACED) !== 0;
  if (rows === 0 || (isInterlaced && rows < height)) return false;
  descriptor.writeUInt16LE(rows, HEIGHT_AT);
  await file.write(descriptor, 0, descriptor.length, descriptorAt);
  await file.write(Buffer.from([last.length]), 0, 1, last.at);
  const end = last.at + 1 + last.length;
  if (last.length > 0) await file.write(Buffer.from([0]), 0, 1, end);
  return true;
}
