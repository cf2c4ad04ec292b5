import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, symlink } from 'node:fs/promises';
import { buffer, text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { makeTempDir, userCache } from './hooks.ts';
import { eventually } from './util.ts';

/** Path of the program: `dist/main.js` in a run of all tests, otherwise the source. */
export const MAIN: string = new URL(
  process.env.IMAGEMILL_MAIN ?? 'src/main.ts',
  new URL('../../', import.meta.url),
).pathname;

/** Runs a program to its end, and returns its output. Throws if it fails. */
export const execute = promisify(execFile);

/** The service as a separate process, as operators run it. */
export interface ServiceProcess {
  readonly child: ChildProcess;
  readonly pid: number;
  /** Returns all output so far. */
  output(): string;
  /**
   * Resolves to the base URL of the API once the service listens.
   *
   * @throws {Error} with the output of a service that has ended
   */
  base(): Promise<string>;
  /** Resolves to the exit status, or to the signal that ended the process. */
  ended(): Promise<number | NodeJS.Signals>;
  /** Kills the service at the end of a block, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Environment variables for programs of this project: the search path, and the caches of compiled
 * code and of trials of tools.
 */
export const programEnvironment = (): NodeJS.ProcessEnv => {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  return { PATH, NODE_COMPILE_CACHE, XDG_CACHE_HOME: userCache() };
};

/**
 * Settings of services in tests: no rate limit, and a time limit that no conversion exceeds on a
 * slow machine.
 */
export const TEST_SETTINGS = { RATE_LIMIT_PER_MINUTE: '0', CONVERT_TIMEOUT_MS: '300000' };

/**
 * Starts the service.
 *
 * @param before program and arguments that start it, such as prlimit
 */
export const startProcess = (
  environment: Readonly<Record<string, string | undefined>>,
  before: readonly string[] = [],
): ServiceProcess =>
  startServer([...before, process.execPath, MAIN], {
    ...programEnvironment(),
    PORT: '0',
    HOST: '127.0.0.1',
    ...TEST_SETTINGS,
    ...environment,
  });

/**
 * Returns {@link startProcess} for the tests of a suite. The services are killed after each test.
 */
export function useProcesses(): typeof startProcess {
  const processes: ServiceProcess[] = [];
  afterEach(async () => {
    for (const { child } of processes) child.kill('SIGKILL');
    await Promise.all(processes.splice(0).map((started) => started.ended()));
  });
  return (...how) => {
    const started = startProcess(...how);
    processes.push(started);
    return started;
  };
}

/** Starts the service, or another server that prints its address: a program and its arguments. */
export function startServer(
  [program = '', ...args]: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): ServiceProcess {
  const child = spawn(program, args, { env });
  // Until then, output that the service printed before its end may be unread.
  const end = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
  const ended = async (): Promise<number | NodeJS.Signals> => {
    const [code, signal] = await end;
    return code ?? (signal as NodeJS.Signals);
  };
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (data) => {
      output += data;
    });
  }
  return {
    child,
    pid: child.pid as number,
    output: () => output,
    async base() {
      const match = await eventually(() => {
        if (child.exitCode !== null || child.signalCode !== null)
          throw new Error(`the service has ended: ${output}`);
        return /listening on (http:\/\/[\d.]+:\d+)/.exec(output) ?? undefined;
      });
      return `${match[1]}/api/v1`;
    },
    ended,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await ended();
    },
  };
}

/**
 * Runs a program with `input` on stdin.
 *
 * @returns stdout
 * @throws {Error} with the last line of stderr if the program fails
 */
export async function pipe(program: string, args: readonly string[], input: Uint8Array): Promise<Buffer> {
  const child = spawn(program, args, { stdio: 'pipe' });
  child.stdin.on('error', () => {}); // the program may exit before it has read everything
  child.stdin.end(input);
  const results = [buffer(child.stdout), text(child.stderr), once(child, 'close')] as const;
  const [output, errorOutput, [status]] = await Promise.all(results);
  if (status !== 0) throw new Error(errorOutput.trim().split('\n').at(-1) || `status ${status}`);
  return output;
}

/** Creates a folder with links to all programs of this machine except some. */
export async function pathWithout(names: readonly string[]): Promise<string> {
  const folder = await makeTempDir('path');
  for (const from of ['/usr/bin', '/bin', '/usr/local/bin']) {
    for (const name of await readdir(from).catch(() => [])) {
      if (!names.includes(name)) await symlink(`${from}/${name}`, `${folder}/${name}`).catch(() => {});
    }
  }
  return folder;
}
