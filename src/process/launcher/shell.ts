/**
 * @module The shell of a launcher: its process, its script, and the named pipes that connect its programs with the server.
 *
 * This is the only file that imports execa, and the only place where the server starts a process directly. In separate
 * PID and IPC namespaces the shell is process 1: programs see no process of the machine, and no program outlives the
 * launcher, even if it moves to another session or process group.
 *
 * Every word of the script that is not a constant of this file is quoted, so that the shell never interprets it. No word
 * comes from a client.
 */

import { constants, openSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { execa } from 'execa';
import { shellQuote } from '../../text.ts';

/** `namespace` starts the launcher in new PID and IPC namespaces; see pid_namespaces(7). */
export type Isolation = 'none' | 'namespace';

/** Makes the kernel kill the launcher when the server ends, even after `kill -9`; see PR_SET_PDEATHSIG(2const). */
const DIE_WITH_SERVER = 'setpriv --pdeathsig KILL';

/** Root needs no user namespace, and cannot create one in a chroot. */
const USER_NAMESPACE = process.getuid?.() === 0 ? '' : '--user --map-current-user';

const COMMANDS: Readonly<Record<Isolation, string>> = {
  none: `${DIE_WITH_SERVER} true && exec ${DIE_WITH_SERVER} /bin/sh; exec /bin/sh`,
  namespace: `exec ${DIE_WITH_SERVER} unshare ${USER_NAMESPACE} --pid --ipc --fork --kill-child /bin/sh`,
};

/** Returns the command that starts the shell of a launcher: the program and its arguments. */
export function launcherCommand(isolation: Isolation): readonly string[] {
  return ['/bin/sh', '-c', COMMANDS[isolation]];
}

/** A shell that reads commands from its standard input. */
export interface Shell {
  readonly pid: number | undefined;
  /** Sends lines of shell script. */
  write(script: string): void;
  /** Sends SIGKILL to the process group of the shell, even after the shell has ended. */
  kill(): void;
  /** Resolves when the shell has ended: to the error of spawn(2) if the shell did not start. */
  readonly ended: Promise<Error | undefined>;
}

/** `PATH` of the shell. It does not depend on the `PATH` that the tools are found in. */
const SYSTEM_PATH = '/usr/local/bin:/usr/bin:/bin';

const OPTIONS = {
  cwd: '/',
  env: { PATH: SYSTEM_PATH },
  extendEnv: false,
  stdin: 'pipe',
  stdout: 'pipe',
  stderr: 'ignore',
  buffer: false,
  reject: false,
  killDescendants: true,
  killSignal: 'SIGKILL',
  // The first signal is already SIGKILL.
  forceKillAfterDelay: false,
  // The exit handler of execa does not run after `kill -9`. `setpriv --pdeathsig` covers every end of the server.
  cleanup: false,
} as const;

/**
 * Starts a shell.
 *
 * @param command the command that starts the shell, and ends with it
 * @param onLine receives each line that the shell prints
 */
export function startShell(command: readonly string[], onLine: (line: string) => void): Shell {
  const [file = '/bin/sh', ...args] = command;
  const subprocess = execa(file, args, OPTIONS);
  let unfinished = '';
  subprocess.stdout.on('data', (chunk: Buffer) => {
    const lines = (unfinished + chunk.toString('latin1')).split('\n');
    unfinished = lines.pop() ?? '';
    for (const line of lines) onLine(line);
  });
  subprocess.stdin.on('error', () => {}); // `ended` reports that the shell has ended
  return {
    pid: subprocess.pid,
    write: (script) => void subprocess.stdin.write(script),
    kill: () => void subprocess.kill(),
    ended: subprocess.then((result) => {
      subprocess.kill(); // kills children that survived the shell
      return startError(result);
    }),
  };
}

interface ShellResult {
  readonly exitCode?: number | undefined;
  readonly signal?: string | undefined;
  readonly cause?: unknown;
  readonly message?: string | undefined;
}

/** Returns the error of spawn(2), with its code, or `undefined` for a shell that started. */
function startError({ exitCode, signal, cause, message }: ShellResult): Error | undefined {
  if (exitCode !== undefined || signal !== undefined) return undefined;
  return cause instanceof Error ? cause : new Error(message);
}

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

/**
 * Paths of the named pipes of a launcher. The shell opens one end of each, the server the other. execa cannot create pipes
 * for a program that the shell starts.
 */
export interface PipePaths {
  readonly stdin: string;
  readonly stdout: string;
  readonly stderr: string;
}

/** The server's ends of the pipes. */
export interface Pipes {
  /** Set only when the server writes to the program. */
  readonly stdin: Socket | undefined;
  readonly stdout: Socket;
  readonly stderr: Socket;
}

/** Returns the paths of the pipes in the folder of a launcher. */
export const pipePaths = (folder: string): PipePaths => ({
  stdin: join(folder, 'in'),
  stdout: join(folder, 'out'),
  stderr: join(folder, 'err'),
});

/**
 * Opens the server's ends for one program, so that no data of a program reaches the next one.
 *
 * @throws {Error} with the code of open(2)
 */
export function openPipes(paths: PipePaths, writesStdin: boolean): Pipes {
  const { O_RDONLY, O_RDWR, O_NONBLOCK } = constants;
  const opened: Socket[] = [];
  const open = (path: string, flags: number, direction: 'readable' | 'writable'): Socket => {
    const directions = { readable: false, writable: false, [direction]: true };
    const socket = new Socket({ fd: openSync(path, flags | O_NONBLOCK), ...directions });
    opened.push(socket);
    return socket;
  };
  try {
    return {
      stdout: open(paths.stdout, O_RDONLY, 'readable'),
      stderr: open(paths.stderr, O_RDONLY, 'readable'),
      // O_RDWR, because the program has not opened its end yet. The program reads EOF when this socket is closed.
      stdin: writesStdin ? open(paths.stdin, O_RDWR, 'writable') : undefined,
    };
  } catch (error) {
    for (const socket of opened) socket.destroy();
    throw error;
  }
}

/** Returns the open sockets of the pipes. */
export const socketsOf = ({ stdin, stdout, stderr }: Pipes): Socket[] =>
  stdin ? [stdin, stdout, stderr] : [stdout, stderr];
