/** @module The command that a runner executes, its output, and the error that it throws. */

/** A command to run for one job. */
export interface Command {
  /** Absolute path of the program. */
  readonly file: string;
  readonly args: readonly string[];
  /** The job's folder: the working directory, and the only place for temporary files. */
  readonly cwd: string;
  /** Names of the only files in `cwd` that the program can write. Without them, it can make any. */
  readonly outputs?: readonly string[] | undefined;
  /** Maximum number of files in `cwd`. */
  readonly maxNames?: number | undefined;
  /** Maximum bytes of all files in `cwd`, and of each file that the program writes. */
  readonly maxBytes?: number;
  /** Maximum bytes of each file that the program writes, instead of the limit of the sandbox. */
  readonly fileBytes?: number;
  /** Absolute path of the file that the program reads on standard input. */
  readonly stdin?: string | undefined;
  /** Name of a file in `cwd` that gets the standard output, which is then not returned. */
  readonly stdout?: string | undefined;
  /** Variables of the environment that only this program needs. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Level of zlib with which the program compresses, instead of its own: 0 (not at all) to 9. */
  readonly deflateLevel?: number | undefined;
  readonly timeoutMs: number;
  /** Limit of processor time in s, at most the default from the time limit. Needs the sandbox. */
  readonly cpuSeconds?: number;
  /** Limit of the address space, in bytes, at most that of the sandbox, which is the default. */
  readonly memoryBytes?: number | undefined;
  readonly signal?: AbortSignal;
}

/**
 * Maximum length of the arguments of a command, as {@link countArgumentBytes} counts it: execve(2)
 * permits 2 MiB, a quarter of the usual stack, for arguments and environment. `MAX_REQUEST` and
 * `MAX_WORDS` in fork-server.c permit as much.
 */
export const MAX_ARGUMENT_BYTES = 1_900_000;

/** Returns the bytes of arguments as the kernel counts: text, a NUL, and a pointer of 8 bytes. */
export const countArgumentBytes = (args: readonly string[]): number =>
  args.reduce((total, arg) => total + Buffer.byteLength(arg) + 9, 0);

/** Output of a command. Each stream is truncated to {@link MAX_OUTPUT_BYTES}. */
export interface Output {
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs a command and resolves to its output.
 *
 * @throws {CommandError} if the command does not start, fails, or is stopped
 */
export type RunCommand = (command: Command) => Promise<Output>;

/** Time limit of a command that only shows whether a program works, in ms. */
export const PROBE_TIMEOUT_MS = 10_000;

/** Maximum bytes of each captured stream: a damaged file can cause endless warnings. */
export const MAX_OUTPUT_BYTES = 64 * 1024;

/** Why a command failed. `files`: it wrote too many. `spawn-failed`: it did not start. */
export type FailureReason = 'exit' | 'signal' | 'timeout' | 'cancelled' | 'files' | 'spawn-failed';

/** Known details of a failed command. */
export interface CommandEnd {
  /** Standard error, truncated to {@link MAX_OUTPUT_BYTES}. */
  readonly stderr?: string;
  readonly exitCode?: number | undefined;
  /** Signal that terminated the process. */
  readonly signal?: NodeJS.Signals | undefined;
  readonly cause?: unknown;
}

/** Error of a command that did not succeed. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
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

  /** Standard error. A getter, which loggers do not serialize: it may quote image content. */
  get stderr(): string {
    return this.#stderr;
  }
}

/** Values of the `reason` label of the metric that counts killed tools. */
export const KILL_REASONS = ['timeout', 'cancelled', 'cpu_time', 'file_size', 'signal'] as const;
/** Reason why a tool was killed. */
export type KillReason = (typeof KILL_REASONS)[number];

/** Signals that the kernel sends when a process exceeds a limit of setrlimit(2). */
const LIMITS: Readonly<Record<string, KillReason>> = { SIGXCPU: 'cpu_time', SIGXFSZ: 'file_size' };

/** Returns why a tool was killed, if it was. `signal` is a crash, or a kill from outside. */
export function killReason({ reason, signal }: CommandError): KillReason | undefined {
  if (reason === 'timeout' || reason === 'cancelled') return reason;
  if (reason === 'files') return 'file_size';
  if (reason !== 'signal') return undefined;
  return LIMITS[signal ?? ''] ?? 'signal';
}

/** How a program ended. Exactly one property is set. */
export interface Exit {
  readonly exitCode?: number;
  readonly signal?: NodeJS.Signals;
  /** Set when the program did not start, or its end is unknown. */
  readonly error?: Error;
}

/** A job that a server, or a process of its own, runs. */
export interface RunningJob {
  kill(): void;
  readonly ended: Promise<JobEnd>;
}

/** How a job ended, and what it printed. */
export interface JobEnd {
  readonly exit: Exit;
  readonly stdout: string;
  readonly stderr: string;
}
