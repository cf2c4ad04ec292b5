import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isAlive, ownerOf } from './instance.ts';

/** A folder of another container, which cannot be asked, counts as left behind after this time without a change. */
const STALE_MS = 24 * 60 * 60 * 1000;

/**
 * Removes the folders in `tempDir` that processes of ours left behind when they were
 * killed. Those of live processes, and everything that is not ours, stay.
 *
 * @param now milliseconds since the epoch
 * @returns the names of the folders that are gone
 */
export async function sweep(tempDir: string, now: number = Date.now()): Promise<string[]> {
  const names = await readdir(tempDir).catch(() => []);
  const swept = await Promise.all(
    names.map(async (name) => {
      const owner = ownerOf(name);
      if (!owner) return [];
      const path = join(tempDir, name);
      const alive = (await isAlive(owner)) ?? (await changedSince(path, now - STALE_MS));
      if (alive) return [];
      // Another user's, perhaps: then it is that user's next process that removes it.
      const gone = await rm(path, { recursive: true, force: true }).then(
        () => true,
        () => false,
      );
      return gone ? [name] : [];
    }),
  );
  return swept.flat();
}

async function changedSince(path: string, time: number): Promise<boolean> {
  const info = await stat(path).catch(() => undefined);
  return info !== undefined && info.mtimeMs > time;
}
