/**
 * @module Processes of their own, confined or not: for one job, and for a worker that answers one line of JSON after another, for
 * decoders that this process must not load.
 */
import { createInterface } from 'node:readline';
import { MAX_OUTPUT_BYTES } from './command.ts';
import { createAnswerReader, encodeJob, HEADER_BYTES, type Job } from './fork-server/messages.ts';
import { type Exit, type RunningJob, type StartedProgram, startProgram } from './start.ts';

/** Length of the message with which the library reports that it has confined the process. It has no body. */
const REPORT_BYTES = HEADER_BYTES;

/** A job that runs unconfined if it has no confinement. */
type AnyJob = Omit<Job, 'confinement'> & Partial<Job>;

/**
 * Starts the program of a job.
 *
 * @param library path of the compiled `fork-server.c`, which confines the process before `main` of the program, and gives it its
 *   arguments. Without it, the program runs unconfined.
 * @throws {Error} for a job that cannot be encoded
 */
function start({ confinement, ...job }: AnyJob, library?: string): StartedProgram {
  const { args, env, cwd, stdin } = job;
  const [file = '', ...rest] = args;
  if (library === undefined || !confinement)
    return startProgram(file, rest, { cwd, env, ...(stdin !== undefined && { stdin }) });
  const request = encodeJob(0, { ...job, confinement });
  const preload = { LD_PRELOAD: library, IMAGEMILL_FORK_SERVER: 'once' };
  const program = startProgram(file, [], { cwd, env: { ...env, ...preload } });
  program.stdin?.write(request);
  return program;
}

/** Runs a job in a process of its own. See {@link start}. */
export function startOnce(job: AnyJob, library?: string): RunningJob {
  const confined = library !== undefined && job.confinement !== undefined;
  const program = start(confined ? job : { ...job, stdin: job.stdin ?? '/dev/null' }, library);
  if (confined) program.stdin?.end();
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
const reportsConfinement = (output: Buffer): boolean =>
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

export type Worker = Awaited<ReturnType<typeof startWorker>>;

/**
 * Starts a worker. See {@link start}.
 *
 * @throws {Error} if it cannot be confined
 */
export async function startWorker(job: Omit<Job, 'stdin'>, library: string | undefined) {
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
    const report = await Promise.race([readBytes(stdout, REPORT_BYTES), ended]);
    if (!reportsConfinement(report)) {
      program.kill();
      throw new Error('the worker was not confined');
    }
  }
  const lines = createInterface({ input: stdout })[Symbol.asyncIterator]();
  return {
    /**
     * Sends a request as a line of JSON, and returns the response. The caller waits for it before the next request.
     *
     * @throws {Error} if the worker ends without a response, or if the time limit is exceeded, which kills it
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
