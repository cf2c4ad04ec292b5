/** @module Compiles broken-codec.c, which stands in for a compromised decoder. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeTempDir } from './hooks.ts';

const SOURCE = new URL('broken-codec.c', import.meta.url).pathname;
/** Path of the program in the chroot of `scripts/debian-13.sh`, which has no compiler. */
const PREBUILT = '/usr/local/bin/imagemill-broken-codec';

/**
 * Builds the program with static linking, so that it needs no libraries of the machine.
 *
 * @returns the path; undefined without a compiler
 */
export async function buildBrokenCodec(name: string): Promise<string | undefined> {
  const program = join(await makeTempDir('codec'), name);
  const { status } = spawnSync('cc', ['-static', '-O1', '-pthread', '-o', program, SOURCE]);
  if (status === 0) return program;
  if (!existsSync(PREBUILT)) return undefined;
  await copyFile(PREBUILT, program);
  return program;
}
