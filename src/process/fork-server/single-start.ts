/** @module Starts a program for one job, with or without the confinement of `fork-server.c`. */

import { MAX_OUTPUT_BYTES } from '../command.ts';
import { type Exit, startProgram } from '../start.ts';
import { createAnswerReader, encodeJob, HEADER_BYTES, type Job } from './protocol.ts';
import type { RunningJob } from './server.ts';

/** Length of the message with which the library reports that it has confined the process. */
const REPORT_BYTES = HEADER_BYTES + 4;

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
