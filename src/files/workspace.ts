import { mkdirSync, mkdtempSync, statfsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fail } from '../errors.ts';
import { makeInstanceFolder } from './instance.ts';
import { removeFolder } from './remove.ts';

/** One private folder a request, removed whole in every outcome. */

export interface Workspace {
  readonly path: string;
  /** Makes a folder of its own for one file and its conversion. */
  folder(name: string): Promise<string>;
  remove(): Promise<void>;
}

export interface Workspaces {
  /**
   * @param bytes what is to be received into it
   * @throws ServiceError with status 503 when there is not room for it and for what becomes of it
   */
  open(bytes?: number): Promise<Workspace>;
  /** The folder of this process, which all its workspaces are in. */
  home(): Promise<string>;
  /** What requests under way have said that they bring, with what may become of it, in bytes. */
  reserved(): number;
  /** What the disk has left, in bytes; nothing when it cannot be asked. */
  free(): Promise<number | undefined>;
  /** Removes what this process still has on disk. */
  close(): Promise<void>;
}

/** What is received, once more for what becomes of it, and a reserve for those who work already. */
export const ROOM_FACTOR = 2;
const RESERVE_BYTES = 8 * 1024 ** 2;

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
  let reserved = 0;

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

  return {
    home: currentHome,
    reserved: () => reserved,
    free: () => freeNow().catch(() => undefined),
    async open(bytes = 0) {
      const needed = ROOM_FACTOR * bytes;
      const left = (await freeNow()) ?? Number.POSITIVE_INFINITY; // it will show
      if (left < needed + RESERVE_BYTES) throw fail('DISK_FULL');
      const path = await makeFolder();
      reserved += needed;
      return {
        path,
        async folder(name) {
          const folder = join(path, name);
          mkdirSync(folder, { mode: 0o700 });
          return folder;
        },
        async remove() {
          await removeFolder(path).finally(() => {
            reserved -= needed;
          });
        },
      };
    },
    async close() {
      const path = await home?.catch(() => undefined);
      home = undefined;
      if (path) await removeFolder(path);
    },
  };
}
