import { type Command, CommandError, type FailureReason, MAX_OUTPUT_BYTES } from './command.ts';
import { type EnvironmentOptions, environment } from './environment.ts';
import type { Exit, LaunchedProcess } from './launcher/launcher.ts';
import type { Launchers } from './launcher/pool.ts';
import { CANNOT_RUN } from './launcher/script.ts';

/** Starts one program, shut in: a bare environment, limits, and a whole process group that dies together. */

/** What shuts one command in. */
interface Confinement {
  /** Of the process, by name of setrlimit(2): what `ulimit` is told. */
  readonly limits?: readonly string[];
  /** The programs and their arguments that are put in front of it. */
  readonly words?: readonly string[];
  /** Files that these read, by the number of a descriptor. */
  readonly opened?: Readonly<Record<number, string>>;
  /** Whether all that the command starts ends with it, without further ado. */
  readonly endsDescendants?: boolean;
}
export type Confine = (command: Command) => Confinement;

export interface LaunchDeps extends EnvironmentOptions {
  readonly launchers: Launchers;
  readonly confine?: Confine;
}

export interface Launched extends Omit<LaunchedProcess, 'exit' | 'kill'> {
  readonly ended: Promise<Ended>;
  /** Kills it, with all that it has started. The first reason counts. */
  stop(why: FailureReason): void;
}

/** How a command ended. */
export interface Ended {
  readonly exit: Exit;
  /** Why the service ended it, where it did. */
  readonly stopped?: FailureReason | undefined;
}

/** A pipe to write to. */
export interface Piped {
  /** What is printed in the command's name when the pipe is open at its other end: what is written before may be lost. */
  readonly hello: string;
}

/**
 * @param piped to write to it, instead of the command's own input
 * @throws CommandFailed when this machine has no process, or no file, left for it
 */
export async function launch(deps: LaunchDeps, command: Command, piped?: Piped): Promise<Launched> {
  const { words = [], ...confinement } = deps.confine?.(command) ?? {};
  const [file = command.file, ...args] = [...words, command.file, ...command.args];
  const options = {
    ...confinement,
    cwd: command.cwd,
    env: environment(deps, command),
    stdin: piped ? 'pipe' : (command.stdin ?? '/dev/null'),
    requires: [command.file],
    ...piped,
  };
  const { exit, kill, ...launched } = await deps.launchers.spawn(file, args, options).catch((cause) => {
    throw new CommandError('unrunnable', `${command.file} could not be started`, { cause });
  });
  let stopped: FailureReason | undefined;
  return {
    ...launched,
    ended: exit.then((ended) => ({ exit: ended, stopped })),
    stop(why) {
      stopped ??= why;
      kill();
    },
  };
}

/**
 * Stops what takes too long, or is not wanted any more.
 *
 * @returns what calls that off
 */
export function keepTime({ timeoutMs, signal }: Command, stop: (why: FailureReason) => void): () => void {
  const timer = setTimeout(stop, timeoutMs, 'timeout');
  const cancel = (): void => stop('cancelled');
  signal?.addEventListener('abort', cancel, { once: true });
  if (signal?.aborted) cancel();
  return () => {
    clearTimeout(timer);
    signal?.removeEventListener('abort', cancel);
  };
}

export function endedWell({ exit, stopped }: Ended): boolean {
  return exit.exitCode === 0 && !stopped;
}

/** Collects what a stream prints, the first {@link MAX_OUTPUT_BYTES} of it. */
export function keepStart(stream: NodeJS.ReadableStream): () => string {
  const chunks: Buffer[] = [];
  let kept = 0;
  stream.on('data', (chunk: Buffer) => {
    if (kept < MAX_OUTPUT_BYTES) chunks.push(chunk.subarray(0, MAX_OUTPUT_BYTES - kept));
    kept += chunk.length;
  });
  return () => Buffer.concat(chunks).toString('utf8');
}

/**
 * Exit code of abort(3) in a process that may not signal itself. Also of a dynamic linker that misses a library or a symbol, and
 * of a program that cannot start another; these say so on standard error.
 */
const ABORTED = 127;
const NOT_THERE = /loading shared librar|symbol lookup error|relocat|not found|no such file/i;

export function failureOf({ exit, stopped }: Ended, { file }: Command, stderr: string): CommandError {
  const { exitCode, signal, error: cause } = exit;
  const reason = stopped ?? reasonOf(exit, stderr);
  const message = `${file} ended with ${stopped ?? signal ?? exitCode ?? cause?.message}`;
  return new CommandError(reason, message, { stderr, exitCode, signal, cause });
}

function reasonOf({ exitCode, signal, error }: Exit, stderr: string): FailureReason {
  if (error || exitCode === CANNOT_RUN) return 'unrunnable';
  if (exitCode === ABORTED) return NOT_THERE.test(stderr) ? 'unrunnable' : 'signal';
  return signal ? 'signal' : 'exit';
}
