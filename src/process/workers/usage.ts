/**
 * @module Reads the memory and the number of processes from /proc; see proc(5). The reads are synchronous, because these
 * files are in the memory of the kernel and never block.
 */

import { readFileSync } from 'node:fs';

/** Resources that a launched program uses. */
export interface Usage {
  /** Resident memory of the program, in bytes, or 0 if the system does not report it. */
  readonly memoryBytes: number;
  /** Number of processes: the launcher, its descendants, and in a PID namespace the orphans that it adopted. */
  readonly processes: number;
}

/**
 * Returns the resources that a program uses. The program is the last descendant, since launchers and bubblewrap remain
 * the parents of the processes that they start.
 *
 * @param pid process ID of the launcher
 */
export function measureUsage(pid: number | undefined): Usage {
  const pids = processTree(pid);
  return { memoryBytes: residentBytes(pids.at(-1) ?? ''), processes: pids.length };
}

/** Returns the IDs of a process and its descendants, generation by generation. */
function processTree(pid: number | undefined): string[] {
  const found = [String(pid)];
  for (const parent of found) {
    found.push(...read(`/proc/${parent}/task/${parent}/children`).split(' ').filter(Boolean));
  }
  return found;
}

/** Returns VmRSS, which is in KiB. /proc/PID/statm counts pages, and their size differs between kernels. */
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
