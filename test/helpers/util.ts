import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import type { CommandError } from '../../src/process/command.ts';
import { makeTempDir } from './hooks.ts';

/** Writes an executable shell script, for tests that need a misbehaving tool. */
export async function writeScript(name: string, body: string, folder?: string): Promise<string> {
  const path = join(folder ?? (await makeTempDir('script')), name);
  await writeFile(path, `#!/bin/sh\n${body}\n`);
  await chmod(path, 0o755);
  return path;
}

/** Reads the number in a file; undefined if there is none yet. */
export const numberIn = async (path: string): Promise<number | undefined> =>
  Number(await readFile(path, 'utf8').catch(() => '')) || undefined;

/** Returns the processes of this machine of which a file in /proc has a property. */
export const processesWhere = (
  file: 'cgroup' | 'cmdline' | 'environ' | 'status',
  test: (text: string) => boolean,
): number[] =>
  readdirSync('/proc')
    .filter((pid) => {
      try {
        return /^\d+$/.test(pid) && test(readFileSync(`/proc/${pid}/${file}`, 'latin1'));
      } catch {
        return false; // the process has exited
      }
    })
    .map(Number);

/** Returns true if a process exists and is not a zombie. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !existsSync('/proc/self/stat') || !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
}

/**
 * Time for which tests wait for a condition, in milliseconds: a busy machine needs much, and the
 * test ends twice as late.
 */
export const PATIENCE_MS = 300_000;

/**
 * Polls every 20 ms until `check` returns a value other than undefined and false.
 *
 * @throws {Error} after {@link PATIENCE_MS}
 */
export async function eventually<T>(
  check: () => Promise<T | undefined | false> | T | undefined | false,
): Promise<T> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const value = await check();
    if (value !== undefined && value !== false) return value;
    if (performance.now() > deadline) throw new Error(`never true: ${check}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/**
 * Attempts something with a time limit of 500 ms, and with longer ones until `find` returns a
 * value: on a busy machine, a program may not start before its time limit.
 */
export async function atTimeLimit<T>(
  attempt: (timeoutMs: number) => Promise<void>,
  find: () => Promise<T | undefined>,
): Promise<T> {
  for (let timeoutMs = 500; ; timeoutMs *= 2) {
    await attempt(timeoutMs);
    const found = await find();
    if (found !== undefined) return found;
  }
}

/** Returns the error of a command, or of another promise. Fails the test if there is none. */
export const failure = <E = CommandError>(promise: Promise<unknown>): Promise<E> =>
  promise.then(
    () => expect.fail('it succeeded'),
    (error) => error,
  );
