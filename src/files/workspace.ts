import { lstatSync, mkdirSync, mkdtempSync, opendirSync, rmSync, statfsSync } from 'node:fs';
import { chmod, mkdir, opendir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createDiskRoom, RESERVE_BYTES as MIN_FREE_BYTES, type RequestRoom } from './disk-room.ts';
import { makeInstanceFolder } from './stale.ts';

/** One private folder a request, removed whole in every outcome. */

export interface Workspace {
  readonly path: string;
  /** What the request has of the disk. */
  readonly room: RequestRoom;
  /** Makes a folder of its own for one file and its conversion. */
  folder(name: string): Promise<string>;
  /** Removes a folder of {@link folder} that holds what was received, and gives its room back. */
  discard(folder: string): Promise<void>;
  /** Removes everything and ends the count of its room, also when something could not be removed. */
  remove(): Promise<void>;
}

/** Whose workspace it is to be, and what for. */
interface WorkspaceFor {
  /** The key of the client, by which the room on disk is shared; without one there is no share to keep to. */
  readonly client?: string;
  /** How much is going to be received into it. */
  readonly bytes?: number;
}

export interface Workspaces {
  /** @throws ServiceError DISK_FULL when there is no room for what is to be received, see {@link RequestRoom.reserve} */
  open(purpose?: WorkspaceFor): Promise<Workspace>;
  /**
   * Runs `work` in a workspace of its own, which is removed afterwards.
   *
   * @throws what `work` throws, whatever happens at the removal; or what {@link Workspaces.open} or the removal throws
   */
  use<T>(purpose: WorkspaceFor, work: (workspace: Workspace) => Promise<T>): Promise<T>;
  /** The folder of this process, which all its workspaces are in. */
  root(): Promise<string>;
  /** What requests under way have stored, and may still store, in bytes. */
  reserved(): number;
  /** Whether there is room for requests, or will be when those under way have ended. */
  hasRoom(): Promise<boolean>;
  /** What the disk has left, in bytes; nothing when it cannot be asked. */
  free(): Promise<number | undefined>;
  /** Removes what this process still has on disk. */
  close(): Promise<void>;
}

/** How many bytes the disk of a folder has left for users without privileges. */
async function freeOn(folder: string): Promise<number> {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}

/**
 * Everything this process puts on disk is below one folder in `tempDir`, which has a file
 * that says which process it belongs to.
 */
export function createWorkspaces(tempDir: string, free = freeOn): Workspaces {
  let home: Promise<string> | undefined;

  const makeHome = async (): Promise<string> => {
    await mkdir(tempDir, { recursive: true });
    return makeInstanceFolder(tempDir);
  };
  const forget = (made: Promise<string>): void => {
    if (home === made) home = undefined;
  };
  const currentHome = (): Promise<string> => {
    if (home) return home;
    const made = makeHome();
    made.catch(() => forget(made)); // whoever comes next tries again
    home = made;
    return made;
  };
  const makeFolder = async (): Promise<string> => {
    const tried = currentHome();
    try {
      return mkdtempSync(join(await tried, 'request-'));
    } catch (error) {
      // Someone may have tidied up the temp folder while nothing was under way.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      forget(tried);
      return mkdtempSync(join(await currentHome(), 'request-'));
    }
  };

  const freeNow = async (): Promise<number | undefined> => free(await currentHome()).catch(() => undefined);
  const room = createDiskRoom(freeNow);

  const open: Workspaces['open'] = async ({ client, bytes = 0 } = {}) => {
    const ownRoom = await room.open(client, bytes);
    const path = await makeFolder().catch((error) => {
      ownRoom.close();
      throw error;
    });
    return {
      path,
      room: ownRoom,
      async folder(name) {
        const folder = join(path, name);
        mkdirSync(folder, { mode: 0o700 });
        return folder;
      },
      async discard(folder) {
        ownRoom.release(await removeFolder(folder));
      },
      async remove() {
        await removeFolder(path).finally(ownRoom.close);
      },
    };
  };

  return {
    open,
    async use(purpose, work) {
      const workspace = await open(purpose);
      const result = await work(workspace).catch(async (error) => {
        await workspace.remove().catch(() => {}); // the next start sweeps up what is left
        throw error;
      });
      await workspace.remove();
      return result;
    },
    root: currentHome,
    reserved: room.held,
    free: () => freeNow().catch(() => undefined),
    async hasRoom() {
      const left = (await freeNow()) ?? Number.POSITIVE_INFINITY;
      return left + room.stored() >= MIN_FREE_BYTES;
    },
    async close() {
      const path = await home?.catch(() => undefined);
      home = undefined;
      if (path) await removeFolder(path);
    },
  };
}

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
