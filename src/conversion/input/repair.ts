import { open, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { InputType } from '../../formats.ts';
import { PROFILE_FILE } from '../plan/types.ts';
import { keepBestImage } from './ico.ts';
import { nameTransparency } from './jp2-alpha.ts';

/** Changes in a received file, before anybody reads it, that spare the tools what they stumble over. */

const REPAIRS: Partial<Record<InputType, (path: string) => Promise<InputType>>> = {
  ico: keepBestImage,
  bmp: clearBmpFileSize,
  avif: (path) => rebrandAvifSequence(path, 'avif'),
  webp: extractWebpProfile,
  heic: (path) => rebrandAvifSequence(path, 'heic'),
  cur: keepBestImage,
  jp2: nameTransparency,
};

/** @returns what the file is then */
export async function repairInput(path: string, type: InputType): Promise<InputType> {
  return (await REPAIRS[type]?.(path)) ?? type;
}

/** Where a BMP says how long it is, in four bytes (BITMAPFILEHEADER). */
const LENGTH_AT = 2;

/** Many a BMP is wrong about its own length, and 6 refuses one that says too much; viewers do not look. */
async function clearBmpFileSize(path: string): Promise<InputType> {
  await overwrite(path, LENGTH_AT, Buffer.alloc(4));
  return 'bmp';
}

/** Where an AVIF or a HEIC says what it is first of all (ISO/IEC 14496-12, section 4.3). */
const BRAND_AT = 8;

/** The brands of sequences, and of the stills that they are called instead (ISO/IEC 23008-12, section 10; AVIF, section 6). */
const STILL_BRANDS = {
  avif: { sequences: ['avis'], still: 'avif' },
  heic: { sequences: ['hevc', 'hevx', 'msf1'], still: 'heic' },
} as const;

/** Of a sequence the picture is wanted that stands for it, and libheif's older tools know no sequences. */
async function rebrandAvifSequence(path: string, type: keyof typeof STILL_BRANDS): Promise<InputType> {
  const file = await open(path);
  const { buffer } = await file.read(Buffer.alloc(4), 0, 4, BRAND_AT).finally(() => file.close());
  const { sequences, still } = STILL_BRANDS[type];
  if (sequences.some((brand) => brand === buffer.toString('latin1')))
    await overwrite(path, BRAND_AT, Buffer.from(still));
  return type;
}

/** A profile larger than this is left where it is: the largest for printers have about 2 MiB. */
const MAX_PROFILE_BYTES = 4 * 1024 ** 2;

/** ImageMagick overlooks the profile of a WebP that has frames: it gets it as a file (RFC 9649, section 2.7). */
async function extractWebpProfile(path: string): Promise<InputType> {
  const file = await open(path);
  try {
    // Where there is one it is the first chunk behind the file's header.
    const { buffer: head } = await file.read(Buffer.alloc(38), 0, 38, 0);
    const length = head.readUInt32LE(34);
    if (head.toString('latin1', 30, 34) !== 'ICCP' || length > MAX_PROFILE_BYTES) return 'webp';
    const { buffer: profile } = await file.read(Buffer.alloc(length), 0, length, 38);
    await writeFile(join(dirname(path), PROFILE_FILE), profile);
    return 'webp';
  } finally {
    await file.close();
  }
}

async function overwrite(path: string, at: number, bytes: Buffer): Promise<void> {
  const file = await open(path, 'r+');
  try {
    await file.write(bytes, 0, bytes.length, at);
  } finally {
    await file.close();
  }
}
