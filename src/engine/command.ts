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
  /** What it printed, cut at {@link KEPT_BYTES} each. */
  readonly stdout: string;
  readonly stderr: string;
}

export type Run = (command: Command) => Promise<Output>;

/** Warnings of a damaged file can go on for ever; nobody reads more than this. */
export const KEPT_BYTES = 64 * 1024;

/** Why a command did not succeed. `unrunnable` means it never started. */
export type Reason = 'exit' | 'signal' | 'timeout' | 'cancelled' | 'unrunnable';

export class CommandFailed extends Error {
  override readonly name = 'CommandFailed';
  readonly reason: Reason;
  readonly #stderr: string;
  /** Its exit status, or the signal that ended it. */
  readonly end: number | string | undefined;
  constructor(reason: Reason, message: string, stderr: string, cause?: unknown, end?: number | string) {
    super(message, { cause });
    this.end = end;
    this.reason = reason;
    this.#stderr = stderr;
  }

  /** What it printed on standard error. No log takes it from here, since it may quote what a picture contains. */
  get stderr(): string {
    return this.#stderr;
  }
}
