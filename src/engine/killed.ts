import type { CommandError } from './command.ts';

/** Why a tool was ended before it was done, for those who watch the service. */

export const KILL_REASONS = ['timeout', 'cancelled', 'processor_time', 'file_size', 'signal'] as const;
export type KillReason = (typeof KILL_REASONS)[number];

/** What the limits of setrlimit(2) end a process with. */
const LIMITS: Readonly<Record<string, KillReason>> = { SIGXCPU: 'processor_time', SIGXFSZ: 'file_size' };

/** Nothing for a tool that ended by itself; `signal` is a crash, or somebody else's kill. */
export function killReason({ reason, signal }: CommandError): KillReason | undefined {
  if (reason === 'timeout' || reason === 'cancelled') return reason;
  if (reason !== 'signal') return undefined;
  return LIMITS[signal ?? ''] ?? 'signal';
}
