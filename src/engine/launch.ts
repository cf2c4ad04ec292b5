import type { Socket } from 'node:net';
import { constants } from 'node:os';
import { type Command, CommandFailed, KEPT_BYTES, type Reason } from './command.ts';
import { environment, type Surroundings } from './environment.ts';
import { NO_PROCESS, quote } from './shell.ts';
import type { Shells } from './shells.ts';

/** Starts one program, shut in: a bare environment, limits, and a whole process group that dies together. */

/** What shuts one command in. */
export interface Confinement {
  /** Of the process, by name of setrlimit(2): what `ulimit` is told. */
  readonly limits?: readonly string[];
  /** The programs and their arguments that are put in front of it. */
  readonly words?: readonly string[];
  /** Files that these read, by the number of a descriptor. */
  readonly opened?: Readonly<Record<number, string>>;
}
export type Confine = (command: Command) => Confinement;

export interface LaunchDeps extends Surroundings {
  readonly shells: Shells;
  readonly confine?: Confine;
}

export interface Launched {
  /** The process that has it as its child. */
  readonly pid: number | undefined;
  /** There when it was {@link Piped}. */
  readonly stdin: Socket | undefined;
  readonly stdout: Socket;
  readonly stderr: Socket;
  readonly ended: Promise<Ended>;
  /** Ends it at once, with all that it has started. */
  stop(why: Reason): void;
}

/** How a command ended. */
export interface Ended {
  /** Nothing when it was ended from outside. */
  readonly status: number | undefined;
  /** When somebody of ours ended it. */
  readonly stopped?: Reason | undefined;
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
  const { shell, ...started } = await deps.shells
    .start(textOf(deps, command, piped?.hello), piped ? 'pipe' : (command.stdin ?? '/dev/null'))
    .catch((error) => {
      throw new CommandFailed('unrunnable', `${command.file} could not be started`, '', error.cause ?? error);
    });
  let stopped: Reason | undefined;
  let over = false;
  const ended = started.status.then((status) => {
    over = true;
    deps.shells.giveBack(shell);
    return { status, stopped };
  });
  const stop = (why: Reason): void => {
    if (over) return;
    stopped ??= why;
    shell.kill();
  };
  return { ...started, pid: shell.pid, ended, stop };
}

/**
 * Stops what takes too long, or is not wanted any more.
 *
 * @returns what calls that off
 */
export function keepTime({ timeoutMs, signal }: Command, stop: (why: Reason) => void): () => void {
  const timer = setTimeout(stop, timeoutMs, 'timeout');
  const cancel = (): void => stop('cancelled');
  signal?.addEventListener('abort', cancel, { once: true });
  if (signal?.aborted) cancel();
  return () => {
    clearTimeout(timer);
    signal?.removeEventListener('abort', cancel);
  };
}

/** What shells set by themselves is nothing to the tools. */
const OF_SHELLS = 'unset PWD OLDPWD SHLVL _';

function textOf(deps: LaunchDeps, command: Command, hello = ''): string {
  const { limits = [], words = [], opened = {} } = deps.confine?.(command) ?? {};
  const variables = Object.entries(environment(deps, command)).map(
    ([name, value]) => `${name}=${quote(value)}`,
  );
  const prepare = [
    ...[...words.slice(0, 1), command.file].map((program) => `[ -x ${quote(program)} ]`),
    ...Object.values(opened).map((path) => `[ -r ${quote(path)} ]`),
    `cd ${quote(command.cwd)}`,
    `export ${variables.join(' ')}`,
    ...limits.map((limit) => `ulimit ${limit}`),
    ...(hello ? [`printf %s ${quote(hello)}`] : []),
  ].join(' && ');
  const program = [...words, command.file, ...command.args].map(quote).join(' ');
  const files = Object.entries(opened).map(([number, path]) => `${number}<${quote(path)}`);
  return `{ ${prepare}; } || exit ${CANNOT_RUN}; ${OF_SHELLS}; exec ${[program, ...files].join(' ')}`;
}

export function endedWell({ status, stopped }: Ended): boolean {
  return status === 0 && !stopped;
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

/** What shells say when a program cannot be started; ours, also when it is not there. */
const CANNOT_RUN = 126;
/**
 * What abort(3) may end with where it can signal nobody. But also the loader that misses a library or a part of it, and
 * whoever is to start a program and cannot; these say why.
 */
const ABORTED = 127;
const NOT_THERE = /loading shared librar|symbol lookup error|relocat|not found|no such file/i;

export function failureOf({ status, stopped }: Ended, { file }: Command, stderr: string): CommandFailed {
  const end = status === undefined ? undefined : (signalOf(status) ?? status);
  const reason = stopped ?? reasonOf(end, stderr);
  const cause = reason === 'unrunnable' && end === undefined ? NO_PROCESS : undefined;
  return new CommandFailed(reason, `${file} ended with ${stopped ?? end}`, stderr, cause, end);
}

function reasonOf(end: number | string | undefined, stderr: string): Reason {
  if (end === undefined || end === CANNOT_RUN) return 'unrunnable';
  if (end === ABORTED) return NOT_THERE.test(stderr) ? 'unrunnable' : 'signal';
  return typeof end === 'string' ? 'signal' : 'exit';
}

/** Whoever waits for a program that was killed, a shell or bubblewrap, has 128 and the number of the signal. */
function signalOf(status: number): string | undefined {
  return Object.entries(constants.signals).find(([, number]) => number === status - 128)?.[0];
}
