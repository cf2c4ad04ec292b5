/** @module A confined process that answers one line of JSON after another, for decoders that this process must not load. */
import { createInterface } from 'node:readline';
import { encodeJob, type Job } from './fork-server/protocol.ts';
import { REPORT_BYTES, reportsConfinement, startProgram } from './start.ts';

/** A running worker. */
export interface Worker {
  /**
   * Sends a question, and returns the answer. One at a time.
   *
   * @throws {Error} if the worker ends without an answer, or not in time
   */
  ask(question: object, timeoutMs: number): Promise<unknown>;
  close(): void;
}

/**
 * Starts a worker.
 *
 * @param job its confinement is applied before `main` of the program
 * @param library path of the compiled `fork-server.c`. Without it, the worker runs unconfined.
 * @throws {Error} if it cannot be confined
 */
export async function startWorker(job: Omit<Job, 'stdin'>, library: string | undefined): Promise<Worker> {
  const { args, env, cwd } = job;
  const [file = '', ...rest] = args;
  const more = library ? { LD_PRELOAD: library, IMAGEMILL_FORK_SERVER: 'once' } : {};
  const request = library && encodeJob(0, { ...job, stdin: '-' });
  const program = startProgram(file, library ? [] : rest, { cwd, env: { ...env, ...more } });
  const { stdin, stdout } = program;
  let stderr = '';
  program.stderr.on('data', (chunk: Buffer) => {
    stderr = (stderr + chunk.toString('utf8')).slice(-1000);
  });
  const ended = program.ended.then(({ exitCode, signal, error }): never => {
    throw new Error(`the worker ended: ${signal ?? exitCode ?? error?.message} ${stderr.trim()}`.trim());
  });
  ended.catch(() => {}); // the caller that awaits it receives the error
  if (request) {
    stdin?.write(request);
    const report = await Promise.race([readBytes(stdout, REPORT_BYTES), ended]);
    if (!reportsConfinement(report)) {
      program.kill();
      throw new Error('the worker was not confined');
    }
  }
  const lines = createInterface({ input: stdout })[Symbol.asyncIterator]();
  return {
    async ask(question, timeoutMs) {
      stdin?.write(`${JSON.stringify(question)}\n`);
      const timer = setTimeout(() => program.kill(), timeoutMs);
      try {
        const { value, done } = await Promise.race([lines.next(), ended]);
        if (done) await ended;
        return JSON.parse(value as string);
      } finally {
        clearTimeout(timer);
      }
    },
    close: () => program.kill(),
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
