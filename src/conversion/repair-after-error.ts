/** @module Repairs that are made only after ImageMagick has rejected a file. */

import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import type { RepairContext } from '../images/containers/file.ts';
import { replaceFile } from '../images/containers/file.ts';
import type { ImageInfo } from '../images/image-info.ts';
import { MAX_CHUNKS } from '../images/png-data.ts';
import { pngChunk, readRange } from '../images/png-file.ts';
import { isPaletteError, isProfileError } from './output/tool-errors.ts';
import { INPUT_FILE } from './plan/types.ts';

/**
 * Repairs an image, so that it can be converted again.
 *
 * @param folder folder of the input
 * @returns undefined if no repair avoids the error
 * @throws {ServiceError} DISK_FULL if the disk has no space for the repaired file beside the input
 */
export async function repairAfterError(
  error: Error,
  image: ImageInfo,
  folder: string,
  context: RepairContext,
): Promise<ImageInfo | undefined> {
  // librsvg uses no profile, and its input is not in the folder any more.
  if (image.type === 'svg') return undefined;
  if (isProfileError(error)) return { ...image, profile: 'unusable' };
  const isRepaired =
    image.type === 'png' && isPaletteError(error) && (await completePalette(folder, context));
  return isRepaired ? image : undefined;
}

/** Maximum number of colours of a palette (W3C PNG, third edition, section 11.2.2). */
const MAX_COLOURS = 256;

/** Appends black to the palette of a PNG. Browsers and sharp show an index beyond the palette black. */
async function completePalette(folder: string, context: RepairContext): Promise<boolean> {
  const path = join(folder, INPUT_FILE);
  const file = await open(path);
  try {
    const place = await findPalette(file);
    if (!place) return false;
    const { from, to, indices } = place;
    const { size } = await file.stat();
    const colours = Buffer.alloc(MAX_COLOURS * 3);
    await file.read(colours, 0, Math.min(to - from - 12, colours.length), from + 8);
    const palette = pngChunk('PLTE', colours.subarray(0, 3 * indices));
    const whole = async function* (): AsyncGenerator<Buffer> {
      yield* readRange(file, 0, from);
      yield palette;
      yield* readRange(file, to, size);
    };
    await replaceFile(path, whole(), from + palette.length + Math.max(0, size - to), context);
    return true;
  } finally {
    await file.close();
  }
}

/** Finds the chunk with the palette, and the number of indices that the pixels can have. */
async function findPalette(
  file: FileHandle,
): Promise<{ readonly from: number; readonly to: number; readonly indices: number } | undefined> {
  const { buffer: depth } = await file.read(Buffer.alloc(1), 0, 1, 24);
  let from = 8;
  for (let chunk = 0; chunk < MAX_CHUNKS; chunk += 1) {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(8), 0, 8, from);
    if (bytesRead < 8) return undefined;
    const to = from + 12 + buffer.readUInt32BE();
    const name = buffer.toString('latin1', 4);
    if (name === 'PLTE') return { from, to, indices: 2 ** Math.min(8, depth[0] as number) };
    if (name === 'IDAT') return undefined;
    from = to;
  }
  return undefined;
}
