/** @module Decodes the kinds of bitmaps that ImageMagick misreads or rejects, and that browsers show. */

import { type FileHandle, rename } from 'node:fs/promises';
import { type Dib, readBmpLayout } from './bmp.ts';
import { decodeRows, type Truncation } from './bmp-rows.ts';
import { decodeRuns } from './bmp-run-length.ts';
import { readAt, withFile } from './containers/file.ts';
import { WindowReader } from './containers/window-reader.ts';
import { MAX_EXTRACTED_BYTES } from './icc.ts';
import { readIconLayout } from './ico.ts';
import type { ImageInfo } from './image-info.ts';
import { readPng } from './png.ts';
import { writePng } from './png-writer.ts';

/** Orientation of rows that are stored from the bottom to the top (EXIF 2.32, 4.6.4). */
const FLIPPED = 4;

/**
 * Replaces the BMP or icon at `path` by a PNG. Rows stay in their stored order, and `orientation` states the direction,
 * so only a few rows are in memory. Blocks the event loop for at most about 2 ms at a time.
 *
 * @returns the properties of the PNG; undefined if the file contains no pixels
 */
export async function decodeBitmap(
  path: string,
  image: ImageInfo,
  signal: AbortSignal,
): Promise<ImageInfo | undefined> {
  const output = `${path}.png`;
  const truncation: Truncation = { cut: false, shown: false };
  const dib = await withFile(path, 'r', async (file) => {
    const bytes = new WindowReader(file);
    const layout = await (image.type === 'ico' ? readIconLayout(bytes) : readBmpLayout(bytes));
    if (!layout) return undefined;
    const { width, height, runLength } = layout;
    const profile = await readProfile(file, layout);
    const blocks = (runLength ? decodeRuns : decodeRows)(file, layout, truncation);
    await writePng(output, { width, height, profile }, blocks, signal);
    return layout;
  });
  if (!dib || !truncation.shown) return undefined;
  await rename(output, path);
  const { paletteKind } = image;
  const info = await withFile(path, 'r', (file) => readPng(new WindowReader(file)));
  return {
    ...{ type: 'png', ...info },
    ...(paletteKind && { paletteKind }),
    ...(!dib.topDown && { orientation: FLIPPED }),
    ...(truncation.cut && { truncated: true }),
  };
}

async function readProfile(file: FileHandle, { profile }: Dib): Promise<Buffer | undefined> {
  if (!profile || profile.length > MAX_EXTRACTED_BYTES) return undefined;
  const { bytes, found } = await readAt(file, profile.at, profile.length);
  return found === profile.length ? bytes : undefined;
}
