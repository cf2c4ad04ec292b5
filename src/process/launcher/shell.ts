/**
 * @module Starts the shell of a launcher. This is the only file that imports execa, and the only place where the server
 * starts a process directly.
 *
 * In separate PID and IPC namespaces the launcher is process 1: programs see no process of the machine, and no program
 * outlives the launcher, even if it moves to another session or process group.
 */

import { execa } from 'execa';

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
