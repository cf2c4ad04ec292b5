/** @module One fork server: its process, the jobs that run in it, and its messages, which the head comment of `fork-server.c` describes. */
import { constants, endianness } from 'node:os';
import pLimit from 'p-limit';
import { type Exit, type RunningJob, startProgram } from '../start.ts';

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
  /** Number of jobs that the server runs at once, unless it can open fewer files. Further jobs wait. */
  readonly concurrency: number;
}

export type ForkServer = Awaited<ReturnType<typeof startServer>>;

/** The program cannot be a fork server. */
export class ServerRefusedError extends Error {
  override readonly name = 'ServerRefusedError';
}

/** The server ended, or was closed, before it confirmed that it had started a job. */
export class NotStartedError extends Error {
  override readonly name = 'NotStartedError';
  readonly code = 'EAGAIN';
}

/** Time limit for the preparation of a server, in ms. A program that ignores the library never reports its start. */
const START_TIMEOUT_MS = 5_000;
/** Time after which a server that does not report the end of a killed job is killed, in ms. */
const KILL_TIMEOUT_MS = 5_000;

interface OpenJob {
  readonly parts: Record<'O' | 'E', Buffer[]>;
  readonly resolve: (exit: Exit) => void;
  /** Whether the server has confirmed its start. */
  confirmed: boolean;
}

/**
 * Starts a server, and waits until it accepts jobs.
 *
 * @throws {ServerRefusedError} if the program cannot be a fork server
 * @throws {Error} with the code of errno(3) if the machine has no process or file descriptor left
 */
