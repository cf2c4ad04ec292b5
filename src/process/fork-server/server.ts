/** @module One fork server: its process, and the jobs that run in it. */
import pLimit from 'p-limit';
import type { Exit, RunningJob } from '../command.ts';
import { type StartedProgram, startProgram } from '../start.ts';
import {
  type Answer,
  createAnswerReader,
  encodeJob,
  encodeKill,
  type Job,
  readNumbers,
  systemError,
  toExit,
} from './messages.ts';

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
  /** Number of jobs that run at once, unless the server can open fewer files. Others wait. */
  readonly concurrency: number;
}

/** The program cannot be a fork server. */
export class ServerRefusedError extends Error {
  override readonly name = 'ServerRefusedError';
}

/** The server ended, or was closed, before it confirmed that it had started a job. */
export class NotStartedError extends Error {
  override readonly name = 'NotStartedError';
  readonly code = 'EAGAIN';
}

/** Time limit for preparing a server, in ms. A program that ignores the library reports none. */
const START_TIMEOUT_MS = 5_000;
/** Time after which a server that does not report the end of a killed job is killed, in ms. */
const KILL_TIMEOUT_MS = 5_000;

interface OpenJob {
  readonly parts: Record<'O' | 'E', Buffer[]>;
  readonly resolve: (exit: Exit) => void;
  /** Whether the server has confirmed its start. */
  confirmed: boolean;
}

/** A running fork server. */
export class ForkServer {
  /** Whether the server has its own namespaces. */
  isolated = false;
  /** Time of the start, on the clock of `performance.now()`. */
  startedAt = 0;
  /** Number of jobs that have been started. */
  started = 0;
  readonly #subprocess: StartedProgram;
  /** Settles when the process has ended. */
  readonly #ended: Promise<void>;
  readonly #open = new Map<number, OpenJob>();
  /** Capacity, and 1 if the server has its own namespaces. */
  readonly #ready = Promise.withResolvers<number[]>();
  #limit = pLimit(1);
  #alive = true;
  #closing = false;

  /**
   * Starts a server, and waits until it accepts jobs.
   *
   * @throws {ServerRefusedError} if the program cannot be a fork server
   * @throws {Error} with the code of errno(3) if the machine has no process or file descriptor left
   */
  static async start(options: ServerOptions): Promise<ForkServer> {
    const { file, library, env, prepare, namespaces, concurrency } = options;
    const serving = {
      LD_PRELOAD: library,
      LD_BIND_NOW: '1', // otherwise, every child would resolve the same symbols
      IMAGEMILL_FORK_SERVER: 'serve',
      IMAGEMILL_PREPARE: prepare,
      IMAGEMILL_MAX_JOBS: String(concurrency),
      ...(namespaces && { IMAGEMILL_NAMESPACES: '1' }),
    };
    // Without a session of its own, its jobs end with it by PR_SET_PDEATHSIG.
    const started = { cwd: '/', env: { ...env, ...serving }, session: false };
    const server = new ForkServer(startProgram(file, [], started));
    const timer = setTimeout(
      () => server.#ready.reject(new ServerRefusedError('the program did not become ready')),
      START_TIMEOUT_MS,
    );
    try {
      const [capacity = 0, isolated = 0] = await server.#ready.promise;
      server.#limit = pLimit(capacity);
      server.isolated = isolated === 1;
      server.startedAt = performance.now();
      return server;
    } catch (error) {
      server.kill();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  private constructor(subprocess: StartedProgram) {
    this.#subprocess = subprocess;
    const read = createAnswerReader();
    subprocess.stderr.resume();
    subprocess.stdout.on('data', (chunk: Buffer) => {
      for (const answer of read(chunk)) this.#receive(answer);
    });
    this.#ended = subprocess.ended.then(({ error }) => this.#end(error));
  }

  /** False once the process has ended, or was closed. */
  get alive(): boolean {
    return this.#alive && !this.#closing;
  }

  /**
   * Runs a job as soon as the server has a place for it.
   *
   * @throws {Error} for a job that cannot be encoded
   * @throws {NotStartedError} if the server ended, or was closed, before it had a place
   */
  async run(job: Job): Promise<RunningJob> {
    this.started += 1;
    const id = this.started;
    const request = encodeJob(id, job);
    const { promise, resolve, reject } = Promise.withResolvers<RunningJob>();
    void this.#limit(async () => {
      if (!this.alive) return reject(new NotStartedError());
      const running = this.#send(id, request);
      resolve(running);
      await running.ended;
    });
    return promise;
  }

  /** Accepts no more jobs, and ends the process when its jobs have ended. */
  async close(): Promise<void> {
    this.#closing = true;
    this.#limit.concurrency = Number.POSITIVE_INFINITY; // rejects the jobs that wait for a place
    this.#endIfIdle();
    await this.#ended;
  }

  /** Kills the process and its jobs. */
  kill(): void {
    this.#subprocess.kill();
  }

  #receive({ kind, id, body }: Answer): void {
    const job = this.#open.get(id);
    if (kind === 'R') this.#ready.resolve(readNumbers(body));
    else if (kind === 'F') this.#ready.reject(new ServerRefusedError(body.toString()));
    else if (kind === 'S' && job) job.confirmed = true;
    else if (kind === 'O' || kind === 'E') job?.parts[kind].push(body);
    else if (kind === 'X') this.#settle(id, toExit(body));
    else if (kind === 'N') this.#settle(id, { error: systemError(readNumbers(body)[0] ?? 0) });
  }

  #send(id: number, request: Buffer): RunningJob {
    const { promise, resolve } = Promise.withResolvers<Exit>();
    const parts: OpenJob['parts'] = { O: [], E: [] };
    this.#open.set(id, { parts, resolve, confirmed: false });
    this.#subprocess.stdin?.write(request);
    let killTimer: NodeJS.Timeout | undefined;
    return {
      kill: () => {
        if (!this.#open.has(id) || killTimer) return;
        this.#subprocess.stdin?.write(encodeKill(id));
        killTimer = setTimeout(() => this.kill(), KILL_TIMEOUT_MS).unref();
      },
      ended: promise.then((exit) => {
        clearTimeout(killTimer);
        return { exit, stdout: textOf(parts.O), stderr: textOf(parts.E) };
      }),
    };
  }

  #settle(id: number, exit: Exit): void {
    this.#open.get(id)?.resolve(exit);
    this.#open.delete(id);
    if (this.#closing) this.#endIfIdle();
  }

  #endIfIdle(): void {
    if (this.#open.size === 0) this.#subprocess.stdin?.end();
  }

  /** Settles everything that waits for the process, which has ended. */
  #end(error: Error | undefined): void {
    this.#alive = false;
    const ended = Object.assign(new Error('the fork server has ended'), { code: 'EAGAIN' });
    this.#ready.reject(error ?? new ServerRefusedError('the program ended before it was ready'));
    for (const [id, { confirmed }] of [...this.#open])
      this.#settle(id, { error: error ?? (confirmed ? ended : new NotStartedError()) });
  }
}

const textOf = (parts: readonly Buffer[]): string => Buffer.concat(parts).toString('utf8');
