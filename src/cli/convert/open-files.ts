/** @module Finds files that other programs are writing. */
import { readdir, readFile, readlink } from 'node:fs/promises';
import { resolve } from 'node:path';

/** Access modes of open(2) in the flags of /proc/PID/fdinfo. */
const ACCESS_MODE = 0o3;

/**
 * Returns the files that a process has open for writing. Sees only processes of this user (or all, as root) on
 * this machine, and nothing without /proc.
 */
export async function filesBeingWritten(paths: Iterable<string>): Promise<ReadonlySet<string>> {
  const byAbsolute = new Map([...paths].map((path) => [resolve(path), path]));
  const written = new Set<string>();
  if (byAbsolute.size === 0) return written;
  for (const pid of await list('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    for (const fd of await list(`/proc/${pid}/fd`)) {
      const path = byAbsolute.get(await readlink(`/proc/${pid}/fd/${fd}`).catch(() => ''));
      if (path !== undefined && (await isWritable(pid, fd))) written.add(path);
    }
  }
  return written;
}

async function isWritable(pid: string, fd: string): Promise<boolean> {
  const info = await readFile(`/proc/${pid}/fdinfo/${fd}`, 'latin1').catch(() => '');
  const flags = Number.parseInt(/^flags:\s*([0-7]+)/m.exec(info)?.[1] ?? '0', 8);
  return (flags & ACCESS_MODE) !== 0;
}

/** Lists a folder; returns an empty list if it does not exist or is not readable. */
const list = (folder: string): Promise<string[]> => readdir(folder).catch(() => []);
