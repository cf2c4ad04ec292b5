/** @module One fork server: its process, and the jobs that run in it. */
import { type Exit, type RunningJob, startProgram } from '../start.ts';
import {
  type Answer,
  createAnswerReader,
  encodeJob,
  encodeKill,
  type Job,
  readNumbers,
  signalName,
  systemError,
} from './protocol.ts';

/** Options of {@link startServer}. */
export interface ServerOptions {
  /** Absolute path of the program that the server runs. */
  readonly file: string;
  /** Path of the compiled `fork-server.c`. */
  readonly library: string;
  /** Environment in which the program prepares itself. */
  readonly env: Readonly<Record<string, string>>;
  /** What the server loads before its first job: see `prepare` in fork-server.c. */
  readonly prepare: string;
  /** Whether the server enters namespaces of its own. */
  readonly namespaces: boolean;
}

/** A running fork server. */
export interface Server {
  /** False once the process has ended, or was closed. */
  readonly alive: boolean;
  /** Whether the server has its own namespaces. */
  readonly isolated: boolean;
  /** Number of jobs that have been started. */
  readonly started: number;
  /** Time of the start, on the clock of `performance.now()`. */
  readonly startedAt: number;
  /**
   * Runs a job.
   *
   * @throws {Error} for a job that cannot be encoded
   */
  run(job: Job): RunningJob;
  /** Accepts no more jobs, and ends the process when its jobs have ended. */
  close(): Promise<void>;
  /** Kills the process and its jobs. */
  kill(): void;
}

/** The program cannot be a fork server. */
export class ServerRefusedError extends Error {
  override readonly name = 'ServerRefusedError';
}

/** Time limit for the preparation of a server, in ms. A program that ignores the library never reports its start. */
const START_TIMEOUT_MS = 5_000;
/** Time after which a server that does not report the end of a killed job is killed, in ms. */
const KILL_TIMEOUT_MS = 5_000;

interface OpenJob {
  readonly parts: Record<'O' | 'E', Buffer[]>;
  readonly resolve: (exit: Exit) => void;
}

/**
 * Starts a server, and waits until it accepts jobs.
 *
 * @throws {ServerRefusedError} if the program cannot be a fork server
 * @throws {Error} with the code of errno(3) if the machine has no process or file descriptor left
 */
export async function startServer(options: ServerOptions): Promise<Server> {
  const { file, library, env, prepare, namespaces } = options;
  const subprocess = startProgram(file, [], {
    cwd: '/',
    env: {
      ...env,
      LD_PRELOAD: library,
      LD_BIND_NOW: '1', // otherwise, every child would resolve the same symbols
      IMAGEMILL_FORK_SERVER: 'serve',
      IMAGEMILL_PREPARE: prepare,
      ...(namespaces && { IMAGEMILL_NAMESPACES: '1' }),
    },
  });
  const open = new Map<number, OpenJob>();
  const ready = Promise.withResolvers<number[]>();
  let [alive, started, closing] = [true, 0, false];

  const read = createAnswerReader();
  subprocess.stderr.resume();
  subprocess.stdout.on('data', (chunk: Buffer) => {
    for (const answer of read(chunk)) receive(answer);
  });
  function receive({ kind, id, body }: Answer): void {
    const job = open.get(id);
    if (kind === 'R') ready.resolve(readNumbers(body));
    else if (kind === 'F') ready.reject(new ServerRefusedError(body.toString()));
    else if (kind === 'O' || kind === 'E') job?.parts[kind].push(body);
    else if (kind === 'X') settle(id, toExit(body));
    else if (kind === 'N') settle(id, { error: systemError(readNumbers(body)[0] ?? 0) });
  }
  function settle(id: number, exit: Exit): void {
    open.get(id)?.resolve(exit);
    open.delete(id);
    if (closing && open.size === 0) subprocess.stdin?.end();
  }
  const ended = subprocess.ended.then(({ error }) => {
    alive = false;
    ready.reject(error ?? new ServerRefusedError('the program ended before it was ready'));
    const lost = error ?? Object.assign(new Error('the fork server has ended'), { code: 'EAGAIN' });
    for (const id of [...open.keys()]) settle(id, { error: lost });
  });
  const timer = setTimeout(
    () => ready.reject(new ServerRefusedError('the program did not become ready')),
    START_TIMEOUT_MS,
  );
  const [, isolated = 0] = await ready.promise
    .catch((error) => {
      subprocess.kill();
      throw error;
    })
    .finally(() => clearTimeout(timer));
  const startedAt = performance.now();

  return {
    isolated: isolated === 1,
    startedAt,
    get alive() {
      return alive && !closing;
    },
    get started() {
      return started;
    },
    run(job) {
      started += 1;
      const id = started;
      const { promise, resolve } = Promise.withResolvers<Exit>();
      const parts: OpenJob['parts'] = { O: [], E: [] };
      const request = encodeJob(id, job);
      if (alive) {
        open.set(id, { parts, resolve });
        subprocess.stdin?.write(request);
      } else resolve({ error: Object.assign(new Error('the fork server has ended'), { code: 'EAGAIN' }) });
      let killTimer: NodeJS.Timeout | undefined;
      return {
        kill() {
          if (!open.has(id) || killTimer) return;
          subprocess.stdin?.write(encodeKill(id));
          killTimer = setTimeout(() => subprocess.kill(), KILL_TIMEOUT_MS).unref();
        },
        ended: promise.then((exit) => {
          clearTimeout(killTimer);
          return { exit, stdout: textOf(parts.O), stderr: textOf(parts.E) };
        }),
      };
    },
    async close() {
      closing = true;
      if (open.size === 0) subprocess.stdin?.end();
      await ended;
    },
    kill: () => subprocess.kill(),
  };
}

const textOf = (parts: readonly Buffer[]): string => Buffer.concat(parts).toString('utf8');

function toExit(body: Buffer): Exit {
  const [exitCode = 0, signal = 0] = readNumbers(body);
  return signal === 0 ? { exitCode } : { signal: signalName(signal) };
}
