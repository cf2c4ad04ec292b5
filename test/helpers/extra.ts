/** @module Images of the formats of EXTRA_INPUTS and EXTRA_OUTPUTS. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decodeByPillow } from './pillow.ts';
import { decode, type Pixels } from './pixels.ts';
import { pipe } from './process.ts';

/** Reads a file in `fixtures/extra/`. */
export const extra = (name: string): Promise<Buffer> => readFile(extraPath(name));
/** Returns the path of a file in `fixtures/extra/`. */
export const extraPath = (name: string): string =>
  new URL(`../../fixtures/extra/${name}`, import.meta.url).pathname;

/** Settings that enable all of these formats. */
export const ALL_EXTRAS = { EXTRA_INPUTS: 'all', EXTRA_OUTPUTS: 'all' } as const;

/** Decodes a result of any format with a decoder that is independent of the encoder. */
export async function decodeAny(file: Uint8Array, type: string): Promise<Pixels> {
  if (type === 'jxl') return decodeJxl(file);
  if (type === 'ico') return decodeByPillow(file);
  return decode(file, type === 'bmp' || type === 'pdf' ? type : 'any');
}

/**
 * Decodes JPEG XL with djxl, since Pillow of Debian does not support it. Decodes its PNG with Pillow: sharp
 * converts 16-bit PNGs with a profile differently.
 */
async function decodeJxl(file: Uint8Array): Promise<Pixels> {
  const folder = await mkdtemp(join(tmpdir(), 'imagemill-jxl-'));
  try {
    await writeFile(join(folder, 'in.jxl'), file);
    await pipe('djxl', [join(folder, 'in.jxl'), join(folder, 'out.png'), '--quiet'], Buffer.alloc(0));
    return await decodeByPillow(await readFile(join(folder, 'out.png')));
  } finally {
    await rm(folder, { recursive: true });
  }
}
