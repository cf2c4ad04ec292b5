import { open } from 'node:fs/promises';
import type { InputType } from '../formats.ts';
import { keepBestImage } from './icon.ts';

/** Changes in a received file, before anybody reads it, that spare the tools what they stumble over. */

const MENDS: Partial<Record<InputType, (path: string) => Promise<InputType>>> = {
  ico: keepBestImage,
  bmp: forgetLength,
  avif: callStill,
};

/** @returns what the file is then */
export async function mend(path: string, type: InputType): Promise<InputType> {
  return (await MENDS[type]?.(path)) ?? type;
}

/** Where a BMP says how long it is, in four bytes (BITMAPFILEHEADER). */
const LENGTH_AT = 2;

/** Many a BMP is wrong about its own length, and 6 refuses one that says too much; viewers do not look. */
async function forgetLength(path: string): Promise<InputType> {
  await overwrite(path, LENGTH_AT, Buffer.alloc(4));
  return 'bmp';
}

/** Where an AVIF says what it is first of all (ISO/IEC 14496-12, section 4.3). */
const BRAND_AT = 8;

/** Of a sequence the picture is wanted that stands for it, and libheif's older tools know no sequences. */
async function callStill(path: string): Promise<InputType> {
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
