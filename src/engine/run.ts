import { open } from 'node:fs/promises';
import { execa } from 'execa';

/** Runs one command, shut in: a bare environment, a time limit, and a whole process group that dies together. */

export interface Command {
  /** Absolute path of the program. */
  readonly file: string;
  readonly args: readonly string[];
  /** The job's folder: where relative names point, and the only place for temporary files. */
  readonly cwd: string;
  /** Absolute path of the file it reads on standard input. */
  readonly stdin?: string;
  readonly timeoutMs: number;
  /** Address space it may use; by default what the confinement has for all. */
  readonly memoryBytes?: number;
  readonly signal?: AbortSignal;
}

export interface Output {
  /** What it printed, cut at {@link KEPT_BYTES} each. */
  readonly stdout: string;
  readonly stderr: string;
}

/** Why a command did not succeed. `unrunnable` means it never started. */
export type Reason = 'exit' | 'signal' | 'timeout' | 'cancelled' | 'unrunnable';

export class CommandFailed extends Error {
  override readonly name = 'CommandFailed';
  readonly reason: Reason;
  readonly stderr: string;
  /** Its exit status, or the signal that ended it. */
  readonly end: number | string | undefined;
  constructor(reason: Reason, message: string, stderr: string, cause?: unknown, end?: number | string) {
    super(message, { cause });
    this.end = end;
    this.reason = reason;
    this.stderr = stderr;
  }
}

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

export interface RunDeps {
  /** The only variable that a command inherits: `PATH`. */
  readonly searchPath: string;
  /** A folder that holds `ImageMagick/policy.xml`. */
  readonly policyFolder: string;
  readonly limits?: ToolLimits;
  readonly confine?: Confine;
}

export type Run = (command: Command) => Promise<Output>;

/** Warnings of a damaged file can go on for ever; nobody reads more than this. */
export const KEPT_BYTES = 64 * 1024;

/** Makes the function that runs commands. */
export function createRun(deps: RunDeps): Run {
  return async (command) => {
    const { file, args, cwd, stdin, timeoutMs, signal } = command;
    const input = stdin === undefined ? undefined : await open(stdin);
    const [program = file, ...rest] = [...(deps.confine?.(command) ?? []), file, ...args];
    try {
      const child = execa(program, rest, {
        cwd,
        env: environment(deps, cwd, timeoutMs),
        extendEnv: false,
        // Any descriptor will do; the types only know those up to 9.
        stdin: (input?.fd ?? 'ignore') as 0 | 'ignore',
        buffer: false,
        reject: false,
        timeout: timeoutMs,
        killSignal: 'SIGKILL',
        killDescendants: true,
        ...(signal && { cancelSignal: signal }),
      });
      const stdout = keepStart(child.stdout);
      const stderr = keepStart(child.stderr);
      const result = await child;
      const output = { stdout: stdout(), stderr: stderr() };
      if (!result.failed) return output;
      throw new CommandFailed(
        reasonOf(result),
        result.shortMessage ?? file,
        output.stderr,
        result.cause,
        result.signal ?? result.exitCode,
      );
    } finally {
      await input?.close();
    }
  };
}

/**
 * Rights come from the policy read last, limits from the one read first: with both
 * variables at our folder both are ours. HOME must not be a place a job can write.
 */
function environment(
  { searchPath, policyFolder, limits }: RunDeps,
  folder: string,
  timeoutMs: number,
): Record<string, string> {
  return {
    PATH: searchPath,
    HOME: '/nonexistent',
    LC_ALL: 'C.UTF-8',
    XDG_CONFIG_HOME: policyFolder,
    MAGICK_CONFIGURE_PATH: `${policyFolder}/ImageMagick`,
    MAGICK_THREAD_LIMIT: '1',
    MAGICK_TIME_LIMIT: String(Math.ceil(timeoutMs / 1000) + 1), // our own comes first, and is told from others
    MAGICK_TEMPORARY_PATH: folder,
    TMPDIR: folder,
    XDG_CACHE_HOME: folder,
    ...(limits && {
      MAGICK_AREA_LIMIT: String(limits.pixels),
      MAGICK_MEMORY_LIMIT: String(limits.memoryBytes),
      MAGICK_LIST_LENGTH_LIMIT: String(listLength(limits)),
    }),
  };
}

/** Of ImageMagick's list of pictures: copies stand beside the frames while they are put together. */
export function listLength({ frames }: ToolLimits): number {
  return 3 * frames + 12;
}

function keepStart(stream: NodeJS.ReadableStream): () => string {
  const chunks: Buffer[] = [];
  let kept = 0;
  stream.on('data', (chunk: Buffer) => {
    if (kept < KEPT_BYTES) chunks.push(chunk.subarray(0, KEPT_BYTES - kept));
    kept += chunk.length;
  });
  return () => Buffer.concat(chunks).toString('utf8');
}

interface Result {
  readonly timedOut: boolean;
  readonly isCanceled: boolean;
  readonly signal?: string | undefined;
  readonly exitCode?: number | undefined;
}

function reasonOf({ timedOut, isCanceled, signal, exitCode }: Result): Reason {
  if (timedOut) return 'timeout';
  if (isCanceled) return 'cancelled';
  if (signal !== undefined) return 'signal';
  // The programs that shut a command in say by these that it could not be started: env(1), prlimit(1).
  return exitCode === undefined || exitCode === 126 || exitCode === 127 ? 'unrunnable' : 'exit';
}
