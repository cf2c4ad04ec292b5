/** @module Creates a folder with its parents. */
import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Creates a folder and its missing parents. `mkdir` of Node.js 24 with `recursive` does the same, but on a read-only disk it
 * reports ENOENT instead of EROFS, and below `/proc` it never ends.
 *
 * @throws {Error} of the first `mkdir` that fails; EEXIST if a file has this name
 */
export async function createFolders(path: string): Promise<void> {
  try {
    await mkdir(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const parent = dirname(path);
    if (code === 'ENOENT' && parent !== path) {
      await createFolders(parent);
      await mkdir(path).catch((second) => assertFolder(path, second));
    } else {
      await assertFolder(path, error);
    }
  }
}

/** @throws the error of `mkdir`, unless the folder exists. For a link that leads nowhere, its message would be wrong. */
async function assertFolder(path: string, error: unknown): Promise<void> {
  const info = await stat(path).catch(() => undefined);
  if (info?.isDirectory()) return;
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'EEXIST') (error as Error).message = `${path} is not a folder`;
  throw error;
}
