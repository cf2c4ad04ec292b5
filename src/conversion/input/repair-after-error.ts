/** @module Repairs that are made only after ImageMagick has rejected a file. */

import { createWriteStream } from 'node:fs';
import { type FileHandle, open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { MAX_CHUNKS } from '../inspect/png-data.ts';
import { isPaletteError, isProfileError } from '../output/tool-errors.ts';
import type { ImageInfo } from '../plan/image-info.ts';
import { INPUT_FILE } from '../plan/types.ts';
import { pngChunk, readRange } from './png-file.ts';

/**
 * Repairs an image, so that it can be converted again.
 *
 * @param folder folder of the input
 * @returns undefined if no repair avoids the error
 */
export async function repairAfterError(
  error: Error,
  image: ImageInfo,
  folder: string,
): Promise<ImageInfo | undefined> {
  // librsvg uses no profile, and its input is not in the folder any more.
  if (image.type === 'svg') return undefined;
  if (isProfileError(error)) return { ...image, profile: 'unusable' };
  const isRepaired = image.type === 'png' && isPaletteError(error) && (await completePalette(folder));
  return isRepaired ? image : undefined;
}

/** Maximum number of colours of a palette (W3C PNG, third edition, section 11.2.2). */
const MAX_COLOURS = 256;

/** Appends black to the palette of a PNG. Browsers and sharp show an index beyond the palette black. */
async function completePalette(folder: string): Promise<boolean> {
  const path = join(folder, INPUT_FILE);
  const output = `${path}.png`;
  const file = await open(path);
  try {
    const place = await findPalette(file);
    if (!place) return false;
    const { from, to } = place;
    await pipeline(
      async function* () {
        yield* readRange(file, 0, from);
        const colours = Buffer.alloc(MAX_COLOURS * 3);
        await file.read(colours, 0, Math.min(to - from - 12, colours.length), from + 8);
        yield pngChunk('PLTE', colours.subarray(0, 3 * place.indices));
        yield* readRange(file, to, (await file.stat()).size);
      },
      createWriteStream(output, { flags: 'wx' }),
    );
  } finally {
    await file.close();
  }
  await rename(output, path);
  return true;
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
