/** @module Compiles broken-codec.c, which stands in for a compromised decoder. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeTempDir } from './hooks.ts';

const SOURCE = new URL('../../src/process/sandbox/broken-codec.c', import.meta.url).pathname;
/** Path of the program in the chroot of `scripts/debian-13.sh`, which has no compiler. */
const PREBUILT = '/usr/local/bin/imagemill-broken-codec';

/**
 * Builds the program. It is linked dynamically, as the tools are, so that the fork server can be
 * preloaded.
 *
 * @param more further arguments of the compiler
 * @returns the path; undefined without a compiler
 */
export async function buildBrokenCodec(name: string, ...more: string[]): Promise<string | undefined> {
  const program = join(await makeTempDir('codec'), name);
  const { status } = spawnSync('cc', ['-O1', '-pthread', '-rdynamic', '-o', program, SOURCE, ...more]);
  if (status === 0) return program;
  if (more.length > 0) return undefined;
  if (!existsSync(PREBUILT)) return undefined;
  await copyFile(PREBUILT, program);
  return program;
}

/**
 * Builds a library that starts a thread when it is loaded, so that no fork server can run a program
 * that needs it.
 *
 * @returns the path, which does not exist without a compiler
 */
export async function buildThreadLibrary(): Promise<string> {
  const library = join(await makeTempDir('thread'), 'libthread.so');
  const source = `${library}.c`;
  await writeFile(
    source,
    `#include <pthread.h>
#include <unistd.h>
static void *rest(void *p) { for (;;) pause(); return p; }
__attribute__((constructor)) static void begin(void) { pthread_t t; pthread_create(&t, 0, rest, 0); }
`,
  );
  spawnSync('cc', ['-shared', '-fPIC', '-pthread', '-o', library, source]);
  return library;
}
