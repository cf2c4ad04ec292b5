import { execa } from 'execa';

/**
 * @module Starts the shell of a launcher. This is the only file that imports execa, and the only place where the server
 * itself starts a process.
 */

/** A shell that reads commands from its standard input. */
export interface Shell {
  readonly pid: number | undefined;
  /** Sends lines of shell script. */
  write(script: string): void;
  /** Sends SIGKILL to the process group of the shell, also after the shell itself has ended. */
  kill(): void;
  /** Resolves when the shell has ended, with the error when it could not be started. */
  readonly ended: Promise<Error | undefined>;
}

/** The shell runs programs of the system, wherever the tools are found. */
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
  // SIGKILL is the first signal already.
  forceKillAfterDelay: false,
  // execa's handler runs when the server exits, but not after `kill -9`. setpriv --pdeathsig covers both.
  cleanup: false,
} as const;

/**
 * @param command starts the shell, and ends with it
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
  subprocess.stdin.on('error', () => {}); // `ended` reports the end of the shell
  return {
    pid: subprocess.pid,
    write: (script) => void subprocess.stdin.write(script),
    kill: () => void subprocess.kill(),
    ended: subprocess.then((result) => {
      subprocess.kill(); // only the shell may have been killed, and not its children
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

/** @returns the error of spawn(2), which has its code; nothing for a shell that ran, which ends by an exit code or a signal */
function startError({ exitCode, signal, cause, message }: ShellResult): Error | undefined {
  if (exitCode !== undefined || signal !== undefined) return undefined;
  return cause instanceof Error ? cause : new Error(message);
}
