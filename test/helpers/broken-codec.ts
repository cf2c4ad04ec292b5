import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeTempDir } from './hooks.ts';

/** The stand-in for a broken codec, broken-codec.c, as a program. */

const SOURCE = new URL('broken-codec.c', import.meta.url).pathname;
/** Where `scripts/debian-13.sh` puts it, since there is no compiler in that system. */
const BUILT = '/usr/local/bin/imagemill-broken-codec';

/** The program linked statically, so that it needs no library of the machine; undefined without a compiler. */
export async function buildBrokenCodec(name: string): Promise<string | undefined> {
  const program = join(await makeTempDir('codec'), name);
  const { status } = spawnSync('cc', ['-static', '-O1', '-pthread', '-o', program, SOURCE]);
  if (status === 0) return program;
  if (!existsSync(BUILT)) return undefined;
  await copyFile(BUILT, program);
  return program;
}
