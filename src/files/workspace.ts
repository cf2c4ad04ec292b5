/** @module Workspaces: a private folder per request, which is removed after every outcome. */
import {
  appendFile,
  appendFileSync,
  existsSync,
  lstatSync,
  type MakeDirectoryOptions,
  mkdirSync,
  mkdtempSync,
  open,
  opendirSync,
  openSync,
  promises,
  type RmOptions,
  renameSync,
  rmSync,
  statfsSync,
} from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type DiskAccount, DiskSpace, MIN_FREE_BYTES } from './disk-space.ts';
import { removeTree } from './remove.ts';
import { makeInstanceFolder } from './stale.ts';
import { createFolders, isInMemory } from './system.ts';

interface WorkspaceOptions {
  /** Key of the client, for its share of the disk. Without one, there is no limit to a share. */
  readonly client?: string;
  /** Announced size of the upload, in bytes. */
  readonly bytes?: number;
}

/** Returns the bytes that the disk of a folder has left for unprivileged users. */
async function freeOn(folder: string): Promise<number> {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}

/** Returns whether the disk of a folder has less left than should stay free. */
export const isNearlyFull = async (folder: string): Promise<boolean> =>
  (await freeOn(folder)) < MIN_FREE_BYTES;

/** Folders to remove when the process exits without closing them, as in a stop that takes long. */
const leftOnExit = new Set<string>();
process.on('exit', () => {
  for (const path of leftOnExit) {
    try {
      for (let attempt = 0; attempt < 3 && existsSync(path); attempt += 1)
        rmSync(path, { recursive: true, force: true, maxRetries: 3 });
    } catch {
      // A tool still writes there. The next start removes the folder.
    }
  }
});

/** The folder of one request. */
export class Workspace {
  readonly path: string;
  readonly disk: DiskAccount;

  constructor(path: string, disk: DiskAccount) {
    this.path = path;
    this.disk = disk;
  }

  /** Creates a folder for one file and its conversion, and returns its path. */
  async folder(name: string): Promise<string> {
    const folder = join(this.path, name);
    await workFiles(folder).mkdir(folder, { mode: 0o700 });
    return folder;
  }

  /** Removes a folder of {@link folder}, and releases the space of the received files in it. */
  async discard(folder: string): Promise<void> {
    const names = await readdir(folder).catch(() => []);
    const files = await Promise.all(names.map((name) => lstat(join(folder, name))));
    await removeFolder(folder);
    this.disk.release(files.reduce((sum, { size }) => sum + size, 0));
  }

  /** Removes all files and closes the account of disk space, even if a file cannot be removed. */
  async remove(): Promise<void> {
    await removeFolder(this.path).finally(this.disk.close);
  }
}

/** The workspaces of this process, in one folder in `tempDir` with a file that identifies it. */
export class Workspaces {
  readonly #tempDir: string;
  readonly #free: (folder: string) => Promise<number>;
  readonly #space = new DiskSpace(() => this.free());
  /** The folder that contains all workspaces. */
  #home: Promise<string> | undefined;

  /** @param free returns the free bytes of the disk of a folder */
  constructor(tempDir: string, free = freeOn) {
    this.#tempDir = tempDir;
    this.#free = free;
  }

