/**
 * @module Runs each command in a new process in a sandbox: with its own environment, with limits of time and other
 * resources, and in a process group that is killed as a whole.
 */
import { readFileSync } from 'node:fs';
import {
  type Command,
  CommandError,
  type FailureReason,
  MAX_OUTPUT_BYTES,
  type RunCommand,
} from './command.ts';
import type { Exit, LaunchedProcess, Launchers } from './launcher/launcher.ts';
import { EXIT_CANNOT_EXEC } from './launcher/shell.ts';

/** Creates a function that runs each command in a new process and kills it when its time limit expires. */
export function createRunner(deps: LaunchDeps): RunCommand {
  return async (command) => {
    if (command.signal?.aborted)
      throw new CommandError('cancelled', `${command.file} was cancelled before its start`);
    const child = await launch(deps, command);
    const cancelTimeout = killOnTimeout(command, child.stop);
    const stdout = collectOutput(child.stdout);
    const stderr = collectOutput(child.stderr);
    const ended = await child.ended;
    cancelTimeout();
    if (!succeeded(ended)) throw toCommandError(ended, command, stderr());
    return { stdout: stdout(), stderr: stderr() };
  };
}

/** Sandbox of one command. */
interface Confinement {
  /** Limits of setrlimit(2), each as the arguments of `ulimit`. */
  readonly limits?: readonly string[];
  /** Wrapper programs and their arguments, which precede the command line. */
  readonly argvPrefix?: readonly string[];
  /** Paths of files that the wrapper programs read, by file descriptor. */
  readonly fds?: Readonly<Record<number, string>>;
  /** Whether all descendants of the command end with it. */
  readonly endsDescendants?: boolean;
}

/** Returns the sandbox of a command. */
export type Confine = (command: Command) => Confinement;

/** Dependencies of {@link launch}. */
export interface LaunchDeps extends EnvironmentOptions {
  readonly launchers: Launchers;
  /** Returns the sandbox of each command. Without it, commands run unconfined. */
  readonly confine?: Confine;
}

/** A running command. */
export interface ChildHandle extends Omit<LaunchedProcess, 'exit' | 'kill' | 'pid'> {
  /** Resolves when the command has ended and its output is closed. */
  readonly ended: Promise<ExitResult>;
  /** Kills the command and its descendants. Only the reason of the first call is reported. */
  stop(reason: FailureReason): void;
  /** Returns the resources that the command uses. */
  usage(): Usage;
}

/** Result of a command that has ended. */
export interface ExitResult {
  readonly exit: Exit;
  /** Reason why the service killed the command, if it did. */
  readonly stopped?: FailureReason | undefined;
}

/** Options of a standard input that is a pipe. */
export interface StdinPipe {
  /** Marker that the child prints to stdout once it has opened stdin. Data written earlier may be lost. */
  readonly readyMarker: string;
}

/**
 * Starts a command.
 *
 * @param piped connects standard input to a pipe instead of `command.stdin`
 * @throws {CommandError} `spawn-failed` when the machine has no process or no file descriptor left
 */
export async function launch(deps: LaunchDeps, command: Command, piped?: StdinPipe): Promise<ChildHandle> {
  const { argvPrefix: wrapper = [], ...confinement } = deps.confine?.(command) ?? {};
  const [file = command.file, ...args] = [...wrapper, command.file, ...command.args];
  const options = {
    ...confinement,
    cwd: command.cwd,
    env: environment(deps, command),
    stdin: piped ? 'pipe' : (command.stdin ?? '/dev/null'),
    requires: [command.file],
    ...piped,
  };
  const { exit, kill, pid, ...launched } = await deps.launchers.spawn(file, args, options).catch((cause) => {
    throw new CommandError('spawn-failed', `${command.file} did not start`, { cause });
  });
  let stopped: FailureReason | undefined;
  return {
    ...launched,
    ended: exit.then((ended) => ({ exit: ended, stopped })),
    stop(reason) {
      stopped ??= reason;
      kill();
    },
    usage: () => measureUsage(pid),
  };
}

/**
 * Calls `stop` when the time limit of a command expires or its signal aborts.
 *
 * @returns a function that removes the timer and the listener
 */
export function killOnTimeout(
  { timeoutMs, signal }: Command,
  stop: (reason: FailureReason) => void,
): () => void {
  const timer = setTimeout(stop, timeoutMs, 'timeout');
  const cancel = (): void => stop('cancelled');
  signal?.addEventListener('abort', cancel, { once: true });
  if (signal?.aborted) cancel();
  return () => {
    clearTimeout(timer);
    signal?.removeEventListener('abort', cancel);
  };
}

/** Returns true when the command exited with status 0 and was not stopped. */
export function succeeded({ exit, stopped }: ExitResult): boolean {
  return exit.exitCode === 0 && !stopped;
}

/**
 * Collects the output of a stream.
 *
 * @returns a function that returns the first {@link MAX_OUTPUT_BYTES} since the last call, as text
 */
export function collectOutput(stream: NodeJS.ReadableStream): () => string {
  let chunks: Buffer[] = [];
  let kept = 0;
  stream.on('data', (chunk: Buffer) => {
    if (kept < MAX_OUTPUT_BYTES) chunks.push(chunk.subarray(0, MAX_OUTPUT_BYTES - kept));
    kept += chunk.length;
  });
  return () => {
    const text = Buffer.concat(chunks).toString('utf8');
    chunks = [];
    kept = 0;
    return text;
  };
}

/**
 * Exit status 127: either abort(3) in a sandbox that forbids signals, or a dynamic linker that misses a library or a
 * symbol, or a wrapper program that cannot start another. The latter two explain themselves on standard error.
 */
