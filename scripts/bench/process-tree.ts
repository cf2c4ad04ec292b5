import { readdirSync, readFileSync } from 'node:fs';

/** Processor time and memory of a process and all its descendants, as /proc tells: see proc(5). */

/** Clock ticks a second in /proc, on every Linux that Node runs on. */
const TICKS = 100;
const PAGE_BYTES = 4096;

interface Entry {
  readonly pid: number;
  readonly parent: number;
  /** Its own, in milliseconds. */
  readonly ownCpuMs: number;
  /** Its own and that of its children that have ended, in milliseconds. */
  readonly cpuMs: number;
}

export function treeOf(root: number): Entry[] {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap(entryOf);
  const tree = all.filter(({ pid }) => pid === root);
  for (const entry of tree) tree.push(...all.filter(({ parent }) => parent === entry.pid));
  return tree;
}

export const cpuMsOf = (root: number): number => treeOf(root).reduce((sum, { cpuMs }) => sum + cpuMs, 0);

/** Of the process alone, in milliseconds. */
export const ownCpuMsOf = (pid: number): number => entryOf(String(pid))[0]?.ownCpuMs ?? 0;

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
    const spent = (...at: number[]): number =>
      (at.reduce((sum, field) => sum + (fields[field] ?? 0), 0) * 1000) / TICKS;
    const cpu = { ownCpuMs: spent(11, 12), cpuMs: spent(11, 12, 13, 14) };
    return [{ pid: Number(name), parent: fields[1] ?? 0, ...cpu }];
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
