import { lstatSync, opendirSync, rmSync } from 'node:fs';
import { chmod, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

/** Folders of ours, removed with all that is in them. */

const MOST_NAMES = 64;
const MOST_BYTES = 4 * 1024 ** 2;

/**
 * What is small is removed at once: other threads would take longer to be woken. What is large takes a while, and what
 * a tool has left may be anything, so others are served meanwhile. It need not be there.
 */
export async function removeFolder(path: string): Promise<void> {
  try {
    if (isSmall(path)) return rmSync(path, { recursive: true, force: true });
  } catch {
    // It has changed, or is gone: the other way tries again, and tells.
  }
  const rest = { recursive: true, force: true, maxRetries: 3 } as const;
  await rm(path, rest).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EACCES' && error.code !== 'EPERM') throw error;
    await allowRemoval(path);
    await rm(path, rest);
  });
}

/** Gives the owner all rights on a folder and those in it: without them, what a tool has left there cannot be removed. */
async function allowRemoval(folder: string): Promise<void> {
  await chmod(folder, 0o700);
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) await allowRemoval(join(folder, entry.name));
  }
}

function isSmall(path: string): boolean {
  let names = 0;
  let bytes = 0;
  const folders = [path];
  for (const folder of folders) {
    const entries = opendirSync(folder);
    try {
      for (let entry = entries.readSync(); entry; entry = entries.readSync()) {
        names += 1;
        if (entry.isDirectory()) folders.push(join(folder, entry.name));
        else bytes += lstatSync(join(folder, entry.name)).size;
        if (names > MOST_NAMES || bytes > MOST_BYTES) return false;
      }
    } finally {
      entries.closeSync();
    }
  }
  return true;
}
