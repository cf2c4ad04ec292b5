/**
 * @module Launchers, also called fork servers: small processes that start other processes for a large one.
 *
 * To start a program, Node.js forks, and fork(2) copies the page tables of the whole server. In a server of 110 to 170 MiB,
 * that takes 2 to 4 ms of CPU time, in which the event loop is blocked, and more in a larger one (`bench/README.md`). A shell
 * of 1 MiB forks in a tenth of that time. So execa starts a shell once, and the server writes a line of script to it for each
 * program (`shell.ts`). The shell prints a line when the program has ended. The program's standard streams are named pipes,
 * because the shell, not the server, is its parent.
 *
 * A launcher runs one program at a time, and kills the processes that it leaves behind before it runs the next one.
 * When a program must be killed, for example after its time limit, its launcher is killed with it. A pool keeps as many
 * launchers as programs run at once.
 */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { constants } from 'node:os';
import { join } from 'node:path';
import {
  type Isolation,
  type Line,
  launcherCommand,
  openPipes,
  type Pipes,
  parseLine,
  pipePaths,
  prepareScript,
  type Shell,
  type SpawnOptions,
  socketsOf,
  spawnScript,
  startShell,
} from './shell.ts';

/** A pool of launchers. It grows to the largest number of programs that ran at once. */
export interface Launchers {
  /**
   * Starts a program with an idle launcher, or with a new one.
   *
   * @throws {Error} with the code of errno(3) when the machine has no process or no file descriptor left
   */
  spawn(file: string, args: readonly string[], options: SpawnOptions): Promise<LaunchedProcess>;
  /** Kills all launchers and their programs, and removes their folders. */
  close(): Promise<void>;
}

/** A program that a launcher has started. */
export interface LaunchedProcess extends Pipes {
  /** Process ID of the launcher. The program is a descendant of it. */
  readonly pid: number | undefined;
  /** Resolves when the program has ended and both of its output pipes are closed. */
  readonly exit: Promise<Exit>;
  /** Kills the program and its descendants, and the launcher. */
  kill(): void;
}

/** How a program ended. Exactly one property is set. */
export interface Exit {
  readonly exitCode?: number;
  readonly signal?: NodeJS.Signals;
  /** Set when the launcher ended before the program. */
  readonly error?: LauncherError;
}

/**
 * Creates a pool of launchers.
 *
 * @param home returns the folder in which the launchers create their pipes
 */
export function createLaunchers(home: () => Promise<string>, isolation: Isolation = 'none'): Launchers {
  const idle: Launcher[] = [];
  /** Launchers whose folders are not removed yet. */
  const all = new Set<Launcher>();
  const starting = new Set<Promise<Launcher>>();
  let closed = false;

  async function acquire(): Promise<Launcher> {
    for (let launcher = idle.pop(); launcher; launcher = idle.pop()) {
      if (launcher.alive) return launcher;
      release(launcher);
    }
    if (closed) throw new Error('the launchers are closed');
    const started = start().finally(() => starting.delete(started));
    starting.add(started);
    return started;
  }

  async function start(): Promise<Launcher> {
    const launcher = await startLauncher(await home(), isolation);
    all.add(launcher);
    return launcher;
  }

  function release(launcher: Launcher): void {
    if (launcher.alive) {
      idle.push(launcher);
      return;
    }
    const forget = (): void => void all.delete(launcher);
    launcher.ended().then(forget, forget); // if its folder remains, the next start of the service removes it
  }

  async function spawn(
    file: string,
    args: readonly string[],
    options: SpawnOptions,
  ): Promise<LaunchedProcess> {
    const launcher = await acquire();
    try {
      const launched = launcher.spawn(file, args, options);
      const exit = launched.exit.then((ended): Exit => {
        release(launcher);
        return ended;
      });
      return { ...launched, exit };
    } catch (error) {
      const folderGone = (error as NodeJS.ErrnoException).code === 'ENOENT';
      if (folderGone) launcher.kill();
      // Keep the launcher when file descriptors run out: a new launcher would need more of them.
      release(launcher);
      // The folder was removed, for example by a cleanup of the temporary folder. A new launcher creates a new one.
      if (folderGone) return spawn(file, args, options);
      throw error;
    }
  }

  return {
    spawn,
    async close() {
      closed = true;
      await Promise.allSettled(starting);
      const last = [...all];
      all.clear();
      for (const launcher of last) if (launcher.alive) launcher.kill();
      // If a folder remains, closing the workspaces removes it, or the next start of the service.
      await Promise.allSettled(last.map((launcher) => launcher.ended()));
    },
  };
}

