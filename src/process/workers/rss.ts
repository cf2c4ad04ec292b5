import { readFileSync } from 'node:fs';

/** @module What /proc tells of processes: see proc(5). Its files are memory of the kernel's, so nothing waits. */

export interface Usage {
  /** Resident memory of the program, in bytes; 0 where the system does not tell. */
  readonly memoryBytes: number;
  /** The launcher, all its descendants, and in a namespace of its own the orphans that it has adopted. */
  readonly processes: number;
}

/**
 * What a program uses, by the process that starts it. The program is the last descendant, since launchers and bubblewrap
 * stay parents of what they start.
 */
export function usageOf(pid: number | undefined): Usage {
  const pids = family(pid);
  return { memoryBytes: residentBytes(pids.at(-1) ?? ''), processes: pids.length };
}

/** A process and its descendants, generation by generation. */
function family(pid: number | undefined): string[] {
  const found = [String(pid)];
  for (const parent of found) {
    found.push(...read(`/proc/${parent}/task/${parent}/children`).split(' ').filter(Boolean));
  }
  return found;
}

/** By VmRSS, which is in KiB: /proc/PID/statm counts pages, and their size differs between kernels. */
function residentBytes(pid: string): number {
  const [, kib = '0'] = /^VmRSS:\s*(\d+) kB$/m.exec(read(`/proc/${pid}/status`)) ?? [];
  return Number(kib) * 1024;
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}
