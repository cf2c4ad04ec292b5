/**
 * @module Starts programs, with execa. No other file starts a process. Besides fork servers, there
 * are processes of their own, confined or not: for one job, and for a worker that answers one line
 * of JSON after another, for decoders that this process must not load.
 */
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { execa } from 'execa';
import { type Exit, MAX_OUTPUT_BYTES, type RunningJob } from './command.ts';
import { createAnswerReader, encodeJob, HEADER_BYTES, type Job } from './fork-server/messages.ts';
import { lowerSessionPriority } from './priority.ts';

export interface StartOptions {
  readonly cwd: string;
  /** The complete environment. The program inherits no variables. */
  readonly env: Readonly<Record<string, string>>;
  /** Path of the file on standard input. Without it, the caller writes to the program. */
  readonly stdin?: string | undefined;
  /** Name of a file in `cwd` that gets the standard output. */
  readonly printed?: string | undefined;
  /** Whether the program has its own session, and its descendants end with it. Default: true. */
  readonly session?: boolean;
}

export interface StartedProgram {
  /** Undefined if the program did not start. */
  readonly pid: number | undefined;
  readonly stdin: Writable | undefined;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Sends SIGKILL to the program, and to its descendants if it has a session. */
  kill(): void;
  /** Resolves when the program has ended and its output is closed. */
  readonly ended: Promise<Exit>;
}

const OPTIONS = {
  extendEnv: false,
  buffer: false,
  reject: false,
  killSignal: 'SIGKILL',
  // The first signal is already SIGKILL.
  forceKillAfterDelay: false,
  // execa would kill programs of requests in progress at SIGTERM. PR_SET_PDEATHSIG covers any end.
  cleanup: false,
} as const;

export function startProgram(
  file: string,
  args: readonly string[],
  { cwd, env, stdin, printed, session = true }: StartOptions,
): StartedProgram {
  const input = stdin === undefined ? { stdin: 'pipe' as const } : { inputFile: stdin };
  const stdout =
    printed === undefined ? ('pipe' as const) : (['pipe', { file: join(cwd, printed) }] as const);
  const subprocess = execa(file, args, { ...OPTIONS, ...input, stdout, killDescendants: session, cwd, env });
  subprocess.stdin?.on('error', () => {}); // `ended` reports that the program has ended
  return {
    pid: subprocess.pid,
    stdin: subprocess.stdin ?? undefined,
    stdout: subprocess.stdout,
    stderr: subprocess.stderr,
    kill: () => void subprocess.kill(),
    ended: subprocess.then(({ exitCode, signal, cause, message }): Exit => {
      subprocess.kill(); // kills descendants that are left
      if (exitCode !== undefined) return { exitCode };
      if (signal !== undefined) return { signal };
      return { error: cause instanceof Error ? cause : new Error(message) };
    }),
  };
}

/** A job that runs unconfined if it has no confinement. */
type AnyJob = Omit<Job, 'confinement'> & Partial<Job>;

/**
 * Starts the program of a job. The library, the compiled `fork-server.c`, confines it before its
 * `main`, and gives it its arguments. Without the library, it runs unconfined.
 *
 * @throws {Error} for a job that cannot be encoded
 */
function start({ confinement, ...job }: AnyJob, library?: string): StartedProgram {
  const { args, env, cwd, stdin, stdout: printed } = job;
  const [file = '', ...rest] = args;
  if (library === undefined || !confinement) return startProgram(file, rest, { cwd, env, stdin, printed });
  const request = encodeJob(0, { ...job, confinement });
  const preload = { LD_PRELOAD: library, IMAGEMILL_FORK_SERVER: 'once' };
  const program = startProgram(file, [], { cwd, env: { ...env, ...preload } });
  program.stdin?.write(request);
  return program;
}

/** Runs a job in a process of its own. See {@link start}. */
export function startOnce(job: AnyJob, library?: string): RunningJob {
  const confines = library !== undefined && job.confinement !== undefined;
  const reportBytes = confines ? HEADER_BYTES : 0; // the report of the library has no body
  const program = start(confines ? job : { ...job, stdin: job.stdin ?? '/dev/null' }, library);
  if (confines) program.stdin?.end();
  if (program.pid !== undefined) lowerSessionPriority(program.pid);
  const stdout = collectOutput(program.stdout, reportBytes);
  const stderr = collectOutput(program.stderr);
  return {
    kill: program.kill,
    ended: program.ended.then((exit) => {
      const printed = stdout();
      const isConfined = !confines || exit.error !== undefined || reportsConfinement(printed);
      const text = job.stdout === undefined ? printed.toString('utf8', reportBytes) : '';
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
const reportsConfinement = (output: Buffer): boolean =>
  createAnswerReader()(output.subarray(0, HEADER_BYTES))[0]?.kind === 'S';

/** Returns a function that returns a stream's first {@link MAX_OUTPUT_BYTES}, after some more. */
function collectOutput(stream: NodeJS.ReadableStream, more = 0): () => Buffer {
  const chunks: Buffer[] = [];
  let left = MAX_OUTPUT_BYTES + more;
  stream.on('data', (chunk: Buffer) => {
    if (left > 0) chunks.push(chunk.subarray(0, left));
    left -= chunk.length;
  });
  return () => Buffer.concat(chunks);
}

export type Worker = Awaited<ReturnType<typeof startWorker>>;

/**
 * Starts a worker. See {@link start}.
 *
 * @throws {Error} if it cannot be confined
 */
export async function startWorker(job: Omit<Job, 'stdin' | 'stdout'>, library: string | undefined) {
  const program = start(library === undefined ? job : { ...job, stdin: '-' }, library);
  const { stdin, stdout } = program;
  let stderr = '';
  program.stderr.on('data', (chunk: Buffer) => {
    stderr = (stderr + chunk.toString('utf8')).slice(-1000);
  });
  const ended = program.ended.then(({ exitCode, signal, error }): never => {
    throw new Error(`the worker ended: ${signal ?? exitCode ?? error?.message} ${stderr.trim()}`.trim());
  });
  ended.catch(() => {}); // the caller that awaits it receives the error
  if (library !== undefined) {
    const report = await Promise.race([readBytes(stdout, HEADER_BYTES), ended]);
    if (!reportsConfinement(report)) {
      program.kill();
      throw new Error('the worker was not confined');
    }
  }
  const lines = createInterface({ input: stdout })[Symbol.asyncIterator]();
  return {
    /**
     * Sends a request as a line of JSON, and returns the response. The caller waits for it before
     * the next request.
     *
     * @throws {Error} if the worker ends without a response, or if the time limit is exceeded,
     *   which kills it
     */
    async send(request: object, timeoutMs: number): Promise<unknown> {
      stdin?.write(`${JSON.stringify(request)}\n`);
      const timer = setTimeout(() => program.kill(), timeoutMs);
      try {
        const { value, done } = await Promise.race([lines.next(), ended]);
        if (done) await ended;
        return JSON.parse(value as string);
      } finally {
        clearTimeout(timer);
      }
    },
    close: (): void => program.kill(),
  };
}

/** Reads the first bytes of a stream, and leaves the rest. */
async function readBytes(stream: NodeJS.ReadableStream, length: number): Promise<Buffer> {
  for (;;) {
    const bytes = stream.read(length) as Buffer | null;
    if (bytes) return bytes;
    await new Promise((resolve) => stream.once('readable', resolve));
  }
}