  /**
   * Creates a workspace.
   *
   * @throws {ServiceError} DISK_FULL when there is no space for the upload
   */
  async open({ client, bytes = 0 }: WorkspaceOptions = {}): Promise<Workspace> {
    const account = await this.#space.open(client, bytes);
    const path = await this.#makeFolder().catch((error) => {
      account.close();
      throw error;
    });
    return new Workspace(path, account);
  }

  /**
   * Runs `work` in a new workspace, and removes the workspace afterwards.
   *
   * @throws the error of `work`, even if the removal fails too; otherwise the error of `open` or of
   *   the removal
   */
  async use<T>(options: WorkspaceOptions, work: (workspace: Workspace) => Promise<T>): Promise<T> {
    const workspace = await this.open(options);
    const result = await work(workspace).catch(async (error) => {
      await workspace.remove().catch(() => {}); // the next start of the service removes the rest
      throw error;
    });
    await workspace.remove();
    return result;
  }

  /** Returns the folder of all workspaces of this process. The first call creates it. */
  root(): Promise<string> {
    if (this.#home) return this.#home;
    const made = this.#makeHome();
    made.catch(() => this.#forget(made)); // the next call tries again
    this.#home = made;
    return made;
  }

  /** Returns the bytes that running requests have stored or can still store. */
  reserved(): number {
    return this.#space.held();
  }

  /** Returns the free bytes of the disk, or `undefined` if they are unknown. */
  async free(): Promise<number | undefined> {
    return this.#free(await this.root()).catch(() => undefined);
  }

  /**
   * Returns whether there is space for requests, or will be after the running ones.
   *
   * @throws {Error} with the code of the failed system call, if the folder of this process was
   *   removed and cannot be created
   */
  async hasSpace(): Promise<boolean> {
    const left = (await this.free()) ?? Number.POSITIVE_INFINITY;
    return left + this.#space.stored() >= MIN_FREE_BYTES;
  }

  /** Removes all files of this process. */
  async close(): Promise<void> {
    const path = await this.#home?.catch(() => undefined);
    this.#home = undefined;
    if (!path) return;
    await removeFolder(path);
    leftOnExit.delete(path);
  }

  async #makeHome(): Promise<string> {
    await createFolders(this.#tempDir);
    const made = await makeInstanceFolder(this.#tempDir);
    leftOnExit.add(made);
    if (isInMemory(made)) foldersInMemory.add(`${made}/`);
    return made;
  }

  #forget(made: Promise<string>): void {
    if (this.#home === made) this.#home = undefined;
  }

  async #makeFolder(): Promise<string> {
    const make = (folder: string): Promise<string> =>
      workFiles(`${folder}/`).mkdtemp(join(folder, 'request-'));
    const tried = this.root();
    try {
      return await make(await tried);
    } catch (error) {
      // A cleanup of the temporary folder may have removed it while no request was running.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      this.#forget(tried);
      return make(await this.root());
    }
  }
}

/** Maximum number of entries of a folder that is removed at once. */
const MAX_NAMES_AT_ONCE = 64;
/** Maximum size of a folder that is removed at once, in bytes. */
const MAX_BYTES_AT_ONCE = 4 * 1024 ** 2;

/**
 * Removes a folder with its contents, if it exists. A small folder in memory is removed at once.
 * Others are removed in another thread, so that they do not block the event loop.
 *
 * @throws {Error} with the code of the failed system call
 */
export async function removeFolder(path: string): Promise<void> {
  try {
    if (hasFilesInMemory(path) && isSmall(path)) {
      rmSync(path, { recursive: true, force: true });
      // rmSync of Node.js 24 stops without an error at an entry that something else removes.
      if (!existsSync(path)) return;
    }
    await removeTree(path);
  } catch {
    // The folder has changed meanwhile, or a tool has removed permissions of a folder in it.
    await restoreRights(path);
    await removeTree(path);
  }
}

/** Returns whether a folder has few entries and bytes. Stops early: tools can write any number. */
function isSmall(path: string): boolean {
  let names = 0;
  let bytes = 0;
  const folders = [path];
  try {
    for (const folder of folders) {
      const entries = opendirSync(folder);
      try {
        for (let entry = entries.readSync(); entry; entry = entries.readSync()) {
          names += 1;
          if (entry.isDirectory()) folders.push(join(folder, entry.name));
          else bytes += lstatSync(join(folder, entry.name)).size;
          if (names > MAX_NAMES_AT_ONCE || bytes > MAX_BYTES_AT_ONCE) return false;
        }
      } finally {
        entries.closeSync();
      }
    }
  } catch {
    // The folder is missing or unreadable. The removal reports an error.
  }
  return true;
}

/** Restores the permissions to list and change a folder and the folders in it. */
async function restoreRights(path: string): Promise<void> {
  const folders = [path];
  for (const folder of folders) {
    try {
      await chmod(folder, 0o700);
      for await (const entry of await opendir(folder))
        if (entry.isDirectory()) folders.push(join(folder, entry.name));
    } catch {
      // The folder is missing or belongs to another user. The removal reports an error.
    }
  }
}

const { chmod, lstat, mkdir, mkdtemp, opendir, readdir, rename, rm } = promises;

/*
 * Names of working files are changed in memory at once, because a round trip to another thread
 * takes longer, and on a disk in another thread, because the call may wait for the disk. Reading a
 * file that was just written waits in neither case.
 */
const inThisThread = {
  mkdir: async (path: string, options: MakeDirectoryOptions) => mkdirSync(path, options),
  mkdtemp: async (prefix: string) => mkdtempSync(prefix),
  rename: async (from: string, to: string) => renameSync(from, to),
  rm: async (path: string, options: RmOptions) => rmSync(path, options),
  open: async (path: string, flags: string, mode: number) => openSync(path, flags, mode),
  append: async (file: number, bytes: Buffer) => appendFileSync(file, bytes),
};
type WorkFiles = { readonly [K in keyof typeof inThisThread]: (typeof inThisThread)[K] };
const inOtherThreads = {
  mkdir,
  mkdtemp,
  rename,
  rm,
  open: promisify(open),
  append: promisify(appendFile),
} as WorkFiles;

/** Folders whose files, and those of the folders in it, are in memory. Each ends in a slash. */
const foldersInMemory = new Set<string>();

/** Returns whether the files at or below `path` are in memory. */
function hasFilesInMemory(path: string): boolean {
  for (const folder of foldersInMemory) if (path.startsWith(folder)) return true;
  return false;
}

/** Returns functions for names below `path`, as of `node:fs/promises`. `open` returns a number. */
export function workFiles(path: string): WorkFiles {
  return hasFilesInMemory(path) ? inThisThread : inOtherThreads;
}
