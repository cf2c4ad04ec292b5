/** What is run, what comes of it, and how it can fail. */

export interface Command {
  /** Absolute path of the program. */
  readonly file: string;
  readonly args: readonly string[];
  /** The job's folder: where relative names point, and the only place for temporary files. */
  readonly cwd: string;
  /** Absolute path of the file it reads on standard input. */
  readonly stdin?: string;
  readonly timeoutMs: number;
  /** Address space it may use; by default what the confinement has for all. */
  readonly memoryBytes?: number;
  readonly signal?: AbortSignal;
  /** Whose images it works on: a process may be used again for the same client, and for no other. */
  readonly client?: string;
}

export interface Output {
  /** What it printed, cut at {@link MAX_OUTPUT_BYTES} each. */
  readonly stdout: string;
  readonly stderr: string;
}

export type RunCommand = (command: Command) => Promise<Output>;

/** Warnings of a damaged file can go on for ever; nobody reads more than this. */
export const MAX_OUTPUT_BYTES = 64 * 1024;

/** Why a command did not succeed. `unrunnable` means it never started. */
export type FailureReason = 'exit' | 'signal' | 'timeout' | 'cancelled' | 'unrunnable';

/** How a command ended, as far as it is known. */
export interface CommandEnd {
  /** What it printed on standard error, cut at {@link MAX_OUTPUT_BYTES}. */
  readonly stderr?: string;
  readonly exitCode?: number | undefined;
  /** The signal that ended it. */
  readonly signal?: NodeJS.Signals | undefined;
  readonly cause?: unknown;
}

export class CommandError extends Error {
  override readonly name = 'CommandFailed';
  readonly reason: FailureReason;
  readonly #stderr: string;
  readonly exitCode: number | undefined;
  readonly signal: NodeJS.Signals | undefined;
  constructor(
    reason: FailureReason,
    message: string,
    { stderr = '', exitCode, signal, cause }: CommandEnd = {},
  ) {
    super(message, { cause });
    this.reason = reason;
    this.#stderr = stderr;
    this.exitCode = exitCode;
    this.signal = signal;
  }

  /** What it printed on standard error. No log takes it from here, since it may quote what a picture contains. */
  get stderr(): string {
    return this.#stderr;
  }
}

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