export async function startServer(options: ServerOptions) {
  const { file, library, env, prepare, namespaces, concurrency } = options;
  const subprocess = startProgram(file, [], {
    cwd: '/',
    env: {
      ...env,
      LD_PRELOAD: library,
      LD_BIND_NOW: '1', // otherwise, every child would resolve the same symbols
      IMAGEMILL_FORK_SERVER: 'serve',
      IMAGEMILL_PREPARE: prepare,
      IMAGEMILL_MAX_JOBS: String(concurrency),
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
    else if (kind === 'S' && job) job.confirmed = true;
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
    for (const [id, { confirmed }] of [...open])
      settle(id, { error: error ?? (confirmed ? endedError() : new NotStartedError()) });
  });
  const timer = setTimeout(
    () => ready.reject(new ServerRefusedError('the program did not become ready')),
    START_TIMEOUT_MS,
  );
  const [capacity = 0, isolated = 0] = await ready.promise
    .catch((error) => {
      subprocess.kill();
      throw error;
    })
    .finally(() => clearTimeout(timer));
  const startedAt = performance.now();
  const limit = pLimit(capacity);

  function send(id: number, request: Buffer): RunningJob {
    const { promise, resolve } = Promise.withResolvers<Exit>();
    const parts: OpenJob['parts'] = { O: [], E: [] };
    open.set(id, { parts, resolve, confirmed: false });
    subprocess.stdin?.write(request);
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
  }

  return {
    /** Whether the server has its own namespaces. */
    isolated: isolated === 1,
    /** Time of the start, on the clock of `performance.now()`. */
    startedAt,
    /** False once the process has ended, or was closed. */
    get alive(): boolean {
      return alive && !closing;
    },
    /** Number of jobs that have been started. */
    get started(): number {
      return started;
    },
    /**
     * Runs a job as soon as the server has a place for it.
     *
     * @throws {Error} for a job that cannot be encoded
     * @throws {NotStartedError} if the server ended, or was closed, before it had a place
     */
    async run(job: Job): Promise<RunningJob> {
      started += 1;
      const id = started;
      const request = encodeJob(id, job);
      const { promise, resolve, reject } = Promise.withResolvers<RunningJob>();
      void limit(async () => {
        if (!alive || closing) return reject(new NotStartedError());
        const running = send(id, request);
        resolve(running);
        await running.ended;
      });
      return promise;
    },
    /** Accepts no more jobs, and ends the process when its jobs have ended. */
    async close(): Promise<void> {
      closing = true;
      limit.concurrency = Number.POSITIVE_INFINITY; // rejects the jobs that wait for a place
      if (open.size === 0) subprocess.stdin?.end();
      await ended;
    },
    /** Kills the process and its jobs. */
    kill: (): void => subprocess.kill(),
  };
}

const endedError = () => Object.assign(new Error('the fork server has ended'), { code: 'EAGAIN' });

const textOf = (parts: readonly Buffer[]): string => Buffer.concat(parts).toString('utf8');

function toExit(body: Buffer): Exit {
  const [exitCode = 0, signal = 0] = readNumbers(body);
  return signal === 0 ? { exitCode } : { signal: signalName(signal) };
}

/** Limits and rights of a job. */
export interface Confinement {
  /** Address space, in bytes. */
  readonly memoryBytes: number;
  /** Processor time of all threads, in seconds. */
  readonly cpuSeconds: number;
  /** Size of each file that the job writes, in bytes. */
  readonly fileBytes: number;
  /** Open files. */
  readonly files: number;
  /** Files and folders that the job can read, or `all` if it can access every file. */
  readonly readable: readonly string[] | 'all';
  /** Path of a seccomp filter. */
  readonly filter?: string;
}

/** A job of a program that is preloaded with the fork server. */
export interface Job {
  /** Arguments of the program. The first one is its own path. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Names of the only files in `cwd` that the job can write. Without them, it can make files in `cwd`. */
  readonly outputs?: readonly string[] | undefined;
  readonly stdin?: string | undefined;
  readonly confinement: Confinement;
}

/** Bytes of the header of a message. */
export const HEADER_BYTES = 12;
/** Maximum length of a message: `MAX_REQUEST` in fork-server.c. */
const MAX_REQUEST_BYTES = 2 * 1024 ** 2;

/** @throws {Error} for a job that the server would not accept */
export function encodeJob(id: number, { args, env, cwd, outputs, stdin, confinement }: Job): Buffer {
  const { memoryBytes, cpuSeconds, fileBytes, files, readable, filter } = confinement;
  const fields = [
    ...args.map((arg) => `a${arg}`),
    ...Object.entries(env).map(([name, value]) => `e${name}=${value}`),
    `d${cwd}`,
    ...(outputs?.map((name) => `o${name}`) ?? ['c']),
    ...(stdin === undefined ? [] : [`i${stdin}`]),
    ...[`m${Math.floor(memoryBytes)}`, `t${cpuSeconds}`, `z${Math.ceil(fileBytes)}`, `n${files}`],
    ...(readable === 'all' ? ['u'] : readable.map((path) => `r${path}`)),
    ...(filter === undefined ? [] : [`s${filter}`]),
  ];
  if (fields.some((field) => field.includes('\0'))) throw new Error('an argument must not contain NUL');
  const body = Buffer.from(`${fields.join('\0')}\0`);
  if (body.length > MAX_REQUEST_BYTES) throw new Error('the arguments are too long');
  return message('J', id, body);
}

/** Returns the request to kill a job. */
export const encodeKill = (id: number): Buffer => message('K', id, Buffer.alloc(0));

function message(kind: string, id: number, body: Buffer): Buffer {
  const words = Uint32Array.of(body.length, id, kind.charCodeAt(0));
  return Buffer.concat([Buffer.from(words.buffer), body]);
}

/** A message of the server. */
export interface Answer {
  readonly kind: string;
  readonly id: number;
  readonly body: Buffer;
}

/** Returns a function that receives the bytes of the server, and returns the messages that they complete. */
export function createAnswerReader(): (chunk: Buffer) => Answer[] {
  let rest: Buffer = Buffer.alloc(0);
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const answers: Answer[] = [];
    for (let header = readHeader(rest); header; header = readHeader(rest)) {
      const { length, ...answer } = header;
      answers.push({ ...answer, body: rest.subarray(HEADER_BYTES, HEADER_BYTES + length) });
      rest = rest.subarray(HEADER_BYTES + length);
    }
    return answers;
  };
}

/** Returns the header at the start of the bytes, or `undefined` if its message is not complete. */
function readHeader(bytes: Buffer): { length: number; id: number; kind: string } | undefined {
  if (bytes.length < HEADER_BYTES) return undefined;
  const [length = 0, id = 0, kind = 0] = readNumbers(bytes.subarray(0, HEADER_BYTES));
  return bytes.length < HEADER_BYTES + length ? undefined : { length, id, kind: String.fromCharCode(kind) };
}

function readNumbers(body: Buffer): number[] {
  const little = endianness() === 'LE';
  return Array.from({ length: body.length / 4 }, (_, at) =>
    little ? body.readUInt32LE(4 * at) : body.readUInt32BE(4 * at),
  );
}

const SIGNALS = namesByNumber(constants.signals);
const ERRORS = namesByNumber(constants.errno);

/** Returns the name of a signal, such as `SIGSEGV`. */
const signalName = (number: number): NodeJS.Signals => SIGNALS.get(number) as NodeJS.Signals;

/** Returns the error for a number of errno(3), with its name as the code. */
function systemError(number: number): Error {
  const code = ERRORS.get(number) ?? `errno ${number}`;
  return Object.assign(new Error(`the fork server cannot start a process: ${code}`), { code });
}

/** If a number has two names, keeps the first one. */
function namesByNumber(numbers: object): Map<number, string> {
  return new Map(
    Object.entries(numbers)
      .reverse()
      .map(([name, number]) => [number as number, name]),
  );
}
