/**
 * @module A worker: an ImageMagick process that starts before there is work for it. Both versions of ImageMagick can read
 * their arguments from standard input, so that a process can start before its job is known. A worker has its own folder,
 * sees the files of one job at a time, and runs in the same sandbox as a process for one command.
 */

import { randomUUID } from 'node:crypto';
import { linkSync, readdirSync, renameSync, unlinkSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { removeFolder } from '../../files/workspace.ts';
import type { Command, CommandError, FailureReason, Output } from '../command.ts';
import {
  type ChildHandle,
  collectOutput,
  killOnTimeout,
  type LaunchDeps,
  launch,
  succeeded,
  toCommandError,
  type Usage,
} from '../runner.ts';
import type { Magick } from '../toolchain.ts';

/** Options of {@link startWorker}. */
export interface WorkerDeps extends LaunchDeps {
  /** Folder in which the worker's folder is created. It must be on the same file system as the folders of jobs. */
  readonly home: string;
  readonly magick: Pick<Magick, 'path' | 'major'>;
  /** Total time limit of all jobs, in ms. A backstop, since every job has its own limit. */
  readonly lifetimeMs: number;
}

/** A running worker. */
export interface Worker {
  /** False once the process has ended or has been stopped. */
  readonly alive: boolean;
  /**
   * Runs one command, whose last argument is the output. Only one command can run at a time.
   *
   * @throws {CommandError} as a new process for the command does. The worker cannot be used afterwards.
   */
  run(command: Command): Promise<Output>;
  /** Returns the resources that the worker uses. */
  usage(): Usage;
  /** Number of processes of the worker before its first job. */
  readonly processes: number;
  /** Ends the process, immediately if a job is running, and removes its folder. */
  end(): Promise<void>;
}

/** Time limit for starting a worker, in ms. */
const START_TIMEOUT_MS = 10_000;
/** Time for an idle worker to exit after its input is closed, in ms. */
const EXIT_GRACE_MS = 1_000;

/**
 * Starts a worker, and waits until it accepts jobs.
 *
 * @throws {CommandError} if the process does not start
 */
export async function startWorker(deps: WorkerDeps): Promise<Worker> {
  const folder = await mkdtemp(join(deps.home, 'worker-'));
  try {
    return await startIn(folder, deps);
  } catch (error) {
    await removeFolder(folder);
    throw error as CommandError;
  }
}

async function startIn(folder: string, deps: WorkerDeps): Promise<Worker> {
  const { args, singleUse, handshake, encodeJob } = WORKER_PROTOCOLS[deps.magick.major];
  const marker = createMarker();
  const self: Command = { file: deps.magick.path, args, cwd: folder, timeoutMs: deps.lifetimeMs };
  const child = await launch(deps, self, { readyMarker: singleUse ? marker : '' });
  const output = readOutput(child, marker);
  let busy = false;
  let over = false;
  let processes = 0;
  const ended = child.ended.then((end) => {
    over = true;
    output.end();
    return end;
  });
  const stop = (reason: FailureReason): void => {
    over = true;
    child.stop(reason);
  };

  /** Resolves when a single-use worker, which prints no marker after its job, has exited. */
  const exited = (): Promise<boolean> => ended.then(succeeded);
  // Adds nothing to `ended`, which would keep a callback for each job until the worker ends.
  const jobDone = async (): Promise<boolean> => !over && (await output.done()) && !over;

  /** Sends a message, and waits for its completion. */
  async function execute(message: string, done: Promise<boolean>, command: Command): Promise<Output> {
    const cancelTimeout = killOnTimeout(command, stop);
    busy = true;
    try {
      child.stdin?.write(message);
      if (await done) return output.take();
      throw toCommandError(await ended, self, output.take().stderr);
    } finally {
      busy = false;
      cancelTimeout();
    }
  }

  const worker: Worker = {
    get alive() {
      return !over;
    },
    async run(command) {
      const names = linkInputs(command.cwd, folder);
      const message = encodeJob(command.args, marker);
      const executed = execute(message, singleUse ? exited() : jobDone(), command);
      if (singleUse) child.stdin?.end();
      const result = await executed;
      collectOutputs(folder, command.cwd, names);
      return result;
    },
    usage: child.usage,
    get processes() {
      return processes;
    },
    async end() {
      // An idle worker exits when its input is closed. A compromised codec may not.
      const graceTimer = setTimeout(stop, busy ? 0 : EXIT_GRACE_MS, 'cancelled');
      over = true;
      child.stdin?.end();
      await ended;
      clearTimeout(graceTimer);
      await removeFolder(folder);
    },
  };
  try {
    await execute(handshake(marker), jobDone(), { ...self, timeoutMs: START_TIMEOUT_MS });
    processes = child.usage().processes;
    return worker;
  } catch (error) {
    await worker.end();
    throw error as CommandError;
  }
}

/** Reads the output of a worker. */
interface OutputReader {
  /** Resolves to true when the process prints the marker, and to false when {@link end} is called before. */
  done(): Promise<boolean>;
  /** Must be called when the process has ended. */
  end(): void;
  /** Returns the output since the last call. */
  take(): Output;
}

function readOutput(child: ChildHandle, marker: string): OutputReader {
  const [stdout, stderr] = [collectOutput(child.stdout), collectOutput(child.stderr)];
  let tail = '';
  let resolveDone: (done: boolean) => void = () => {};
  child.stdin?.on('error', () => {}); // `child.ended` reports that the process has ended
  child.stdout.on('data', (chunk: Buffer) => {
    tail = (tail + chunk.toString('latin1')).slice(-marker.length);
    // Standard error that was printed before the marker has already arrived, and is read in this turn of the event
    // loop.
    if (tail === marker) setImmediate(resolveDone, true);
  });
  return {
    done: () => {
      const { promise, resolve } = Promise.withResolvers<boolean>();
      resolveDone = resolve;
      return promise;
    },
    end: () => resolveDone(false),
    take() {
      tail = '';
      return { stdout: stdout().replace(marker, ''), stderr: stderr() };
    },
  };
}

/**
 * Links the files of a job into the folder of the worker. A hard link is cheap for any file size, and exposes only that
 * file. The calls are synchronous, because they only change names in memory: through the thread pool, a job would take
 * 119 instead of 38 µs.
 *
 * @returns the names of the files
 * @throws {Error} when the folder of the worker is not empty
 */
function linkInputs(from: string, to: string): string[] {
  if (readdirSync(to).length > 0) throw new Error('the folder of the worker is not empty after its last job');
  const names = readdirSync(from);
  for (const name of names) linkSync(join(from, name), join(to, name));
  return names;
}

/**
 * Removes the links to the inputs, and moves all other files to the folder of the job.
 *
 * @throws {Error} for an entry that is not a file, since the tools create only files
 */
function collectOutputs(from: string, to: string, inputs: readonly string[]): void {
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const path = join(from, entry.name);
    if (inputs.includes(entry.name)) unlinkSync(path);
    else if (entry.isFile()) renameSync(path, join(to, entry.name));
    else throw new Error(`the worker created something that is not a file: ${entry.name}`);
  }
}

