import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decodeByPillow } from './pillow.ts';
import { decode, type Pixels } from './pixels.ts';
import { pipe } from './process.ts';

/** Images of the formats that operators switch on. */

export const extra = (name: string): Promise<Buffer> => readFile(extraPath(name));
export const extraPath = (name: string): string =>
  new URL(`../../fixtures/extra/${name}`, import.meta.url).pathname;

/** The settings under which all of them are on. */
export const ALL_EXTRAS = { EXTRA_INPUTS: 'all', EXTRA_OUTPUTS: 'all' } as const;

/** The pixels of a converted file of any format, by a decoder that did not write it. */
export async function decodeAny(file: Uint8Array, type: string): Promise<Pixels> {
  if (type === 'jxl') return decodeJxl(file);
  if (type === 'ico') return decodeByPillow(file);
  return decode(file, type === 'bmp' || type === 'pdf' ? type : 'any');
}

/** By libjxl's own program, then Pillow, since sharp reads deep PNGs with a profile in a way of its own: no package of npm or Debian's Pillow reads JPEG XL. */
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
