/** @module Decodes the kinds of bitmaps that ImageMagick misreads or rejects, and that browsers show. */

import { open, rename } from 'node:fs/promises';
import { readBmpLayout } from './bmp.ts';
import type { Dib } from './bmp-header.ts';
import { decodeRows, type Truncation } from './bmp-rows.ts';
import { decodeRuns } from './bmp-run-length.ts';
import { WindowReader } from './containers/window-reader.ts';
import { MAX_EXTRACTED_BYTES } from './icc.ts';
import { readIconLayout } from './ico.ts';
import type { ImageInfo } from './image-info.ts';
import { inspect } from './inspect.ts';
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
  const file = await open(path);
  let dib: Dib | undefined;
  try {
    const bytes = new WindowReader(file);
    dib = await (image.type === 'ico' ? readIconLayout(bytes) : readBmpLayout(bytes));
    if (!dib) return undefined;
    const profile = await readProfile(file, dib);
    const blocks = dib.runLength ? decodeRuns(file, dib, truncation) : decodeRows(file, dib, truncation);
    await writePng(output, { width: dib.width, height: dib.height, profile }, blocks, signal);
  } finally {
    await file.close();
  }
  if (!truncation.shown) return undefined;
  await rename(output, path);
  const { paletteKind } = image;
  return {
    ...(await inspect(path, 'png')),
    ...(paletteKind && { paletteKind }),
    ...(!dib.topDown && { orientation: FLIPPED }),
    ...(truncation.cut && { truncated: true }),
  };
}

async function readProfile(
  file: Awaited<ReturnType<typeof open>>,
  { profile }: Dib,
): Promise<Buffer | undefined> {
  if (!profile || profile.length > MAX_EXTRACTED_BYTES) return undefined;
  const { buffer, bytesRead } = await file.read(Buffer.alloc(profile.length), 0, profile.length, profile.at);
  return bytesRead === profile.length ? buffer : undefined;
}
