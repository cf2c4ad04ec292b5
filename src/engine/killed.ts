import { constants } from 'node:os';
import type { CommandFailed } from './command.ts';

/** Why a tool was ended before it was done, for those who watch the service. */

export const KILL_REASONS = ['timeout', 'cancelled', 'processor_time', 'file_size', 'signal'] as const;
export type KillReason = (typeof KILL_REASONS)[number];

/** What the limits of prlimit(1) end a process with. */
const LIMITS: Readonly<Record<string, KillReason>> = { SIGXCPU: 'processor_time', SIGXFSZ: 'file_size' };

/** Nothing for a tool that ended by itself; `signal` is a crash, or somebody else's kill. */
export function killReason({ reason, end }: CommandFailed): KillReason | undefined {
  if (reason === 'timeout' || reason === 'cancelled') return reason;
  const signal = typeof end === 'number' ? signalOf(end) : end;
  return signal === undefined ? undefined : (LIMITS[signal] ?? 'signal');
}

/** A program that waits for the tool, as bubblewrap does, ends with 128 and the number of its signal. */
function signalOf(status: number): string | undefined {
  return Object.entries(constants.signals).find(([, number]) => number === status - 128)?.[0];
}
