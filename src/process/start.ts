/** @module Starts programs, with execa. No other file starts a process. */
import type { Readable, Writable } from 'node:stream';
import { execa } from 'execa';

export interface StartOptions {
  /** The working directory. */
  readonly cwd: string;
  /** The complete environment. The program inherits no variables. */
  readonly env: Readonly<Record<string, string>>;
  /** Path of the file on standard input. Without it, the caller writes to the program. */
  readonly stdin?: string;
}

export interface StartedProgram {
  readonly stdin: Writable | undefined;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Sends SIGKILL to the program and its descendants. */
  kill(): void;
  /** Resolves when the program has ended and its output is closed. */
  readonly ended: Promise<Exit>;
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

const OPTIONS = {
  extendEnv: false,
  buffer: false,
  reject: false,
  killDescendants: true,
  killSignal: 'SIGKILL',
  // The first signal is already SIGKILL.
  forceKillAfterDelay: false,
  // execa would kill the programs of requests in progress at SIGTERM. PR_SET_PDEATHSIG covers every end of the server.
  cleanup: false,
} as const;

export function startProgram(
  file: string,
  args: readonly string[],
  { cwd, env, stdin }: StartOptions,
): StartedProgram {
  const input = stdin === undefined ? { stdin: 'pipe' as const } : { inputFile: stdin };
  const subprocess = execa(file, args, { ...OPTIONS, ...input, cwd, env });
  subprocess.stdin?.on('error', () => {}); // `ended` reports that the program has ended
  return {
    stdin: subprocess.stdin ?? undefined,
    stdout: subprocess.stdout,
    stderr: subprocess.stderr,
    kill: () => void subprocess.kill(),
    ended: subprocess.then((result) => {
      subprocess.kill(); // kills descendants that are left
      return toExit(result);
    }),
  };
}

interface Result {
  readonly exitCode?: number | undefined;
  readonly signal?: string | undefined;
  readonly cause?: unknown;
  readonly message?: string | undefined;
}

function toExit({ exitCode, signal, cause, message }: Result): Exit {
  if (exitCode !== undefined) return { exitCode };
  if (signal !== undefined) return { signal: signal as NodeJS.Signals };
  return { error: cause instanceof Error ? cause : new Error(message) };
}
