/** @module Images of the formats of EXTRA_INPUTS and EXTRA_OUTPUTS. */
import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decodeByPillow } from './pillow.ts';
import { decode, type Pixels } from './pixels.ts';
import { pipe } from './process.ts';

export const extra = (name: string): Promise<Buffer> => readFile(extraPath(name));
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
 * Decodes JPEG XL with djxl, since Pillow of Debian does not support it. Decodes its PNG with
 * Pillow: sharp converts 16-bit PNGs with a profile differently.
 */
const decodeJxl = async (file: Uint8Array): Promise<Pixels> => decodeByPillow(await runDjxl(file, 'png'));

/**
 * Encodes a PNG as a JPEG XL with cjxl: without loss and in sRGB, unless the options state others.
 */
export async function runCjxl(png: Uint8Array, ...options: readonly string[]): Promise<Buffer> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'imagemill-jxl-'));
  const [from, to] = [join(folder.path, 'in.png'), join(folder.path, 'out.jxl')];
  await writeFile(from, png);
  const colours = options.includes('-x') ? [] : ['-x', 'color_space=RGB_D65_SRG_Rel_SRG'];
  await pipe('cjxl', [from, to, '-d', '0', '--quiet', ...colours, ...options], Buffer.alloc(0));
  return await readFile(to);
}

/** Decodes a JPEG XL to a PNG, or restores the JPEG that it was made of. */
export async function runDjxl(file: Uint8Array, extension: 'png' | 'jpg'): Promise<Buffer> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'imagemill-jxl-'));
  const [from, to] = [join(folder.path, 'in.jxl'), join(folder.path, `out.${extension}`)];
  await writeFile(from, file);
  await pipe('djxl', [from, to, '--quiet'], Buffer.alloc(0));
  return await readFile(to);
}
