import type { PipePaths } from './pipes.ts';

/**
 * @module The shell script that a launcher runs. Every word that is not a constant of this file is quoted, so that the
 * shell never interprets one. No word of a client is ever among them.
 */

/** How a program is started. */
export interface SpawnOptions {
  /** The working directory. */
  readonly cwd: string;
  /** The whole environment. The program inherits nothing. */
  readonly env: Readonly<Record<string, string>>;
  /** Absolute path of the file that the program reads on standard input, or `pipe` to write to the program. */
  readonly stdin: string;
  /** Limits of setrlimit(2), each as the arguments of `ulimit`. */
  readonly limits?: readonly string[];
  /** Files that the program finds open, by the number of the descriptor. */
  readonly opened?: Readonly<Record<number, string>>;
  /** Programs that the program itself starts. The launcher checks that they can be run. */
  readonly requires?: readonly string[];
  /** Printed in the program's name once all pipes are open. What is written before may be lost. */
  readonly hello?: string;
  /** Whether all processes of the program end with it, as those of bubblewrap do. */
  readonly endsDescendants?: boolean;
}

/** Exit code of a program that could not be started, as POSIX shells have it. */
export const CANNOT_RUN = 126;

/** How the launcher finds and ends what a program leaves behind. */
export type Cleanup = 'none' | 'group' | 'namespace';

/** Variables that the shell sets by itself. */
const UNSET_SHELL_VARIABLES = 'unset PWD OLDPWD SHLVL _';

/** @throws Error for a word with a NUL, which no program can be given */
export function quote(word: string): string {
  if (word.includes('\0')) throw new Error('an argument that no program can be given');
  return `'${word.replaceAll("'", "'\\''")}'`; // between single quotes nothing has a meaning in a shell
}

/** Makes the pipes of a launcher. The shell answers with a line of {@link parseLine}. */
export function prepareScript(paths: PipePaths): string {
  const pipes = Object.values(paths).map(quote).join(' ');
  return `setsid=$(command -v setsid); mkfifo -m 600 ${pipes}; echo $? 1\n`;
}

/** Runs a program. The shell answers with lines of {@link parseLine}. */
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
 * Runs a program, kills what it has left, and prints how that ended: `kill` succeeds, which is 0, when a process was left. In
 * a namespace of its own -1 is every process but the launcher, which then ends: when process 1 of a namespace has ended, so
 * have all others.
 */
const CLEANUP: Readonly<Record<Cleanup, (program: string) => string>> = {
  none: (program) => `${program}; echo $? 1`,
  group: (program) => `${program} & echo $!; wait $!; status=$?; kill -9 -$!; echo $status $?`,
  namespace: (program) =>
    `${program}; status=$?; kill -9 -1; killed=$?; echo $status $killed; [ $killed = 1 ] || exit 0`,
};

/** The script that becomes a program. It starts in a shell of its own. */
export function programScript(
  file: string,
  args: readonly string[],
  options: SpawnOptions,
  prefix: string,
): string {
  const { cwd, env, limits = [], opened = {}, requires = [], hello } = options;
  const variables = Object.entries(env).map(([name, value]) => `${name}=${quote(value)}`);
  const prepare = [
    ...[...new Set([file, ...requires])].map((program) => `[ -x ${quote(program)} ]`),
    ...Object.values(opened).map((path) => `[ -r ${quote(path)} ]`),
    `cd ${quote(cwd)}`,
    ...(variables.length > 0 ? [`export ${variables.join(' ')}`] : []),
    ...limits.map((limit) => `ulimit ${limit}`),
    ...(hello ? [`printf %s ${quote(hello)}`] : []),
  ].join(' && ');
  const words = [file, ...args].map(quote).join(' ');
  const files = Object.entries(opened).map(([number, path]) => ` ${number}<${quote(path)}`);
  return `{ ${prepare}; } || exit ${CANNOT_RUN}; ${UNSET_SHELL_VARIABLES}; exec ${prefix}${words}${files.join('')}`;
}

/** What a line of the shell says: the process group of the program that it has started, or how the program ended. */
export type Line = { readonly group: number } | { readonly status: number; readonly leftProcesses: boolean };

export function parseLine(line: string): Line {
  const [first, killed] = line.split(' ');
  return killed === undefined
    ? { group: Number(first) }
    : { status: Number(first), leftProcesses: killed === '0' };
}
