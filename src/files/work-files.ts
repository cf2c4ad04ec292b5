/**
 * @module Changes the names of working files: in memory at once, because a round trip to another thread takes longer, and on a disk
 * in another thread, because the call may wait for the disk. Reading a file that was just written waits in neither case.
 */
import {
  accessSync,
  constants,
  type Dir,
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
import { tmpdir } from 'node:os';
import { promisify } from 'node:util';

/** Types of file systems whose files are in memory: tmpfs and ramfs (statfs(2)). */
const MEMORY_TYPES = [0x01021994, 0x858458f6];
/** Folder in memory that each Linux with glibc has (shm_open(3)). */
const MEMORY_FOLDER = '/dev/shm';
/** Memory that must be available for each byte of working files, because the tools need memory, too. */
const MEMORY_FACTOR = 4;

/** Folders that the service uses without `TEMP_DIR`. */
export const DEFAULT_FOLDERS: readonly string[] = [MEMORY_FOLDER, tmpdir()];

/** Returns whether the files of a folder are in memory. */
export function isInMemory(folder: string): boolean {
  try {
    return MEMORY_TYPES.includes(statfsSync(folder).type);
  } catch {
    return false; // it does not exist
  }
}

/**
 * Returns a folder for working files: one in memory if it has room for them, and the machine has memory for them and for the
 * tools. Otherwise, the temporary folder of the system.
 *
 * @param bytes maximum size of the files
 */
export function workingFolder(bytes: number, memoryFolder: string = MEMORY_FOLDER): string {
  try {
    accessSync(memoryFolder, constants.W_OK | constants.X_OK);
    const { bavail, bsize } = statfsSync(memoryFolder);
    const hasRoom = bavail * bsize >= bytes && process.availableMemory() >= MEMORY_FACTOR * bytes;
    return hasRoom && isInMemory(memoryFolder) ? memoryFolder : tmpdir();
  } catch {
    return tmpdir();
  }
}

const inThisThread = {
  mkdir: async (path: string, options: MakeDirectoryOptions) => mkdirSync(path, options),
  mkdtemp: async (prefix: string) => mkdtempSync(prefix),
  rename: async (from: string, to: string) => renameSync(from, to),
  rm: async (path: string, options: RmOptions) => rmSync(path, options),
  open: async (path: string, flags: string, mode: number) => openSync(path, flags, mode),
  opendir: async (path: string) => opendirSync(path),
  lstat: async (path: string) => lstatSync(path),
  close: async (folder: Dir) => folder.closeSync(),
  next: async (folder: Dir) => folder.readSync(),
};
type WorkFiles = { readonly [K in keyof typeof inThisThread]: (typeof inThisThread)[K] };
const { mkdir, mkdtemp, rename, rm, opendir, lstat } = promises;
const inOtherThreads = {
  ...{ mkdir, mkdtemp, rename, rm, opendir, lstat, open: promisify(open) },
  close: (folder: Dir) => folder.close(),
  next: (folder: Dir) => folder.read(),
} as WorkFiles;

const foldersInMemory = new Set<string>();

/** Notes whether the files of this folder, and of those in it, are in memory. */
export function noteFolder(folder: string): void {
  if (isInMemory(folder)) foldersInMemory.add(`${folder}/`);
}

/** Returns functions that change names below `path`, like those of `node:fs/promises`. `open` returns a descriptor. */
export function workFiles(path: string): WorkFiles {
  return [...foldersInMemory].some((folder) => path.startsWith(folder)) ? inThisThread : inOtherThreads;
}
