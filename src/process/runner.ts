/**
 * @module Runs each command in a new process in a sandbox: with its own environment, with limits of time and other
 * resources, and in a process group that is killed as a whole.
 */

import {
  type Command,
  CommandError,
  type FailureReason,
  MAX_OUTPUT_BYTES,
  type RunCommand,
} from './command.ts';
import { type EnvironmentOptions, environment } from './environment.ts';
import type { Exit, LaunchedProcess } from './launcher/launcher.ts';
import type { Launchers } from './launcher/pool.ts';
import { EXIT_CANNOT_EXEC } from './launcher/script.ts';

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
export interface ChildHandle extends Omit<LaunchedProcess, 'exit' | 'kill'> {
  /** Resolves when the command has ended and its output is closed. */
  readonly ended: Promise<ExitResult>;
  /** Kills the command and its descendants. Only the reason of the first call is reported. */
  stop(reason: FailureReason): void;
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
  const { exit, kill, ...launched } = await deps.launchers.spawn(file, args, options).catch((cause) => {
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
 * Collects the first {@link MAX_OUTPUT_BYTES} of a stream.
 *
 * @returns a function that returns the text collected so far
 */
function collectOutput(stream: NodeJS.ReadableStream): () => string {
  const chunks: Buffer[] = [];
  let kept = 0;
  stream.on('data', (chunk: Buffer) => {
    if (kept < MAX_OUTPUT_BYTES) chunks.push(chunk.subarray(0, MAX_OUTPUT_BYTES - kept));
    kept += chunk.length;
  });
  return () => Buffer.concat(chunks).toString('utf8');
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
