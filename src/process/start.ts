/** @module Starts programs, with execa, or one for a job, confined or not. No other file starts a process. */
import type { Readable, Writable } from 'node:stream';
import { execa } from 'execa';
import { MAX_OUTPUT_BYTES } from './command.ts';
import { createAnswerReader, encodeJob, HEADER_BYTES, type Job } from './fork-server/protocol.ts';

/** Options for starting a program. */
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

/** Length of the message with which the library reports that it has confined the process. */
export const REPORT_BYTES = HEADER_BYTES + 4;

/**
 * Starts a program for one job.
 *
 * @param library path of the compiled `fork-server.c`, which confines the process before `main` of the program, and gives it its
 *   arguments. Without it, the program runs unconfined.
 * @throws {Error} for a job that cannot be encoded
 */
export function startOnce(
  file: string,
  job: Omit<Job, 'confinement'> & Partial<Job>,
  library?: string,
): RunningJob {
  const { args, env, cwd, stdin, confinement } = job;
  const confined = library !== undefined && confinement !== undefined;
  const request = confined && encodeJob(0, { ...job, confinement });
  const program = confined
    ? startProgram(file, [], {
        cwd,
        env: { ...env, LD_PRELOAD: library, IMAGEMILL_FORK_SERVER: 'once' },
      })
    : startProgram(file, args.slice(1), { cwd, env, stdin: stdin ?? '/dev/null' });
  if (request) program.stdin?.end(request);
  const stdout = collectOutput(program.stdout, confined ? REPORT_BYTES : 0);
  const stderr = collectOutput(program.stderr);
  return {
    kill: program.kill,
    ended: program.ended.then((exit) => {
      const printed = stdout();
      const text = printed.subarray(confined ? REPORT_BYTES : 0).toString('utf8');
      const isConfined = !confined || exit.error !== undefined || reportsConfinement(printed);
      return { exit: isConfined ? exit : NOT_CONFINED, stdout: text, stderr: stderr().toString('utf8') };
    }),
  };
}

const NOT_CONFINED: Exit = {
  error: new Error(
    'the program was not confined: it says why, or has a setuid bit, is linked statically, or the fork server is missing',
  ),
};

/** Returns whether the output of a program starts with the message that it is confined. */
export const reportsConfinement = (output: Buffer): boolean =>
  createAnswerReader()(output.subarray(0, REPORT_BYTES))[0]?.kind === 'S';

/** Returns a function that returns the first {@link MAX_OUTPUT_BYTES} of a stream, after some more bytes. */
function collectOutput(stream: NodeJS.ReadableStream, more = 0): () => Buffer {
  const chunks: Buffer[] = [];
  let left = MAX_OUTPUT_BYTES + more;
  stream.on('data', (chunk: Buffer) => {
    if (left > 0) chunks.push(chunk.subarray(0, left));
    left -= chunk.length;
  });
  return () => Buffer.concat(chunks);
}
