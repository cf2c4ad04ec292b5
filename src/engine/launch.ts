import { execa } from 'execa';
import { type Command, CommandFailed, KEPT_BYTES, type Reason } from './command.ts';

/** Starts one process, shut in: a bare environment, and a whole process group that dies together. */

/** What ImageMagick may use at most, below what the policy allows. */
export interface ToolLimits {
  /** Of one picture. */
  readonly pixels: number;
  readonly memoryBytes: number;
  /** Pictures in one file. */
  readonly frames: number;
}

/** The programs and their arguments that are put in front of a command, to shut it in. */
export type Confine = (command: Command) => readonly string[];

export interface LaunchDeps {
  /** The only variable that a command inherits: `PATH`. */
  readonly searchPath: string;
  /** A folder that holds `ImageMagick/policy.xml`. */
  readonly policyFolder: string;
  readonly limits?: ToolLimits;
  readonly confine?: Confine;
  /** What differs in its environment. */
  readonly environment?: Readonly<Record<string, string>>;
}

interface Lifetime {
  readonly timeout?: number;
  readonly cancelSignal?: AbortSignal;
}

/**
 * @param stdin a file's descriptor, or `pipe` to write to it
 * @param lifetime when it is killed; by default it lives until its input ends
 */
export function launch(
  deps: LaunchDeps,
  command: Command,
  stdin: number | 'ignore' | 'pipe',
  lifetime: Lifetime = {},
) {
  const { file, args, cwd } = command;
  const [program = file, ...rest] = [...(deps.confine?.(command) ?? []), file, ...args];
  return execa(program, rest, {
    cwd,
    env: environment(deps, command),
    extendEnv: false,
    // Any descriptor will do; the types only know those up to 9.
    stdin: stdin as 0 | 'ignore' | 'pipe',
    buffer: false,
    reject: false,
    killSignal: 'SIGKILL',
    killDescendants: true,
    ...lifetime,
  });
}

/**
 * Rights come from the policy read last, limits from the one read first: with both
 * variables at our folder both are ours. HOME must not be a place a job can write.
 */
function environment(
  { searchPath, policyFolder, limits, environment: own }: LaunchDeps,
  { cwd, timeoutMs }: Command,
): Record<string, string> {
  return {
    PATH: searchPath,
    HOME: '/nonexistent',
    LC_ALL: 'C.UTF-8',
    XDG_CONFIG_HOME: policyFolder,
    MAGICK_CONFIGURE_PATH: `${policyFolder}/ImageMagick`,
    MAGICK_THREAD_LIMIT: '1',
    MAGICK_TIME_LIMIT: String(Math.ceil(timeoutMs / 1000) + 1), // our own comes first, and is told from others
    MAGICK_TEMPORARY_PATH: cwd,
    TMPDIR: cwd,
    XDG_CACHE_HOME: cwd,
    ...(limits && {
      MAGICK_AREA_LIMIT: String(limits.pixels),
      MAGICK_MEMORY_LIMIT: String(limits.memoryBytes),
      MAGICK_LIST_LENGTH_LIMIT: String(listLength(limits)),
    }),
    ...own,
  };
}

/** Of ImageMagick's list of pictures: copies stand beside the frames while they are put together. */
export function listLength({ frames }: ToolLimits): number {
  return 3 * frames + 12;
}

/** Collects what a stream prints, the first {@link KEPT_BYTES} of it. */
export function keepStart(stream: NodeJS.ReadableStream): () => string {
  const chunks: Buffer[] = [];
  let kept = 0;
  stream.on('data', (chunk: Buffer) => {
    if (kept < KEPT_BYTES) chunks.push(chunk.subarray(0, KEPT_BYTES - kept));
    kept += chunk.length;
  });
  return () => Buffer.concat(chunks).toString('utf8');
}

/** How a process ended; a part of what execa tells. */
export interface Ended {
  readonly timedOut: boolean;
  readonly isCanceled: boolean;
  readonly signal?: string | undefined;
  readonly exitCode?: number | undefined;
  readonly shortMessage?: string | undefined;
  readonly cause?: unknown;
}

/** @param why when somebody of ours ended it */
export function failureOf(ended: Ended, command: Command, stderr: string, why?: Reason): CommandFailed {
  const { shortMessage = command.file, cause, signal, exitCode } = ended;
  return new CommandFailed(why ?? reasonOf(ended), shortMessage, stderr, cause, signal ?? exitCode);
}

function reasonOf({ timedOut, isCanceled, signal, exitCode }: Ended): Reason {
  if (timedOut) return 'timeout';
  if (isCanceled) return 'cancelled';
  if (signal !== undefined) return 'signal';
  // The programs that shut a command in say by these that it could not be started: env(1), prlimit(1).
  return exitCode === undefined || exitCode === 126 || exitCode === 127 ? 'unrunnable' : 'exit';
}
