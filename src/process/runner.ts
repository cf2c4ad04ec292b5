/**
 * @module Runs each command in a new process: in a fork server of its program, or by starting the
 * program. Each has its own environment, limits of time and other resources, and is killed as a
 * whole.
 */
import { lstatSync } from 'node:fs';
import { opendir } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { Logger } from 'pino';
import {
  type Command,
  CommandError,
  type Exit,
  type FailureReason,
  type KillReason,
  killReason,
  type RunCommand,
  type RunningJob,
} from './command.ts';
import type { Confinement } from './fork-server/messages.ts';
import type { ForkServers } from './fork-server/servers.ts';
import { startOnce } from './start.ts';

/** Returns the limits and rights of a command. */
export type Confine = (command: Command) => Confinement;

/** Maximum open files of a tool. The limit of this process must not be lower (setrlimit(2)). */
export const TOOL_OPEN_FILES = 64;

/** Limits and rights of all commands in a sandbox. */
interface ConfineOptions extends Pick<Confinement, 'memoryBytes' | 'fileBytes' | 'filter'> {
  /** Files and folders that each program can read, or `all` if it can access every file. */
  readonly readable: ReadonlyMap<string, readonly string[]> | 'all';
}

/** Creates the function that confines each command, with the limits of its time and memory. */
export function createConfine({ readable, filter, ...max }: ConfineOptions): Confine {
  // The kernel counts the time of all threads. Node.js makes a system call for their number.
  const threads = availableParallelism();
  return ({ file, timeoutMs, cpuSeconds, memoryBytes, fileBytes = max.fileBytes, maxBytes = fileBytes }) => ({
    filter,
    fileBytes: Math.min(maxBytes, fileBytes),
    memoryBytes: Math.min(memoryBytes ?? max.memoryBytes, max.memoryBytes),
    // At most one second later than the time limit of the service.
    cpuSeconds: Math.min(cpuSeconds ?? Number.POSITIVE_INFINITY, Math.ceil(timeoutMs / 1000) * threads + 1),
    files: TOOL_OPEN_FILES,
    readable: readable === 'all' ? readable : (readable.get(file) ?? []),
  });
}

export interface RunnerDeps extends EnvironmentOptions {
  /** Path of the compiled `fork-server.c`. Without it, commands run unconfined. */
  readonly library?: string | undefined;
  readonly confine?: Confine | undefined;
  /** Servers of the programs that need not be started for each command. */
  readonly servers?: ForkServers | undefined;
}

/** Creates a function that runs each command in a new process, until its time limit expires. */
export function createRunner(deps: RunnerDeps): RunCommand {
  return async (command) => {
    if (command.signal?.aborted)
      throw new CommandError('cancelled', `${command.file} was cancelled before its start`);
    const job = await start(deps, command).catch((cause) => {
      throw new CommandError('spawn-failed', `${command.file} did not start`, { cause });
    });
    let stopped: FailureReason | undefined;
    const stop = (reason: FailureReason): void => {
      stopped ??= reason;
      job.kill();
    };
    const endTimeout = killOnTimeout(command, stop);
    const endQuota = enforceQuota(command, () => stop('files'));
    const { exit, stdout, stderr } = await job.ended;
    endTimeout();
    endQuota();
    const { exitCode, signal, error: cause } = exit;
    if (exitCode === 0 && !stopped) return { stdout, stderr };
    const message = `${command.file} failed: ${stopped ?? signal ?? exitCode ?? cause?.message}`;
    const reason = stopped ?? classifyExit(exit, stderr);
    throw new CommandError(reason, message, { stderr, exitCode, signal, cause });
  };
}

/** Creates a runner for no image of a client. With the policy, version 6 would list no formats. */
export const createProbeRunner = (searchPath: string): RunCommand =>
  createRunner({ searchPath, policyFolder: '/nonexistent' });

