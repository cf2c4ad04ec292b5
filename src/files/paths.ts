/** @module Compares paths. */
import { realpath } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';

/** Returns the absolute path without symbolic links. Keeps components that do not exist. */
export async function realPathOf(path: string): Promise<string> {
  const absolute = resolve(path);
  if (absolute === '/') return absolute;
  const real = await realpath(absolute).catch(() => undefined);
  return real ?? join(await realPathOf(dirname(absolute)), basename(absolute));
}

/** Returns whether an absolute path is a folder or inside of it. */
export function isInside(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder === '/' ? folder : `${folder}/`);
}
