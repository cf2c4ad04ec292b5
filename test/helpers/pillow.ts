/** @module Decodes images with Pillow, a decoder independent of the tools under test and of sharp. */
import { spawnSync } from 'node:child_process';
import type { Pixels } from './pixels.ts';
import { pipe } from './process.ts';

const PROGRAM = new URL('pillow.py', import.meta.url).pathname;
/** Path of Python. Prefers /usr/bin/python3, for which Debian packages Pillow. */
export const PYTHON: string =
  ['/usr/bin/python3', 'python3'].find((python) => spawnSync(python, ['-c', 'import PIL']).status === 0) ??
  'python3';

/**
 * Decodes a file to sRGB, upright. For animations, decodes the first frame, or all frames stacked vertically.
 *
 * @throws {Error} with the message of Pillow if it cannot read the file
 */
export async function decodeByPillow(file: Uint8Array, frames: 'all' | 'first' = 'all'): Promise<Pixels> {
  const output = await pipe(PYTHON, [PROGRAM, frames], file);
  const end = output.indexOf('\n');
  const { width, height, delays } = JSON.parse(output.toString('utf8', 0, end)) as {
    width: number;
    height: number;
    delays: number[];
  };
  return { width, height: height * delays.length, data: output.subarray(end + 1) };
}
