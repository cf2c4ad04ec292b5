/** @module Paths, files and folders of users, and what the system says about errors and limits. */
import { createHash, randomUUID } from 'node:crypto';
import { accessSync, constants, createReadStream, readFileSync, statfsSync } from 'node:fs';
import { type FileHandle, mkdir, open, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { getSystemErrorMap } from 'node:util';

/** Returns the system's description of an error, such as "permission denied". */
export function systemReason(error: unknown): string {
  const { code, errno, message } = error as NodeJS.ErrnoException;
  if (code === 'EISDIR') return 'it is a folder'; // "illegal operation on a directory"
  return getSystemErrorMap().get(errno ?? 0)?.[1] ?? message;
}

/** Returns whether an error says that a file or folder does not exist. */
export const isMissing = ({ code = '' }: NodeJS.ErrnoException): boolean =>
  ['ENOENT', 'ENOTDIR'].includes(code);

/** Returns the maximum of open files (RLIMIT_NOFILE), from proc(5). Without, a common value. */
export function maxOpenFiles(): number {
  try {
    return Number(/^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? 10_240);
  } catch {
    return 10_240;
  }
}

/** Returns the absolute path without symbolic links. Keeps components that do not exist. */
export async function realPathOf(path: string): Promise<string> {
  const absolute = resolve(path);
  if (absolute === '/') return absolute;
  const real = await realpath(absolute).catch(() => undefined);
  return real ?? join(await realPathOf(dirname(absolute)), basename(absolute));
}

/** Returns whether an absolute path is a folder or inside of it. */
export function isInside(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder === '/' ? folder : `${folder}/`);
}

/**
 * Creates a folder and its missing parents. `mkdir` of Node.js 24 with `recursive` does the same,
 * but on a read-only disk it reports ENOENT instead of EROFS, and below `/proc` it never ends.
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

/**
 * @throws the error of `mkdir`, unless the folder exists. For a link that leads nowhere, its
 *   message would be wrong.
 */
async function assertFolder(path: string, error: unknown): Promise<void> {
  const info = await stat(path).catch(() => undefined);
  if (info?.isDirectory()) return;
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'EEXIST') (error as Error).message = `${path} is not a folder`;
  throw error;
}

/**
 * Opens a regular file with flags of open(2). A pipe could wait, and a device can have no end.
 *
 * @throws {Error} of the system call, or if the path is anything else, such as a folder
 */
export async function openRegular(path: string, flags: number): Promise<FileHandle> {
  const file = await open(path, flags | constants.O_NONBLOCK).catch((error) => {
    // A socket, a device without a driver, or a pipe that no program reads.
    throw error.code === 'ENXIO' ? new Error(`${path} is not a regular file`) : error;
  });
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw new Error(`${path} is not a regular file`);
}

/**
 * Checks that a command would replace no file, or only a file that the same command has written.
 *
 * @param start text with which every such file starts, in ASCII
 * @returns false for another file with content. A pipe or a terminal has none.
 * @throws {Error} if the file cannot be read
 */
export async function isReplaceable(path: string, start: string): Promise<boolean> {
  const info = await stat(path).catch(() => undefined);
  return !info?.isFile() || info.size === 0 || startsWith(path, start);
}

/** Returns whether a file starts with a text in ASCII. */
export async function startsWith(path: string, start: string): Promise<boolean> {
  await using file = await open(path);
  const { buffer } = await file.read(Buffer.alloc(start.length), 0, start.length, 0);
  return buffer.toString('latin1') === start;
}

/** Errors of creating or renaming the new file that do not prevent writing to the older one. */
const IRREPLACEABLE = ['EBUSY', 'EACCES', 'EPERM', 'EROFS'];

/**
 * Writes a text file. If that fails, an older file keeps its content, except if it cannot be
 * replaced: a mount point, or a file in a read-only folder, is written directly, like a pipe or a
 * terminal.
 *
 * @throws {Error} of the file system
 */
export async function replaceFile(path: string, text: string): Promise<void> {
  const info = await stat(path).catch(() => undefined);
  if (info && !info.isFile()) return writeFile(path, text);
  const target = info ? await realpath(path) : path; // keep a link
  const temporary = `${target}.${randomUUID()}`;
  try {
    await writeFile(temporary, text, info && { mode: info.mode });
    await rename(temporary, target);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {}); // report the earlier error instead
    const { code = '' } = error as NodeJS.ErrnoException;
    if (!info || !IRREPLACEABLE.includes(code)) throw error;
    await writeFile(target, text);
  }
}

/** Types of file systems whose files are in memory: tmpfs and ramfs (statfs(2)). */
const MEMORY_TYPES = [0x01021994, 0x858458f6];
/** Folder in memory that each Linux with glibc has (shm_open(3)). */
const MEMORY_FOLDER = '/dev/shm';
/** Memory that must be available per byte of working files, because the tools need some, too. */
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
 * Returns a folder for files of at most these bytes: one in memory, if it has room for them, and
 * the machine has memory for them and for the tools. Otherwise, that of the system.
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

/** Returns the SHA-256 of a file, in hex. */
export async function hashFile(path: string): Promise<string> {
  const digest = createHash('sha256');
  await pipeline(createReadStream(path), digest);
  return digest.digest('hex');
}