/** Arguments and messages of a worker, for one version of ImageMagick. */
interface WorkerProtocol {
  /** Arguments that start the worker. */
  readonly args: readonly string[];
  /** Whether the process ends after one job. Otherwise it prints the marker before its first job and after each job. */
  readonly singleUse: boolean;
  /** Returns the message that the worker receives at its start. */
  handshake(marker: string): string;
  /**
   * Returns the message that runs one job.
   *
   * @param args the arguments of the command. The last one is the output.
   * @throws {Error} for an argument that the protocol cannot encode
   */
  encodeJob(args: readonly string[], marker: string): string;
}

const print = (marker: string): string => `-print '${marker.replace('\n', '\\n')}'\n`;

/** Protocol of each major version of ImageMagick. Version 7 runs one job after another, version 6 ends after the first. */
export const WORKER_PROTOCOLS: Readonly<Record<6 | 7, WorkerProtocol>> = {
  // utility.c, ExpandFilenames(): ImageMagick replaces `@-` with the arguments that it reads up to the end of the input.
  // The option before it must not take a value, or ImageMagick keeps the name.
  6: {
    args: ['-respect-parentheses', '@-'],
    singleUse: true,
    handshake: () => '',
    encodeJob: (args) => ['-respect-parentheses', ...args.map(quote)].join('\n'),
  },
  7: {
    args: ['-script', '-'],
    singleUse: false,
    // Settings within parentheses do not apply after them.
    handshake: (marker) => `-respect-parentheses ${print(marker)}`,
    encodeJob(args, marker) {
      const quoted = [...args.slice(0, -1), '-write', args.at(-1) as string].map(quote);
      return `(\n${quoted.join('\n')}\n+delete\n)\n${print(marker)}`;
    },
  },
};

/**
 * Creates the marker that a worker prints after each job.
 *
 * The marker is random, so that neither an image nor a message that quotes one can contain it. It does not protect against
 * code that an attacker runs in a codec: the process has to know the marker, so that code can find it. Such code can only
 * make its own job count as done too early, and the service verifies every result.
 */
const createMarker = (): string => `imagemill: done ${randomUUID()}\n`;

/**
 * Quotes an argument. Between single quotes, no character is special in either version, except that in version 6 a
 * backslash escapes the closing quote.
 *
 * @throws {Error} for an argument with a quote, a line feed or a NUL, or with a backslash at its end
 */
function quote(word: string): string {
  if (/['\n\0]|\\$/.test(word)) throw new Error(`argument cannot be encoded: ${word}`);
  return `'${word}'`;
}