const EXIT_NOT_FOUND_OR_ABORTED = 127;
const LOADER_ERROR =
  /loading shared librar|symbol lookup error|relocat|not found|no such file|^(?:setpriv|bwrap): /im;

/** Converts the end of a command that did not succeed to an error. */
export function toCommandError(
  { exit, stopped }: ExitResult,
  { file }: Command,
  stderr: string,
): CommandError {
  const { exitCode, signal, error: cause } = exit;
  const reason = stopped ?? classifyExit(exit, stderr);
  const message = `${file} failed: ${stopped ?? signal ?? exitCode ?? cause?.message}`;
  return new CommandError(reason, message, { stderr, exitCode, signal, cause });
}

function classifyExit({ exitCode, signal, error }: Exit, stderr: string): FailureReason {
  if (error || exitCode === EXIT_CANNOT_EXEC) return 'spawn-failed';
  if (exitCode === EXIT_NOT_FOUND_OR_ABORTED) return LOADER_ERROR.test(stderr) ? 'spawn-failed' : 'signal';
  return signal ? 'signal' : 'exit';
}

/** Resources that a launched program uses. */
export interface Usage {
  /** Resident memory of the program, in bytes, or 0 if the system does not report it. */
  readonly memoryBytes: number;
  /** Number of processes: the launcher, its descendants, and in a PID namespace the orphans that it adopted. */
  readonly processes: number;
}

/**
 * Returns the resources that a program uses, from /proc; see proc(5). The reads are synchronous, because these files are in
 * the memory of the kernel and never block. The program is the last descendant, since launchers and bubblewrap remain the
 * parents of the processes that they start.
 *
 * @param pid process ID of the launcher
 */
export function measureUsage(pid: number | undefined): Usage {
  const pids = processTree(pid);
  return { memoryBytes: residentBytes(pids.at(-1) ?? ''), processes: pids.length };
}

/** Returns the IDs of a process and its descendants, generation by generation. */
function processTree(pid: number | undefined): string[] {
  const found = [String(pid)];
  for (const parent of found) {
    found.push(...read(`/proc/${parent}/task/${parent}/children`).split(' ').filter(Boolean));
  }
  return found;
}

/** Returns VmRSS, which is in KiB. /proc/PID/statm counts pages, and their size differs between kernels. */
function residentBytes(pid: string): number {
  const [, kib = '0'] = /^VmRSS:\s*(\d+) kB$/m.exec(read(`/proc/${pid}/status`)) ?? [];
  return Number(kib) * 1024;
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}

/** Options that determine the environment of a tool. */
interface EnvironmentOptions {
  /** `PATH` of the service. */
  readonly searchPath: string;
  /** Folder that contains `ImageMagick/policy.xml`. */
  readonly policyFolder: string;
  /** Folder with a copy of the policy that permits more. Default: `policyFolder`. */
  readonly grantsFolder?: string;
  readonly limits?: MagickLimits;
  /** Variables that are added, or that replace the defaults. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** Resource limits of ImageMagick. They can only lower the limits of the policy. */
export interface MagickLimits {
  /** Pixels of one image. */
  readonly pixels: number;
  readonly memoryBytes: number;
  /** Images in one file. */
  readonly frames: number;
}

const MIB = 1024 ** 2;

/**
 * Tunes how glibc allocates memory for images.
 *
 * - Pages of 2 MiB, where the kernel offers them on request (`madvise`). Each small page costs 0.5 µs or more when it
 * is first touched: converting 3 megapixels from JPEG to JPEG takes 61 ms instead of 71 ms.
 * - Up to 64 MiB of freed memory stay in the process, for its next allocations.
 */
const MEMORY = {
  GLIBC_TUNABLES: 'glibc.malloc.hugetlb=1',
  MALLOC_MMAP_THRESHOLD_: String(32 * MIB),
  MALLOC_TRIM_THRESHOLD_: String(64 * MIB),
};

/**
 * Returns the environment of a command, which inherits no variable except `PATH`.
 *
 * ImageMagick takes rights from the policy that it reads last, and limits from the one that it reads first. So
 * `XDG_CONFIG_HOME` and `MAGICK_CONFIGURE_PATH` both point to the policy folder. `HOME` must not be a folder that a job
 * can write to.
 */
function environment(
  { searchPath, policyFolder, grantsFolder = policyFolder, limits, environment: added }: EnvironmentOptions,
  { cwd, timeoutMs }: Command,
): Record<string, string> {
  return {
    PATH: searchPath,
    HOME: '/nonexistent',
    LC_ALL: 'C.UTF-8', // Pango chooses fonts by the locale
    XDG_CONFIG_HOME: grantsFolder,
    MAGICK_CONFIGURE_PATH: `${policyFolder}/ImageMagick`,
    MAGICK_THREAD_LIMIT: '1',
    // One second later than the time limit of the service, which reports a timeout as such.
    MAGICK_TIME_LIMIT: String(Math.ceil(timeoutMs / 1000) + 1),
    MAGICK_TEMPORARY_PATH: cwd,
    TMPDIR: cwd,
    XDG_CACHE_HOME: cwd,
    ...MEMORY,
    ...(limits && {
      MAGICK_AREA_LIMIT: String(limits.pixels),
      MAGICK_MEMORY_LIMIT: String(limits.memoryBytes),
      MAGICK_LIST_LENGTH_LIMIT: String(listLength(limits.frames)),
    }),
    ...added,
  };
}

/** Returns the limit of ImageMagick's image list. While ImageMagick composes frames, it also holds copies of them. */
export function listLength(frames: number): number {
  return 3 * frames + 12;
}
