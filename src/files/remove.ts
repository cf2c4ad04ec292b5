import { lstatSync, opendirSync, rmSync } from 'node:fs';
import { chmod, opendir, rm } from 'node:fs/promises';
import { join } from 'node:path';

/** Removes folders of ours, with all that is in them. */

const MAX_SYNC_NAMES = 64;
const MAX_SYNC_BYTES = 4 * 1024 ** 2;

/**
 * Removes a folder, which need not be there. What is small is removed at once, since other threads would take longer to
 * be woken. What is large takes a while, and what a tool has left may be anything, so others are served meanwhile.
 *
 * @returns the bytes of the files that were in it, of the first {@link MAX_SYNC_NAMES}
 */
export async function removeFolder(path: string): Promise<number> {
  const { names, bytes } = measure(path);
  try {
    if (names <= MAX_SYNC_NAMES && bytes <= MAX_SYNC_BYTES) rmSync(path, { recursive: true, force: true });
    else await rm(path, { recursive: true, force: true, maxRetries: 3 });
  } catch {
    // It has changed meanwhile, or a tool has taken the rights to its folders away.
    await restoreRights(path);
    await rm(path, { recursive: true, force: true, maxRetries: 3 });
  }
  return bytes;
}

/** Counts no further than it must: thousands of files would hold up the event loop. */
function measure(path: string): { readonly names: number; readonly bytes: number } {
  let names = 0;
  let bytes = 0;
  const folders = [path];
  try {
    for (const folder of folders) {
      const entries = opendirSync(folder);
      try {
        for (let entry = entries.readSync(); entry; entry = entries.readSync()) {
          names += 1;
          if (names > MAX_SYNC_NAMES) return { names, bytes };
          if (entry.isDirectory()) folders.push(join(folder, entry.name));
          else bytes += lstatSync(join(folder, entry.name)).size;
        }
      } finally {
        entries.closeSync();
      }
    }
  } catch {
    // It is gone, or cannot be read: its removal tells.
  }
  return { names, bytes };
}

/** Lets the owner of the folders, which is this process, list them and remove what is in them. */
async function restoreRights(path: string): Promise<void> {
  const folders = [path];
  for (const folder of folders) {
    try {
      await chmod(folder, 0o700);
      for await (const entry of await opendir(folder))
        if (entry.isDirectory()) folders.push(join(folder, entry.name));
    } catch {
      // It is gone, or not ours: its removal tells.
    }
  }
}