async function start(deps: RunnerDeps, command: Command): Promise<RunningJob> {
  const { library, confine, servers } = deps;
  const { file, args, cwd, outputs, stdin, stdout } = command;
  const job = { args: [file, ...args], env: environmentOf(deps, command), cwd, outputs, stdin, stdout };
  if (!library || !confine) return startOnce(job);
  const confined = { ...job, confinement: confine(command) };
  return servers?.serves(file) ? servers.run(confined, file) : startOnce(confined, library);
}

/** Calls `stop` at the time limit or an abort. Returns a function that ends the wait for both. */
function killOnTimeout({ timeoutMs, signal }: Command, stop: (reason: FailureReason) => void): () => void {
  const timer = setTimeout(stop, timeoutMs, 'timeout');
  const cancel = (): void => stop('cancelled');
  signal?.addEventListener('abort', cancel, { once: true });
  if (signal?.aborted) cancel();
  return () => {
    clearTimeout(timer);
    signal?.removeEventListener('abort', cancel);
  };
}

/** Minimum time between two checks of a folder, in ms. */
const QUOTA_INTERVAL_MS = 200;
/** Number of files after which a check lets the event loop continue. Each takes 6 µs. */
const NAMES_PER_TURN = 64;

/**
 * Checks the folder of a command repeatedly, and calls `onExceeded` if it has too many files or
 * bytes: an attacker who controls a tool could fill the disk, or make millions of files. A check
 * ends at the first file that is too much, and the time between two checks grows with the files, so
 * that they take about 3% of the time at most. Returns a function that ends the checks.
 */
function enforceQuota({ cwd, maxBytes, maxNames }: Command, onExceeded: () => void): () => void {
  if (maxBytes === undefined || maxNames === undefined) return () => {};
  let isOver = false;
  let timer: NodeJS.Timeout;
  const check = async (): Promise<void> => {
    const names = await countNames(cwd, maxNames, maxBytes);
    if (isOver) return;
    if (names > maxNames) onExceeded();
    else timer = setTimeout(check, Math.max(QUOTA_INTERVAL_MS, names / 5));
  };
  timer = setTimeout(check, QUOTA_INTERVAL_MS);
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}

/** Returns the number of files in a folder; infinity for too many bytes. Stops at a limit. */
async function countNames(folder: string, maxNames: number, maxBytes: number): Promise<number> {
  let [names, bytes] = [0, 0];
  try {
    for await (const { name } of await opendir(folder, { bufferSize: NAMES_PER_TURN })) {
      names += 1;
      // A file that disappears meanwhile has no size.
      bytes += lstatSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0;
      if (bytes > maxBytes) return Number.POSITIVE_INFINITY;
      if (names > maxNames) break;
    }
  } catch {
    // The folder cannot be read at the moment. The next check tries again.
  }
  return names;
}

/** Logs output of failed tools at level debug, since it can quote images, and reports kills. */
export function reportFailures(
  run: RunCommand,
  log: Logger,
  onKill: (reason: KillReason) => void,
): RunCommand {
  return (command) =>
    run(command).catch((error) => {
      if (error instanceof CommandError) {
        log.debug({ err: error, stderr: error.stderr }, 'a tool failed');
        const reason = killReason(error);
        if (reason) onKill(reason);
      }
      throw error;
    });
}

/** Exit status of a job that could not be confined: `EXIT_NOT_CONFINED` in fork-server.c. */
const EXIT_NOT_CONFINED = 126;
/**
 * Exit status 127: either abort(3) in a sandbox that forbids signals, or a dynamic linker that
 * misses a library or a symbol, which explains itself on standard error.
 */
const EXIT_NOT_FOUND_OR_ABORTED = 127;
const LOADER_ERROR = /loading shared librar|symbol lookup error|relocat|not found|no such file/im;

