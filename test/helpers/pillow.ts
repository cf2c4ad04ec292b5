import { spawnSync } from 'node:child_process';
import type { Pixels } from './pixels.ts';
import { pipe } from './process.ts';

/** Pictures as Pillow sees them: the second opinion. */

const PROGRAM = new URL('pillow.py', import.meta.url).pathname;
/** The system's own first: Debian's package is for that one. */
const PYTHON = ['/usr/bin/python3', 'python3'].find(
  (python) => spawnSync(python, ['-c', 'import PIL']).status === 0,
);

/**
 * The pixels of a file in sRGB, upright; of an animation the first frame, or all, one below the other.
 *
 * @throws Error with what Pillow says when it cannot read the file
 */
export async function decodeByPillow(file: Uint8Array, frames: 'all' | 'first' = 'all'): Promise<Pixels> {
  const output = await pipe(PYTHON ?? 'python3', [PROGRAM, frames], file);
  const end = output.indexOf('\n');
  const { width, height, delays } = JSON.parse(output.toString('utf8', 0, end)) as {
    width: number;
    height: number;
    delays: number[];
  };
  return { width, height: height * delays.length, data: output.subarray(end + 1) };
}
