/** @module What the system says about its errors and limits. */
import { readFileSync } from 'node:fs';
import { getSystemErrorMap } from 'node:util';

/** Returns the system's description of an error, such as "permission denied". */
export function systemReason(error: unknown): string {
  const { errno, message } = error as NodeJS.ErrnoException;
  return getSystemErrorMap().get(errno ?? 0)?.[1] ?? message;
}

/** Returns the maximum number of files that this process can have open (RLIMIT_NOFILE), from proc(5). Without /proc, returns a common value. */
export function maxOpenFiles(): number {
  try {
    return Number(/^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? 10_240);
  } catch {
    return 10_240;
  }
}