function classifyExit({ exitCode, signal, error }: Exit, stderr: string): FailureReason {
  if (error || exitCode === EXIT_NOT_CONFINED) return 'spawn-failed';
  if (exitCode === EXIT_NOT_FOUND_OR_ABORTED) return LOADER_ERROR.test(stderr) ? 'spawn-failed' : 'signal';
  return signal ? 'signal' : 'exit';
}

/** Options that determine the environment of a tool. */
export interface EnvironmentOptions {
  /** `PATH` of the service. */
  readonly searchPath: string;
  /** Folder that contains `ImageMagick/policy.xml`. */
  readonly policyFolder: string;
  /** Folder with a copy of the policy that permits more. Default: `policyFolder`. */
  readonly grantsFolder?: string | undefined;
  readonly limits?: MagickLimits;
}

/** Resource limits of ImageMagick. They can only lower the limits of the policy. */
export interface MagickLimits {
  /** Width and height of one image in pixels. */
  readonly side: number;
  /** Pixels of one image. */
  readonly pixels: number;
  readonly memoryBytes: number;
  /** Images in one file. */
  readonly frames: number;
}

const MIB = 1024 ** 2;

/**
 * Lets glibc ask for pages of 2 MiB, where the kernel offers them on request (`madvise`). Each
 * small page costs 0.5 µs or more when it is first touched: converting 3 megapixels from JPEG to
 * JPEG takes 61 ms instead of 71 ms.
 */
export const LARGE_PAGES = { GLIBC_TUNABLES: 'glibc.malloc.hugetlb=1' };

/** Tunes glibc for images: up to 64 MiB of freed memory stay for the next allocations. */
const MEMORY = {
  ...LARGE_PAGES,
  MALLOC_MMAP_THRESHOLD_: String(32 * MIB),
  MALLOC_TRIM_THRESHOLD_: String(64 * MIB),
};

/**
 * Returns the environment of a command, which inherits no variable except `PATH`.
 *
 * ImageMagick takes rights from the policy that it reads last, and limits from the one that it
 * reads first. So `XDG_CONFIG_HOME` and `MAGICK_CONFIGURE_PATH` both point to the policy folder.
 * `HOME` must not be a folder that a job can write to.
 */
export function environmentOf(
  { searchPath, policyFolder, grantsFolder = policyFolder, limits }: EnvironmentOptions,
  { cwd, timeoutMs, deflateLevel, env }: Pick<Command, 'cwd' | 'timeoutMs' | 'deflateLevel' | 'env'>,
): Record<string, string> {
  return {
    PATH: searchPath,
    HOME: '/nonexistent',
    LC_ALL: 'C.UTF-8', // Pango chooses fonts by the locale
    LANGUAGE: 'en', // for `systemLanguage` of SVG. Without a language, only what has none would be drawn.
    XDG_CONFIG_HOME: grantsFolder,
    MAGICK_CONFIGURE_PATH: `${policyFolder}/ImageMagick`,
    MAGICK_THREAD_LIMIT: '1',
    // One second later than the time limit of the service, which reports a timeout as such.
    MAGICK_TIME_LIMIT: String(Math.ceil(timeoutMs / 1000) + 1),
    MAGICK_TEMPORARY_PATH: cwd,
    TMPDIR: cwd,
    XDG_CACHE_HOME: cwd,
    ...MEMORY,
    ...(deflateLevel !== undefined && { IMAGEMILL_DEFLATE_LEVEL: String(deflateLevel) }),
    ...(limits && {
      MAGICK_WIDTH_LIMIT: String(limits.side),
      MAGICK_HEIGHT_LIMIT: String(limits.side),
      MAGICK_AREA_LIMIT: String(limits.pixels),
      MAGICK_MEMORY_LIMIT: String(limits.memoryBytes),
      MAGICK_LIST_LENGTH_LIMIT: String(listLength(limits.frames)),
    }),
    ...env,
  };
}

/** Returns the limit of ImageMagick's image list, with copies that it makes to compose frames. */
export function listLength(frames: number): number {
  return 3 * frames + 12;
}
