import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants, openSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { Socket } from 'node:net';
import { join } from 'node:path';

/**
 * A shell that waits, and starts one program at a time. Node starts a program by fork(2), which copies the page
 * tables of the whole server: 7 ms for one of 165 MiB, where a shell of one MiB takes 1 ms. What a program reads and
 * prints goes through pipes with names, which are opened anew for each: nothing of one program is left for the next.
 */

export interface Shell {
  /** False once it has ended, or has been told to. */
  readonly alive: boolean;
  /** The shell; the program is its child. */
  readonly pid: number | undefined;
  /**
   * Starts a program. The last one must have ended.
   *
   * @param text what starts it, in the words of a shell, and in a shell of its own
   * @param stdin the path of what it reads, or `pipe` to write to it
   */
  start(text: string, stdin: string): Started;
  /** Ends the shell and all that it has started, at once. */
  kill(): void;
  /** Resolves when it has ended and its folder is gone. */
  gone(): Promise<void>;
}

export interface Started {
  readonly stdin: Socket | undefined;
  readonly stdout: Socket;
  readonly stderr: Socket;
  /**
   * The status as shells have it, 128 and its number for a signal, once the program has ended and nobody is left who
   * could print something in its name; nothing when the shell has ended instead.
   */
  readonly status: Promise<number | undefined>;
}

/** It needs programs of the system, whatever the tools are looked for in. */
const OWN_PATH = '/usr/local/bin:/usr/bin:/bin';
/** It ends with the server, however that ends, where setpriv(1) can do that. */
const BEGIN =
  'setpriv --pdeathsig KILL true 2>/dev/null && exec setpriv --pdeathsig KILL /bin/sh; exec /bin/sh';

/** How long a program that was killed may take until it is gone, in milliseconds. */
const MOST_DYING_MS = 1_000;

/** @throws Error when there is no shell to be had, with its cause, or no pipes in `home` */
export async function startShell(home: string): Promise<Shell> {
  const folder = await mkdtemp(join(home, 'shell-'));
  const child = spawn('/bin/sh', ['-c', BEGIN], { cwd: '/', env: { PATH: OWN_PATH }, detached: true });
  let trouble: unknown;
  const ended = once(child, 'close').catch((error) => {
    trouble = error; // what never started has ended, too
  });
  const path = { in: join(folder, 'in'), out: join(folder, 'out'), err: join(folder, 'err') };
  const say = hear(child, ended);
  let alive = true;
  let pipes: readonly Socket[] = [];
  /** The last of a program that dies closes them. But a shell that has ended may not have got as far as to open them. */
  const dropPipes = (): void =>
    void setTimeout(() => pipes.forEach((pipe) => void pipe.destroy()), MOST_DYING_MS).unref();
  child.once('exit', () => endGroup(child)); // somebody else may have ended the shell alone
  ended.then(() => {
    alive = false;
    dropPipes();
  });

  const shell: Shell = {
    get alive() {
      return alive;
    },
    pid: child.pid,
    start(text, stdin) {
      pipes = openPipes(path, stdin === 'pipe');
      const [stdout, stderr, writes] = pipes as readonly [Socket, Socket, Socket?];
      const from = writes ? path.in : stdin;
      const answer = say(`(${text}) >${quote(path.out)} 2>${quote(path.err)} <${quote(from)}`);
      const closed = [stdout, stderr].map((stream) => once(stream, 'close').catch(() => {}));
      if (!alive) dropPipes();
      const status = Promise.all([answer, ...closed]).then(([code]) => {
        writes?.destroy();
        pipes = []; // with all that has come through them
        return code;
      });
      return { stdin: writes, stdout, stderr, status };
    },
    kill() {
      if (!alive) return;
      alive = false;
      endGroup(child);
    },
    async gone() {
      await ended;
      await rm(folder, { recursive: true, force: true, maxRetries: 3 });
    },
  };
  const made = await say(`mkfifo -m 600 ${Object.values(path).map(quote).join(' ')}`);
  if (made === 0) return shell;
  shell.kill();
  await shell.gone();
  const cause = trouble ?? (made === undefined ? NO_PROCESS : undefined);
  throw new Error(`no /bin/sh, or no pipes made by mkfifo in ${home}`, { cause });
}

/** A shell ends when it cannot fork(2). */
export const NO_PROCESS = Object.assign(new Error('the shell that starts it has ended'), { code: 'EAGAIN' });

interface Paths {
  readonly in: string;
  readonly out: string;
  readonly err: string;
}

/** @throws Error with the code of open(2) */
function openPipes(path: Paths, writes: boolean): Socket[] {
  const { O_RDONLY, O_RDWR, O_NONBLOCK } = constants;
  const opened: Socket[] = [];
  const open = (from: string, flags: number, way: 'readable' | 'writable'): void => {
    const usual = { readable: false, writable: false };
    opened.push(new Socket({ fd: openSync(from, flags | O_NONBLOCK), ...usual, [way]: true }));
  };
  try {
    open(path.out, O_RDONLY, 'readable');
    open(path.err, O_RDONLY, 'readable');
    // For both, since the program is not there yet; it comes to an end when this side is closed.
    if (writes) open(path.in, O_RDWR, 'writable');
    return opened;
  } catch (error) {
    for (const pipe of opened) pipe.destroy();
    throw error;
  }
}

/** Between single quotes nothing has a meaning in a shell. */
export function quote(word: string): string {
  if (word.includes('\0')) throw new Error('an argument that no program can be given');
  return `'${word.replaceAll("'", "'\\''")}'`;
}

/** @returns what has it do something, and tells the status */
function hear(child: ChildProcess, ended: Promise<unknown>): (text: string) => Promise<number | undefined> {
  let answer: (status?: number) => void = () => {};
  let heard = '';
  let over = false;
  // Once, and not for each program: what waits for a promise is kept as long as the promise.
  ended.then(() => {
    over = true;
    answer();
  });
  child.stdin?.on('error', () => {}); // that it has ended is told by itself
  child.stderr?.resume();
  child.stdout?.on('data', (chunk) => {
    heard += chunk;
    if (!heard.endsWith('\n')) return;
    answer(Number(heard));
    heard = '';
  });
  return (text) => {
    const { promise, resolve } = Promise.withResolvers<number | undefined>();
    answer = resolve;
    if (over) answer();
    else child.stdin?.write(`${text}\necho $?\n`);
    return promise;
  };
}

function endGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}
