/** @module Lowers the priority of work for one client below the event loop, which serves all. */
import { writeFileSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';

/**
 * Nice value of tools and threads: see sched(7). Jobs of fork servers have the same one (`NICENESS`
 * in fork-server.c). The event loop then gets three times the time of a tool on the same processor.
 * With a much higher value, a container would get less of a processor that it shares with others.
 */
export const NICENESS = 5;

/** Lowers the priority of the calling thread. Only Linux has priorities of threads. */
export function lowerThreadPriority(): void {
  if (process.platform === 'linux') lowerPriority(0);
}

/**
 * Lowers the priority of a program that has a session of its own. Linux can share processors
 * between sessions first (autogroup scheduling), so this lowers the priority of the session, too.
 * Without privileges, the kernel permits that ten times a second.
 */
export function lowerSessionPriority(pid: number): void {
  lowerPriority(pid);
  try {
    writeFileSync(`/proc/${pid}/autogroup`, String(NICENESS));
  } catch {
    // The program has ended, or the system does not permit it.
  }
}

function lowerPriority(pid: number): void {
  try {
    setPriority(pid, Math.max(NICENESS, getPriority(pid)));
  } catch {
    // The program has ended, or the system does not permit it.
  }
}
