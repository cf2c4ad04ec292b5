import { linkSync, readdirSync, renameSync, unlinkSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { removeFolder } from '../../files/workspace.ts';
import {
  type Command,
  type CommandError,
  type FailureReason,
  MAX_OUTPUT_BYTES,
  type Output,
} from '../command.ts';
import { endedWell, failureOf, keepTime, type LaunchDeps, type Launched, launch } from '../launch.ts';
import type { Magick } from '../toolchain.ts';
import { createMarker, WORKER_PROTOCOLS } from './protocol.ts';
import { type Usage, usageOf } from './rss.ts';

/**
 * One ImageMagick process that is there before the work is, and reads its arguments from a pipe
 * as they come. It has a folder of its own, sees the files of one job at a time, and is as shut
 * in as a process for one command.
 */

export interface WorkerDeps extends LaunchDeps {
  /** The folder that its own is made in, on the same file system as those of jobs. */
  readonly home: string;
  readonly magick: Pick<Magick, 'path' | 'major'>;
  /** All that it may work in its life: a backstop, since every job has its own limit. In milliseconds. */
  readonly lifetimeMs: number;
}

export interface Worker {
  /** False once the process has ended, or has been told to. */
  readonly alive: boolean;
  /**
   * Runs one command, whose last argument is the output. It must not have another one under way.
   *
   * @throws CommandFailed as a process for the one command does; the worker is of no use then
   */
  run(command: Command): Promise<Output>;
  /** What it uses now. */
  usage(): Usage;
  /** How many processes it had before its first job. */
  readonly processes: number;
  /** Ends the process, at once when it is at work, and removes its folder. */
  end(): Promise<void>;
}

/** As long as the slowest machine may take to start a program, in milliseconds. */
const START_TIMEOUT_MS = 10_000;
/** What it may take to end by itself, in milliseconds. */
const EXIT_GRACE_MS = 1_000;

/** @throws CommandFailed when it does not start */
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
  const { args, singleUse: once, handshake: greeting, encodeJob: tell } = WORKER_PROTOCOLS[deps.magick.major];
  const marker = createMarker();
  const self: Command = { file: deps.magick.path, args, cwd: folder, timeoutMs: deps.lifetimeMs };
  const child = await launch(deps, self, { hello: once ? marker : '' });
  const heard = readOutput(child, marker);
  let busy = false;
  let over = false;
  let processes = 0;
  const gone = child.ended.then((end) => {
    over = true;
    return end;
  });
  const stop = (why: FailureReason): void => {
    over = true;
    child.stop(why);
  };

  /** Those that end with their job say nothing of it. */
  const exited = (): Promise<boolean> => gone.then(endedWell);
  const jobDone = (): Promise<boolean> =>
    Promise.race([heard.done().then(() => !over), gone.then(() => false)]);

  /** Tells it something, and waits until that is done. */
  async function execute(script: string, done: Promise<boolean>, command: Command): Promise<Output> {
    const callOff = keepTime(command, stop);
    busy = true;
    try {
      child.stdin?.write(script);
      if (await done) return heard.take();
      throw failureOf(await gone, self, heard.take().stderr);
    } finally {
      busy = false;
      callOff();
    }
  }

  const worker: Worker = {
    get alive() {
      return !over;
    },
    async run(command) {
      const names = linkInputs(command.cwd, folder);
      const told = execute(tell(command.args, marker), once ? exited() : jobDone(), command);
      if (once) child.stdin?.end();
      const output = await told;
      collectOutputs(folder, command.cwd, names);
      return output;
    },
    usage: () => usageOf(child.pid),
    get processes() {
      return processes;
    },
    async end() {
      // At rest it goes when nothing more can come. A broken codec may think otherwise.
      const patience = setTimeout(stop, busy ? 0 : EXIT_GRACE_MS, 'cancelled');
      over = true;
      child.stdin?.end();
      await gone;
      clearTimeout(patience);
      await removeFolder(folder);
    },
  };
  try {
    await execute(greeting(marker), jobDone(), { ...self, timeoutMs: START_TIMEOUT_MS });
    processes = usageOf(child.pid).processes;
    return worker;
  } catch (error) {
    await worker.end();
    throw error as CommandError;
  }
}

interface OutputReader {
  /** True when the process has said that its job is done. */
  done(): Promise<boolean>;
  /** What it has printed since the last time. */
  take(): Output;
}

function readOutput(child: Launched, marker: string): OutputReader {
  let stdout = '';
  let stderr = '';
  let tail = '';
  let tell: (done: boolean) => void = () => {};
  child.stdin?.on('error', () => {}); // that it has ended is told by itself
  child.stderr.on('data', (chunk: Buffer) => {
    if (stderr.length < MAX_OUTPUT_BYTES)
      stderr += chunk.toString('utf8').slice(0, MAX_OUTPUT_BYTES - stderr.length);
  });
  child.stdout.on('data', (chunk: Buffer) => {
    if (stdout.length < MAX_OUTPUT_BYTES)
      stdout += chunk.toString('utf8').slice(0, MAX_OUTPUT_BYTES - stdout.length);
    tail = (tail + chunk.toString('latin1')).slice(-marker.length);
    // What it printed to standard error before is there by now, and is read in this turn of the loop.
    if (tail === marker) setImmediate(tell, true);
  });
  return {
    done: () => {
      const { promise, resolve } = Promise.withResolvers<boolean>();
      tell = resolve;
      return promise;
    },
    take() {
      const output = { stdout: stdout.replace(marker, ''), stderr };
      [stdout, stderr, tail] = ['', '', ''];
      return output;
    },
  };
}

/**
 * A link costs nothing, whatever the size, and shows the worker no more than the one file. Such calls touch nothing
 * but names in memory: to wait for other threads would take three times as long (38 and 119 µs a job).
 */
function linkInputs(from: string, to: string): string[] {
  if (readdirSync(to).length > 0) throw new Error('the worker has left or made something after its last job');
  const names = readdirSync(from);
  for (const name of names) linkSync(join(from, name), join(to, name));
  return names;
}

/** All that is new is the job's, if it is a file: tools make nothing else. */
function collectOutputs(from: string, to: string, brought: readonly string[]): void {
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const path = join(from, entry.name);
    if (brought.includes(entry.name)) unlinkSync(path);
    else if (entry.isFile()) renameSync(path, join(to, entry.name));
    else throw new Error(`the worker has made what is no file: ${entry.name}`);
  }
}
