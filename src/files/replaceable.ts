/** @module Protects files of the user that a command would replace by mistake. */
import { open, stat } from 'node:fs/promises';

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
