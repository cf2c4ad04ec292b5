import { readFile, readlink } from 'node:fs/promises';

/**
 * Who a process is, in a way that no later process can be mistaken for it: its
 * number, when it started (in ticks since boot), and the namespace the number counts in.
 * Where there is no /proc, a process is known by its number alone.
 */
export interface Identity {
  readonly pid: number;
  readonly started: string;
  readonly namespace: string;
}

const UNKNOWN = '0';
const NAME = /^imagemill-(\d+)-(\d+)-(\d+)-/;

export async function identity(pid: number = process.pid): Promise<Identity> {
  return { pid, started: (await startOf(pid)) ?? UNKNOWN, namespace: await ownNamespace() };
}

export function instanceFolderName({ pid, started, namespace }: Identity): string {
  return `imagemill-${pid}-${started}-${namespace}`;
}

/** Whose folder it is, or undefined when it is none of ours. */
export function ownerOf(folderName: string): Identity | undefined {
  const [, pid, started, namespace] = NAME.exec(folderName) ?? [];
  return pid && started && namespace ? { pid: Number(pid), started, namespace } : undefined;
}

/** Whether that very process still runs; undefined when it cannot be told from here. */
export async function isAlive(owner: Identity): Promise<boolean | undefined> {
  if (owner.namespace !== (await ownNamespace())) return undefined;
  if (owner.started !== UNKNOWN) return (await startOf(owner.pid)) === owner.started;
  try {
    return process.kill(owner.pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Field 22 of /proc/PID/stat, counted behind the name, which may hold spaces and brackets. See proc(5). */
async function startOf(pid: number): Promise<string | undefined> {
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
