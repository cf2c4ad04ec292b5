/** @module All images of the project, and damage to their headers. */
import { readdirSync, readFileSync } from 'node:fs';
import { ALL_INPUT_TYPES, type InputType } from '../../src/tables/formats.ts';
import { plain } from './pixels.ts';

const FOLDERS = ['images', 'traps', 'extra'] as const;
const EXTENSIONS: Readonly<Record<string, InputType>> = { tif: 'tiff', jpeg: 'jpg', j2k: 'jp2' };

/** An image of the project. */
export interface Fixture {
  readonly name: string;
  readonly type: InputType;
  readonly bytes: Buffer;
}
/** The images in `fixtures/`, by the names of their folders and files. */
export const FIXTURE_FILES: readonly (Fixture & { readonly folder: (typeof FOLDERS)[number] })[] =
  FOLDERS.flatMap((folder) => {
    const path = new URL(`../../fixtures/${folder}/`, import.meta.url).pathname;
    return readdirSync(path)
      .sort()
      .flatMap((name) => {
        const extension = name.split('.').at(-1) ?? '';
        const type = ALL_INPUT_TYPES.find((input) => input === (EXTENSIONS[extension] ?? extension));
        return type ? [{ folder, name, type, bytes: readFileSync(path + name) }] : [];
      });
  });
/**
 * BigTIFFs: directories, counts and offsets are 64-bit numbers, and Node.js reads file positions up
 * to 2^53.
 */
const BIG_TIFFS: readonly Fixture[] = [
  {
    name: 'a BigTIFF with a profile',
    type: 'tiff',
    bytes: await plain(40, 30).withIccProfile('p3').tiff({ bigtiff: true }).toBuffer(),
  },
  {
    name: 'a BigTIFF of two directories',
    type: 'tiff',
    bytes: await plain(40, 30)
      .tiff({ bigtiff: true, pyramid: true, tile: true, tileWidth: 16, tileHeight: 16 })
      .toBuffer(),
  },
];
/** All images of the project, and two BigTIFFs. */
export const FIXTURES: readonly Fixture[] = [...FIXTURE_FILES, ...BIG_TIFFS];

/**
 * Byte values that are likely to cause errors: no bits, all bits, sign bits, and sizes of windows.
 */
const NASTY = [0x00, 0xff, 0x7f, 0x80, 0x01, 0x40, 0xfe];

/** Names of the parts of a header that repairs change. */
const PARTS = [
  'iref',
  'iinf',
  'ipma',
  'ipco',
  'ispe',
  'colr',
  'auxC',
  'irot',
  'jp2h',
  'ihdr',
  'cdef',
  'pclr',
  '\xff\x51',
  'IHDR',
  'PLTE',
  'iCCP',
  'IDAT',
];
/** Bytes after the name of a part that belong to it. */
const PART_BYTES = 48;

/**
 * Returns the offsets of the parts of a header that repairs change, and of the first directory of a
 * TIFF.
 */
export function findParts({ type, bytes }: Fixture): number[] {
  const isBigEndian = bytes[0] === 0x4d;
  const directory = type === 'tiff' ? [isBigEndian ? bytes.readUInt32BE(4) : bytes.readUInt32LE(4)] : [];
  const named = PARTS.map((name) => bytes.indexOf(name, 0, 'latin1')).filter((at) => at >= 0);
  return [...directory, ...named];
}

/**
 * Returns a copy with one to five changed bytes. Most are near the start, where most header fields
 * are.
 *
 * @param parts offsets of parts of the header, which get half of the changes
 */
export function damage(bytes: Buffer, random: () => number, parts: readonly number[] = []): Buffer {
  const mutant = Buffer.from(bytes);
  for (let change = 0; change <= random() * 4; change += 1) {
    const part = parts.length > 0 && random() < 0.5 ? parts[Math.floor(random() * parts.length)] : undefined;
    const at =
      part === undefined
        ? random() ** 3 * mutant.length
        : Math.min(part + random() * PART_BYTES, mutant.length - 1);
    mutant[Math.floor(at)] =
      random() < 0.5 ? (NASTY[Math.floor(random() * NASTY.length)] as number) : random() * 256;
  }
  return mutant;
}
