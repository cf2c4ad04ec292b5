import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { constants } from 'node:os';
import { join } from 'node:path';
import { type Isolation, launcherCommand } from './isolation.ts';
import { openPipes, type Pipes, pipePaths, socketsOf } from './pipes.ts';
import { type Line, parseLine, prepareScript, type SpawnOptions, spawnScript } from './script.ts';
import { type Shell, startShell } from './start-shell.ts';

/**
 * @module A launcher, also called a fork server: a small process that starts other processes for a large one.
 *
 * To start a program, Node.js forks, and fork(2) copies the page tables of the whole server. That blocks the event loop
 * for 2 to 6 ms in a server of 110 to 170 MiB, and grows with it (`bench/README.md`). A shell of 1 MiB forks in a tenth of
 * that. So execa starts a shell once (`start-shell.ts`), the server writes a line of script to it for each program
 * (`script.ts`), and the shell prints a line when the program has ended. The program's standard streams are named pipes
 * (`pipes.ts`), since the shell, and not the server, is its parent.
 *
 * A launcher runs one program at a time. It ends what a program leaves behind before it runs the next. Whatever cannot be
 * trusted any more, such as a program over its time limit, is killed together with its launcher. `launchers.ts` keeps
 * as many launchers as programs run at once.
 */

export interface Launcher {
  /** False once the launcher has ended or was killed. */
  readonly alive: boolean;
  /**
   * Starts a program. The previous one must have ended.
   *
   * @throws Error with the code of open(2) when the server cannot open the pipes
   */
  spawn(file: string, args: readonly string[], options: SpawnOptions): LaunchedProcess;
  /** Kills the launcher and its program. */
  kill(): void;
  /** Resolves when the launcher has ended and its folder is removed. */
  ended(): Promise<void>;
}

export interface LaunchedProcess extends Pipes {
  /** The launcher. The program is a descendant of it. */
  readonly pid: number | undefined;
  /** Resolves when the program has ended and both of its output pipes are closed. */
  readonly exit: Promise<Exit>;
  /** Kills the program and all that it has started. */
  kill(): void;
}

/** How a program ended. Exactly one of the three is there. */
export interface Exit {
  readonly exitCode?: number;
  readonly signal?: NodeJS.Signals;
  /** The launcher has ended before the program. */
  readonly error?: LauncherError;
}

/** A launcher could not start, or has ended. `code` is that of errno(3), where there is one. */
class LauncherError extends Error {
  override readonly name = 'LauncherError';
  readonly code: string | undefined;
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.code = (cause as NodeJS.ErrnoException | undefined)?.code;
  }
}

/** Time for a killed program to disappear before the server closes its own ends of the pipes, in ms. */
const PIPES_TIMEOUT_MS = 1_000;

/**
 * @param home the folder that the launcher's own folder is made in
 * @throws LauncherError when the shell does not start or cannot make its pipes
 */
export async function startLauncher(home: string, isolation: Isolation): Promise<Launcher> {
  const folder = await mkdtemp(join(home, 'launcher-'));
  const launcher = createLauncher(folder, isolation);
  const error = await launcher.ready;
  if (!error) return launcher;
  launcher.kill();
  await launcher.ended().catch(() => {}); // a folder that cannot be removed is swept at the next start
  throw error;
}

type Status = Extract<Line, { status: number }>;

function createLauncher(
  folder: string,
  isolation: Isolation,
): Launcher & { readonly ready: Promise<LauncherError | undefined> } {
  const paths = pipePaths(folder);
  let alive = true;
  let over = false;
  /** The process group of the program, where it has one of its own. */
  let group: number | undefined;
  let sockets: readonly Socket[] = [];
  let answer: (status?: Status) => void = () => {};

  const shell: Shell = startShell(launcherCommand(isolation), (text) => {
    const line = parseLine(text);
    group = 'group' in line ? line.group : undefined;
    if ('status' in line) answer(line);
  });
  const killAll = (): void => {
    alive = false;
    shell.kill();
    if (group !== undefined) killGroup(group);
  };
  /** A program that dies closes its ends of the pipes. A launcher may have died before it opened them. */
  const closePipes = (): void =>
    void setTimeout(() => sockets.forEach((socket) => void socket.destroy()), PIPES_TIMEOUT_MS).unref();
  // Registered once, and not for each program: a promise keeps its callbacks until it is settled.
  const ended = shell.ended.then((error) => {
    over = true;
    killAll();
    closePipes();
    answer();
    return error;
  });

  const ask = (script: string): Promise<Status | undefined> => {
    const { promise, resolve } = Promise.withResolvers<Status | undefined>();
    answer = resolve;
    if (over) resolve(undefined);
    else shell.write(script);
    return promise;
  };

  async function prepare(): Promise<LauncherError | undefined> {
    const status = await ask(prepareScript(paths));
    if (status?.status === 0) return undefined;
    const cause = status ? undefined : ((await ended) ?? NO_PROCESS);
    return new LauncherError(`no launcher: no /bin/sh, or mkfifo fails in ${folder}`, cause);
  }

  return {
    ready: prepare(),
    get alive() {
      return alive;
    },
    spawn(file, args, options) {
      const cleanup = isolation === 'namespace' ? 'namespace' : options.endsDescendants ? 'none' : 'group';
      const script = spawnScript(file, args, options, paths, cleanup);
      const pipes = openPipes(paths, options.stdin === 'pipe');
      sockets = socketsOf(pipes);
      const answered = ask(script);
      const closed = [pipes.stdout, pipes.stderr].map((socket) => once(socket, 'close').catch(() => {}));
      if (over) closePipes();
      let exited = false;
      const exit = Promise.all([answered, ...closed]).then(async ([status]) => {
        exited = true; // the launcher may start another program now
        pipes.stdin?.destroy();
        sockets = []; // releases all that was read from them
        if (status?.leftProcesses && isolation === 'namespace') {
          alive = false;
          await ended; // which is also the end of all that was left
        }
        return toExit(status);
      });
      return { ...pipes, pid: shell.pid, exit, kill: () => void (exited || killAll()) };
    },
    kill: killAll,
    async ended() {
      await ended;
      await rm(folder, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}

/** A shell that cannot fork(2) ends. */
const NO_PROCESS = Object.assign(new Error('the shell of the launcher has ended'), { code: 'EAGAIN' });

/** A shell, and bubblewrap, report a signal as 128 and its number. */
function toExit(status: Status | undefined): Exit {
  if (!status) return { error: new LauncherError('the launcher has ended', NO_PROCESS) };
  const signal = SIGNALS.get(status.status - 128);
  return signal ? { signal } : { exitCode: status.status };
}

const SIGNALS = new Map(
  Object.entries(constants.signals)
    .reverse() // of two names for one number, the first one stays
    .map(([name, number]) => [number, name as NodeJS.Signals]),
);

/** execa kills the group of the shell. The program is in one of its own, which execa does not know. */
function killGroup(group: number): void {
  try {
    process.kill(-group, 'SIGKILL');
  } catch {
    // The group has ended.
  }
}
