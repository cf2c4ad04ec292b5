/**
 * @module The shell script that a launcher runs. Every word that is not a constant of this file is quoted, so that the
 * shell never interprets it. No word comes from a client.
 */

import { shellQuote } from '../../text.ts';
import type { PipePaths } from './pipes.ts';

/** Options for starting a program. */
export interface SpawnOptions {
  /** The working directory. */
  readonly cwd: string;
  /** The complete environment. The program inherits no variables. */
  readonly env: Readonly<Record<string, string>>;
  /** Absolute path of the file that the program reads on standard input, or `pipe` to write to the program. */
  readonly stdin: string;
  /** Limits of setrlimit(2), each as the arguments of `ulimit`. */
  readonly limits?: readonly string[];
  /** Paths of files that are open for reading in the program, by file descriptor. */
  readonly fds?: Readonly<Record<number, string>>;
  /** Programs that the program starts. The launcher checks that they are executable. */
  readonly requires?: readonly string[];
  /** Marker that the child prints to stdout once all pipes are open. Data written earlier may be lost. */
  readonly readyMarker?: string;
  /** Whether all descendants of the program end with it, as under bubblewrap. */
  readonly endsDescendants?: boolean;
}

/** Exit status of a program that cannot be executed, as in POSIX shells. */
export const EXIT_CANNOT_EXEC = 126;

/** How the launcher finds and kills the processes that a program leaves behind. */
export type Cleanup = 'none' | 'group' | 'namespace';

/** Unsets the variables that the shell sets. */
const UNSET_SHELL_VARIABLES = 'unset PWD OLDPWD SHLVL _';

/**
 * Quotes a word for the shell.
 *
 * @throws {Error} for a word with a NUL, which cannot be an argument of a program
 */
export function quote(word: string): string {
  if (word.includes('\0')) throw new Error('an argument must not contain NUL');
  return shellQuote(word);
}

/** Returns the script that creates the pipes of a launcher. The shell prints a line for {@link parseLine}. */
export function prepareScript(paths: PipePaths): string {
  const pipes = Object.values(paths).map(quote).join(' ');
  return `setsid=$(command -v setsid); mkfifo -m 600 ${pipes}; echo $? 1\n`;
}

/** Returns the script that runs a program. The shell prints lines for {@link parseLine}. */
export function spawnScript(
  file: string,
  args: readonly string[],
  options: SpawnOptions,
  paths: PipePaths,
  cleanup: Cleanup,
): string {
  const from = options.stdin === 'pipe' ? paths.stdin : options.stdin;
  const body = programScript(file, args, options, cleanup === 'group' ? '$setsid ' : '');
  const program = `(${body}) >${quote(paths.stdout)} 2>${quote(paths.stderr)} <${quote(from)}`;
  return `${CLEANUP[cleanup](program)}\n`;
}

/**
 * Scripts that run a program, kill the processes that it leaves behind, and print the exit statuses of the program and of
 * `kill`. The latter is 0 when a process was left. In a PID namespace, `-1` means every process except the launcher. The
 * launcher then exits: when process 1 of a namespace has ended, so have all others.
 */
const CLEANUP: Readonly<Record<Cleanup, (program: string) => string>> = {
  none: (program) => `${program}; echo $? 1`,
  group: (program) => `${program} & echo $!; wait $!; status=$?; kill -9 -$!; echo $status $?`,
  namespace: (program) =>
    `${program}; status=$?; kill -9 -1; killed=$?; echo $status $killed; [ $killed = 1 ] || exit 0`,
};

/** Returns the script that prepares the process and executes the program in it. It runs in a subshell. */
export function programScript(
  file: string,
  args: readonly string[],
  options: SpawnOptions,
  prefix: string,
): string {
  const { cwd, env, limits = [], fds = {}, requires = [], readyMarker } = options;
  const variables = Object.entries(env).map(([name, value]) => `${name}=${quote(value)}`);
  const prepare = [
    ...[...new Set([file, ...requires])].map((program) => `[ -x ${quote(program)} ]`),
    ...Object.values(fds).map((path) => `[ -r ${quote(path)} ]`),
    `cd ${quote(cwd)}`,
    ...(variables.length > 0 ? [`export ${variables.join(' ')}`] : []),
    ...limits.map((limit) => `ulimit ${limit}`),
    ...(readyMarker ? [`printf %s ${quote(readyMarker)}`] : []),
  ].join(' && ');
  const words = [file, ...args].map(quote).join(' ');
  const files = Object.entries(fds).map(([number, path]) => ` ${number}<${quote(path)}`);
  return `{ ${prepare}; } || exit ${EXIT_CANNOT_EXEC}; ${UNSET_SHELL_VARIABLES}; exec ${prefix}${words}${files.join('')}`;
}

/** Parsed line of the shell: the process group of the program that it started, or the exit status of the program. */
export type Line = { readonly group: number } | { readonly status: number; readonly leftProcesses: boolean };

/** Parses a line that the shell prints. */
export function parseLine(line: string): Line {
  const [first, killed] = line.split(' ');
  return killed === undefined
    ? { group: Number(first) }
    : { status: Number(first), leftProcesses: killed === '0' };
}