/** A running launcher. */
interface Launcher {
  /** False once the launcher has ended or was killed. */
  readonly alive: boolean;
  /**
   * Starts a program. The previous one must have ended.
   *
   * @throws {Error} with the code of open(2) when the server cannot open the pipes
   */
  spawn(file: string, args: readonly string[], options: SpawnOptions): LaunchedProcess;
  /** Kills the launcher and its program. */
  kill(): void;
  /** Resolves when the launcher has ended and its folder is removed. */
  ended(): Promise<void>;
}

/** A launcher could not start, or has ended. `code` is the name of the errno(3), if known. */
class LauncherError extends Error {
  override readonly name = 'LauncherError';
  readonly code: string | undefined;
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.code = (cause as NodeJS.ErrnoException | undefined)?.code;
  }
}

/** Time between the end of the launcher and the moment when the server closes its ends of the pipes, in ms. */
const PIPES_TIMEOUT_MS = 1_000;

/**
 * Starts a launcher.
 *
 * @param home the folder in which the launcher creates its own folder
 * @throws {LauncherError} if the shell does not start or cannot create the pipes
 */
async function startLauncher(home: string, isolation: Isolation): Promise<Launcher> {
  const folder = await mkdtemp(join(home, 'launcher-'));
  const launcher = createLauncher(folder, isolation);
  const error = await launcher.ready;
  if (!error) return launcher;
  launcher.kill();
  await launcher.ended().catch(() => {}); // the next start of the service removes the folder
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
  /** Process group of the program, if the program has its own. */
  let group: number | undefined;
  let sockets: readonly Socket[] = [];
  let resolveStatus: (status?: Status) => void = () => {};

  const shell: Shell = startShell(launcherCommand(isolation), (text) => {
    const line = parseLine(text);
    group = 'group' in line ? line.group : undefined;
    if ('status' in line) resolveStatus(line);
  });
  const killAll = (): void => {
    alive = false;
    shell.kill();
    if (group !== undefined) killGroup(group);
  };
  /** Closes the pipes in case the launcher died before it opened them. Otherwise they close when the program ends. */
  const closePipes = (): void =>
    void setTimeout(() => sockets.forEach((socket) => void socket.destroy()), PIPES_TIMEOUT_MS).unref();
  // Add this callback once, not for each program: a promise keeps its callbacks until it is settled.
  const ended = shell.ended.then((error) => {
    over = true;
    killAll();
    closePipes();
    resolveStatus();
    return error;
  });

  const sendScript = (script: string): Promise<Status | undefined> => {
    const { promise, resolve } = Promise.withResolvers<Status | undefined>();
    resolveStatus = resolve;
    if (over) resolve(undefined);
    else shell.write(script);
    return promise;
  };

  async function prepare(): Promise<LauncherError | undefined> {
    const status = await sendScript(prepareScript(paths));
    if (status?.status === 0) return undefined;
    if (status) return new LauncherError(`mkfifo fails in ${folder}`);
    const cause = (await ended) ?? LAUNCHER_EXITED;
    return new LauncherError(`/bin/sh does not start: ${cause.message}`, cause);
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
      const reported = sendScript(script);
      const closed = [pipes.stdout, pipes.stderr].map((socket) => once(socket, 'close').catch(() => {}));
      if (over) closePipes();
      let exited = false;
      const exit = Promise.all([reported, ...closed]).then(async ([status]) => {
        exited = true; // from now on, kill() must not kill the launcher: it can already run another program
        pipes.stdin?.destroy();
        sockets = []; // releases the buffered data
        if (status?.leftProcesses && isolation === 'namespace') {
          alive = false;
          await ended; // all processes of the namespace end with the launcher
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

/** Cause when the shell exits, which it does when fork(2) fails. */
const LAUNCHER_EXITED = Object.assign(new Error('the shell of the launcher exited'), { code: 'EAGAIN' });

/** Converts a status of the shell. Shells and bubblewrap report a signal as 128 plus its number. */
function toExit(status: Status | undefined): Exit {
  if (!status) return { error: new LauncherError('the launcher exited', LAUNCHER_EXITED) };
  const signal = SIGNALS.get(status.status - 128);
  return signal ? { signal } : { exitCode: status.status };
}

const SIGNALS = new Map(
  Object.entries(constants.signals)
    .reverse() // if a number has two names, keep the first one
    .map(([name, number]) => [number, name as NodeJS.Signals]),
);

/** Kills the process group of the program. execa kills only the group of the shell. */
function killGroup(group: number): void {
  try {
    process.kill(-group, 'SIGKILL');
  } catch {
    // The process group has already ended.
  }
}
