/**
 * @module Runs the command line in the process of the test. A process of its own takes twice the
 * processor time: most of it to start Node.js and to load the program. Tests of signals, standard
 * input, terminals and the end of the process use `command.ts`.
 */
import { readFileSync } from 'node:fs';
import { runProgram } from '../../src/cli/program.ts';
import { type CommandRun, describeRun } from './command.ts';
import { programEnvironment } from './process.ts';

/** Environment and working directory of a command. */
export interface InProcessOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /** Version of Node.js that the command sees; by default, the real one. */
  readonly nodeVersion?: string;
}

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

/**
 * Events for which commands add listeners that they never remove, because the process ends after
 * them.
 */
const LISTENED = [
  ...(['SIGINT', 'SIGTERM', 'SIGHUP'] as const).map((name) => ({ emitter: process, name })),
  { emitter: process.stdout, name: 'error' },
];

let isRunning = false;

/**
 * Runs `imagemill` with arguments in this process. During the run, this process has the working
 * directory of the command, and everything that it prints is output of the command.
 *
 * @throws {Error} if another command runs in this process
 */
export async function runInProcess(
  args: readonly string[],
  { env = {}, cwd = process.cwd(), nodeVersion }: InProcessOptions = {},
): Promise<CommandRun> {
  if (isRunning) throw new Error('only one command can run in the process of the test at a time');
  isRunning = true;
  const before = process.cwd();
  const listeners = LISTENED.map(({ emitter, name }) => emitter.rawListeners(name));
  const [stdout, stderr] = [process.stdout, process.stderr].map(capture) as [Captured, Captured];
  try {
    process.chdir(cwd);
    const status = await runProgram(args, { env: { ...programEnvironment(), ...env }, version }, nodeVersion);
    return describeRun(status, stdout.bytes(), stderr.bytes());
  } finally {
    stdout.restore();
    stderr.restore();
    for (const [at, { emitter, name }] of LISTENED.entries())
      for (const listener of emitter.rawListeners(name) as (() => void)[])
        if (!listeners[at]?.includes(listener)) emitter.removeListener(name, listener);
    process.chdir(before);
    isRunning = false;
  }
}

interface Captured {
  /** Returns what was written so far. */
  bytes(): Buffer;
  restore(): void;
}

/** Makes a stream keep what is written to it. Meanwhile, it is no terminal. */
function capture(stream: NodeJS.WriteStream): Captured {
  const chunks: Buffer[] = [];
  const { write, isTTY } = stream;
  stream.isTTY = false;
  stream.write = ((
    chunk: string | Uint8Array,
    encoding?: BufferEncoding | (() => void),
    done?: () => void,
  ): boolean => {
    chunks.push(
      typeof chunk === 'string'
        ? Buffer.from(chunk, typeof encoding === 'string' ? encoding : 'utf8')
        : Buffer.from(chunk),
    );
    const callback = typeof encoding === 'function' ? encoding : done;
    if (callback) process.nextTick(callback);
    return true;
  }) as typeof stream.write;
  return {
    bytes: () => Buffer.concat(chunks),
    restore() {
      stream.write = write;
      stream.isTTY = isTTY;
    },
  };
}
