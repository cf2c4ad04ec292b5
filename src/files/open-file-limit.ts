/** @module The maximum number of files that this process can have open. */
import { readFileSync } from 'node:fs';

/** Reads RLIMIT_NOFILE from proc(5). Without /proc, returns a common value. */
export function maxOpenFiles(): number {
  try {
    return Number(/^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? 10_240);
  } catch {
    return 10_240;
  }
}
