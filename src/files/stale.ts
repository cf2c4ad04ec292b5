/** @module The folder of each instance, and the removal of those that killed ones left behind. */
import { constants } from 'node:fs';
import { lstat, mkdtemp, readdir, readFile, readlink, rm, rmdir, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { removeTree } from './remove.ts';
import { openRegular } from './system.ts';

/** Age from which a folder of another container, or without an owner file, is removed, in ms. */
const STALE_MS = 24 * 60 * 60 * 1000;

/**
 * Removes the folders in `tempDir` that killed processes of this user left behind, and returns
 * their names. Keeps those of running processes and of other users, and all other files.
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
  // A folder without an owner is certainly an unfinished one of an instance only if it is empty.
  const removed = owner ? removeTree(path) : rmdir(path);
  return removed.then(() => true).catch(() => false);
}

/**
 * Identifies a process uniquely, even if its ID is reused: by its ID, its start time (in ticks
 * since boot), its PID namespace, and the start of the machine, because several machines can share
 * a disk. Without /proc, only the ID is known.
 */
interface ProcessIdentity {
  readonly pid: number;
  readonly started: string;
  readonly namespace: string;
  readonly boot?: string | undefined;
}

const UNKNOWN = '0';
/** Name of the file that identifies the owner of an instance's folder, which tools cannot read. */
const OWNER_FILE = 'owner.json';
const NAME = 'imagemill-instance-';

async function currentProcess(): Promise<ProcessIdentity> {
  const { pid } = process;
  const [started, namespace, boot] = await Promise.all([startTime(pid), ownNamespace(), bootId()]);
  return { pid, started: started ?? UNKNOWN, namespace, boot };
}

/**
 * Creates the folder for all files of this process. Its name does not reveal the process.
 *
 * @throws {Error} with the code of the failed system call, after it has removed the folder
 */
export async function makeInstanceFolder(tempDir: string): Promise<string> {
  const folder = await mkdtemp(join(tempDir, NAME));
  try {
    await writeFile(join(folder, OWNER_FILE), JSON.stringify(await currentProcess()), { mode: 0o600 });
    return folder;
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

/**
 * Returns the owner of a folder, which is `undefined` until the owner file is written, and the time
 * of its last change; `undefined` if it is not of an instance of this user.
 */
export async function readInstanceFolder(path: string) {
  if (!basename(path).startsWith(NAME)) return undefined;
  const info = await lstat(path).catch(() => undefined);
  // Other users can create the same names in a shared temporary folder.
  if (!info?.isDirectory() || info.uid !== process.getuid?.()) return undefined;
  return { owner: await readOwner(path), changedMs: info.mtimeMs };
}

/** Maximum size of an owner file in bytes: several times that of a real one. */
const MAX_OWNER_BYTES = 1024;

async function readOwner(folder: string): Promise<ProcessIdentity | undefined> {
  try {
    await using file = await openRegular(join(folder, OWNER_FILE), constants.O_RDONLY);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(MAX_OWNER_BYTES));
    const { pid, started, namespace, boot } = JSON.parse(buffer.toString('utf8', 0, bytesRead));
    const complete = Number.isInteger(pid) && typeof started === 'string' && typeof namespace === 'string';
    return complete ? { pid, started, namespace, boot } : undefined;
  } catch {
    return undefined; // missing or incomplete
  }
}

/** Returns whether it runs; `undefined` in another PID namespace or on another machine. */
async function isAlive(owner: ProcessIdentity): Promise<boolean | undefined> {
  if (owner.namespace !== (await ownNamespace())) return undefined;
  if (owner.boot !== undefined && owner.boot !== (await bootId())) return undefined;
  if (owner.started !== UNKNOWN) return (await startTime(owner.pid)) === owner.started;
  try {
    return process.kill(owner.pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Returns field 22 of /proc/PID/stat (proc(5)). The name can have spaces and parentheses. */
async function startTime(pid: number): Promise<string | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => undefined);
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
}

/** Returns a number that changes with each start of the machine. See random(4). */
export async function bootId(): Promise<string> {
  return (await readFile('/proc/sys/kernel/random/boot_id', 'latin1').catch(() => UNKNOWN)).trim();
}

/** Returns the inode number of the PID namespace: the number in `pid:[4026531836]`. */
async function ownNamespace(): Promise<string> {
  const link = await readlink('/proc/self/ns/pid').catch(() => '');
  return /\d+/.exec(link)?.[0] ?? UNKNOWN;
}
