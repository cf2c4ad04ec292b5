import { lstat, mkdtemp, readdir, readFile, readlink, rm, rmdir, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';

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

/**
 * Identifies a process so that no later process can be mistaken for it: by its number, the
 * time when it started (in ticks since boot), and the namespace that the number counts in.
 * Where there is no /proc, a process is known by its number alone.
 */
export interface ProcessIdentity {
  readonly pid: number;
  readonly started: string;
  readonly namespace: string;
}

const UNKNOWN = '0';
/** The file in an instance's folder that says which process the folder belongs to. Tools cannot read it. */
export const OWNER_FILE = 'owner.json';
const NAME = 'imagemill-instance-';
/** Version 0.1 had the process in the name, which tools could see. */
const NAME_OF_0_1 = /^imagemill-(\d+)-(\d+)-(\d+)-/;

export async function currentProcess(pid: number = process.pid): Promise<ProcessIdentity> {
  return { pid, started: (await startTime(pid)) ?? UNKNOWN, namespace: await ownNamespace() };
}

/**
 * Makes a folder for what a process puts on disk. The name tells nothing about the process.
 *
 * @returns the path of the folder
 * @throws Error with the code of the system call that failed; nothing is left then
 */
export async function makeInstanceFolder(tempDir: string, owner?: ProcessIdentity): Promise<string> {
  const folder = await mkdtemp(join(tempDir, NAME));
  try {
    const text = JSON.stringify(owner ?? (await currentProcess()));
    await writeFile(join(folder, OWNER_FILE), text, { mode: 0o600 });
    return folder;
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

/** A folder of an instance; the owner is unknown while the folder is being made. */
export interface InstanceFolder {
  readonly owner: ProcessIdentity | undefined;
  /** The last change, in milliseconds since the epoch. */
  readonly changedMs: number;
}

/** Returns what is known about a folder, or undefined when it is not a folder of an instance of this user. */
export async function readInstanceFolder(path: string): Promise<InstanceFolder | undefined> {
  const name = basename(path);
  const [, pid, started, namespace] = NAME_OF_0_1.exec(name) ?? [];
  if (!namespace && !name.startsWith(NAME)) return undefined;
  const info = await lstat(path).catch(() => undefined);
  // In a shared folder for temporary files, others may use the same names.
  if (!info?.isDirectory() || info.uid !== process.getuid?.()) return undefined;
  const owner =
    pid && started && namespace ? { pid: Number(pid), started, namespace } : await readOwner(path);
  return { owner, changedMs: info.mtimeMs };
}

async function readOwner(folder: string): Promise<ProcessIdentity | undefined> {
  try {
    const { pid, started, namespace } = JSON.parse(await readFile(join(folder, OWNER_FILE), 'utf8'));
    const complete = Number.isInteger(pid) && typeof started === 'string' && typeof namespace === 'string';
    return complete ? { pid, started, namespace } : undefined;
  } catch {
    return undefined; // not written yet, or not completely
  }
}

/** Whether that very process still runs; undefined when it cannot be told from here. */
async function isAlive(owner: ProcessIdentity): Promise<boolean | undefined> {
  if (owner.namespace !== (await ownNamespace())) return undefined;
  if (owner.started !== UNKNOWN) return (await startTime(owner.pid)) === owner.started;
  try {
    return process.kill(owner.pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Field 22 of /proc/PID/stat, counted behind the name, which may hold spaces and brackets. See proc(5). */
async function startTime(pid: number): Promise<string | undefined> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  } catch {
    return undefined;
  }
}

/** The inode number in `pid:[4026531836]`. */
async function ownNamespace(): Promise<string> {
  try {
    return /\d+/.exec(await readlink('/proc/self/ns/pid'))?.[0] ?? UNKNOWN;
  } catch {
    return UNKNOWN;
  }
}
