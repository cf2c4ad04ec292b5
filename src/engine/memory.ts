import { readFileSync } from 'node:fs';

/** What a process holds, as /proc tells: see proc(5). Its files are memory of the kernel's, so nothing waits. */

const PAGE_BYTES = 4096;

/** Resident memory in bytes of a program, or of the one that it has shut in; 0 where the system does not tell. */
export function memoryOf(pid: number | undefined): number {
  return residentBytes(innermost(pid));
}

/** Of programs that shut another in and stay its parents, as bubblewrap does, the last one's child. */
function innermost(pid: number | undefined): string {
  let found = String(pid);
  for (let child = found; child !== ''; child = firstChild(found)) found = child;
  return found;
}

/** By proc(5). */
function firstChild(pid: string): string {
  return read(`/proc/${pid}/task/${pid}/children`).split(' ')[0] as string;
}

/** By proc(5): the second number of statm, in pages. */
function residentBytes(pid: string): number {
  return Number(read(`/proc/${pid}/statm`).split(' ')[1] ?? 0) * PAGE_BYTES;
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}
