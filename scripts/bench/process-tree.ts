import { readdirSync, readFileSync } from 'node:fs';

/** Processor time of the machine and of a process, memory of a process and all its descendants: see proc(5). */

/** Clock ticks a second in /proc, on every Linux that Node runs on. */
const TICKS = 100;
const PAGE_BYTES = 4096;

interface Entry {
  readonly pid: number;
  readonly parent: number;
  /** Its own, in milliseconds. */
  readonly cpuMs: number;
}

function treeOf(root: number): Entry[] {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap(entryOf);
  const tree = all.filter(({ pid }) => pid === root);
  for (const entry of tree) tree.push(...all.filter(({ parent }) => parent === entry.pid));
  return tree;
}

/**
 * What everybody but this process has taken of the machine since it started, in milliseconds: the tree of processes alone
 * does not tell, since nobody waits for what bubblewrap starts, and the kernel tidies up after it by itself.
 */
export function othersCpuMs(): number {
  const [user = 0, nice = 0, system = 0, , , interrupts = 0, softly = 0] = readFileSync(
    '/proc/stat',
    'latin1',
  )
    .split('\n', 1)
    .flatMap((line) => line.split(/\s+/).slice(1).map(Number));
  const own = process.cpuUsage();
  const all = ((user + nice + system + interrupts + softly) * 1000) / TICKS;
  return all - (own.user + own.system) / 1000;
}

/** Of the process alone, in milliseconds. */
export const cpuMsOf = (pid: number): number => entryOf(String(pid))[0]?.cpuMs ?? 0;

/** What would be free if the tree were not there, nearly: pages that no file stands behind, in bytes. */
export const memoryOf = (root: number): number =>
  treeOf(root).reduce((sum, { pid }) => sum + privateBytes(pid), 0);

/** What one process holds, in bytes. */
export function residentBytes(pid: number): number {
  return (statm(pid)[1] ?? 0) * PAGE_BYTES;
}

function entryOf(name: string): Entry[] {
  try {
    const stat = readFileSync(`/proc/${name}/stat`, 'latin1');
    const fields = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
    const [parent = 0, user = 0, system = 0] = [1, 11, 12].map((at) => fields[at]);
    return [{ pid: Number(name), parent, cpuMs: ((user + system) * 1000) / TICKS }];
  } catch {
    return []; // it has ended meanwhile
  }
}

/** What no file stands behind of what one process holds, in bytes. */
export function privateBytes(pid: number): number {
  const [, resident = 0, shared = 0] = statm(pid);
  return (resident - shared) * PAGE_BYTES;
}

function statm(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ').map(Number);
  } catch {
    return [];
  }
}
