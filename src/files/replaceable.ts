/** @module Replaces files of the user: only those of the same command, and only by complete ones. */
import { randomUUID } from 'node:crypto';
import { open, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';

/**
 * Checks that a command would replace no file, or only a file that the same command has written.
 *
 * @param start text with which every such file starts, in ASCII
 * @returns false for another file with content. A pipe or a terminal has none.
 * @throws {Error} if the file cannot be read
 */
export async function isReplaceable(path: string, start: string): Promise<boolean> {
  const info = await stat(path).catch(() => undefined);
  if (!info?.isFile() || info.size === 0) return true;
  const file = await open(path);
  try {
    const { buffer } = await file.read(Buffer.alloc(start.length), 0, start.length, 0);
    return buffer.toString('latin1') === start;
  } finally {
    await file.close();
  }
}

/** Errors of creating or renaming the new file that do not prevent writing to the older one. */
const IRREPLACEABLE = ['EBUSY', 'EACCES', 'EPERM', 'EROFS'];

/**
 * Writes a text file. If that fails, an older file keeps its content, except if it cannot be replaced: a mount point, or a
 * file in a read-only folder, is written directly, like a pipe or a terminal.
 *
 * @throws {Error} of the file system
 */
export async function replaceFile(path: string, text: string): Promise<void> {
  const info = await stat(path).catch(() => undefined);
  if (info && !info.isFile()) return writeFile(path, text);
  const target = info ? await realpath(path) : path; // keep a link
  const temporary = `${target}.${randomUUID()}`;
  try {
    await writeFile(temporary, text, info && { mode: info.mode });
    await rename(temporary, target);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {}); // report the earlier error instead
    const { code = '' } = error as NodeJS.ErrnoException;
    if (!info || !IRREPLACEABLE.includes(code)) throw error;
    await writeFile(target, text);
  }
}
