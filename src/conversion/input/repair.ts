/** @module Repairs received files that ImageMagick or libheif would reject or misread. */

import { open } from 'node:fs/promises';
import type { InputType } from '../../formats.ts';
import { keepBestImage } from './ico.ts';

const REPAIRS: Partial<Record<InputType, (path: string) => Promise<InputType>>> = {
  ico: keepBestImage,
  bmp: clearBmpFileSize,
  avif: rebrandAvifSequence,
};

/**
 * Repairs a received file in place.
 *
 * @returns the type of the repaired file
 */
export async function repairInput(path: string, type: InputType): Promise<InputType> {
  return (await REPAIRS[type]?.(path)) ?? type;
}

/** Offset of the four-byte file size in a BMP (BITMAPFILEHEADER). */
const LENGTH_AT = 2;

/** Clears the file size of a BMP. Many state a wrong one, and ImageMagick 6 rejects one larger than the file. */
async function clearBmpFileSize(path: string): Promise<InputType> {
  await overwrite(path, LENGTH_AT, Buffer.alloc(4));
  return 'bmp';
}

/** Offset of the major brand in an AVIF (ISO/IEC 14496-12, section 4.3). */
const BRAND_AT = 8;

/** Marks an AVIF sequence as a still image: its primary image is converted, and older libheif reads no sequences. */
async function rebrandAvifSequence(path: string): Promise<InputType> {
  const file = await open(path);
  const { buffer } = await file.read(Buffer.alloc(4), 0, 4, BRAND_AT).finally(() => file.close());
  if (buffer.toString('latin1') === 'avis') await overwrite(path, BRAND_AT, Buffer.from('avif'));
  return 'avif';
}

async function overwrite(path: string, at: number, bytes: Buffer): Promise<void> {
  const file = await open(path, 'r+');
  try {
    await file.write(bytes, 0, bytes.length, at);
  } finally {
    await file.close();
  }
}
