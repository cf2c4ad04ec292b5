import { readdir, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isAlive, readInstanceFolder } from './instance.ts';

/** How long a folder stays that cannot be judged: of another container, or without an owner. In milliseconds. */
const STALE_MS = 24 * 60 * 60 * 1000;

/**
 * Removes the folders in `tempDir` that processes of this user left behind when they were
 * killed. Those of live processes, of other users, and everything else stay.
 *
 * @param now milliseconds since the epoch
 * @returns the names of the removed folders
 */
export async function removeStaleWorkspaces(tempDir: string, now: number = Date.now()): Promise<string[]> {
  const names = await readdir(tempDir).catch(() => []);
  const swept = await Promise.all(
    names.map(async (name) => ((await sweepFolder(join(tempDir, name), now)) ? [name] : [])),
  );
  return swept.flat();
}

async function sweepFolder(path: string, now: number): Promise<boolean> {
  const folder = await readInstanceFolder(path);
  if (!folder) return false;
  const { owner, changedMs } = folder;
  if ((owner && (await isAlive(owner))) ?? changedMs > now - STALE_MS) return false;
  // Without an owner, only an empty folder is known to be one that an instance was making.
  const removed = owner ? rm(path, { recursive: true, force: true }) : rmdir(path);
  return removed.then(
    () => true,
    () => false,
  );
}
