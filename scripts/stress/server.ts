/** @module Starts the service as a separate process, and reads its memory and leftovers from /proc and the disk. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isRunning } from '../../test/helpers/util.ts';

const MAIN = new URL('../../src/main.ts', import.meta.url).pathname;
const LOOP_DELAY = new URL('./loop-delay.ts', import.meta.url).pathname;

/** Flags of Node.js in `npm start`. */
const FLAGS = ['--optimize-for-size'];

/** A running server. */
export interface Server {
  readonly base: string;
  readonly pid: number;
  readonly tempDir: string;
  /** Sends the signal and waits until the process exits. */
  end(signal: NodeJS.Signals): Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  /**
   * Returns the 99th percentile of the event loop delay in ms, or undefined if the process was killed.
   */
  loopDelay(): number | undefined;
  /** Returns the processes that the server had when it was ended, and that still run. */
  outlived(): number[];
}

/** Folder for all files of the run, removed at the end. */
export const scratch = mkdtempSync(join(tmpdir(), 'imagemill-stress-'));
/** Removes {@link scratch}. */
export const tidyUp = (): void => rmSync(scratch, { recursive: true, force: true });

/** Running servers, killed when this process exits. */
const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

let servers = 0;

/**
 * Starts a server and waits until it listens.
 *
 * @param prefix program and arguments that start the server, such as prlimit
 * @throws {Error} with its output if the server exits first
 */
export async function startServer(
  settings: Readonly<Record<string, string>> = {},
  prefix: readonly string[] = [],
): Promise<Server> {
  servers += 1;
  const tempDir = settings.TEMP_DIR ?? mkdtempSync(join(scratch, `server-${servers}-`));
  const loopFile = join(scratch, `loop-${servers}`);
  const node = [process.execPath, ...FLAGS, '--import', LOOP_DELAY, MAIN];
  const [program = process.execPath, ...args] = [...prefix, ...node];
  const child = spawn(program, args, {
    env: {
      PATH: process.env.PATH,
      PORT: '0',
      HOST: '127.0.0.1',
      RATE_LIMIT_PER_MINUTE: '0',
      LOG_LEVEL: 'info',
      TEMP_DIR: tempDir,
      STRESS_LOOP_FILE: loopFile,
      UPLOAD_TIMEOUT_MS: '20000',
      ...settings,
    },
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  const ended = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  let last: number[] = [];
  return {
    base: `${await address(child, ended)}/api/v1`,
    pid: child.pid as number,
    tempDir,
    outlived: () => last.filter(isRunning),
    async end(signal) {
      last = listTree(child.pid as number);
      child.kill(signal);
      const [code, by] = await ended;
      return { code, signal: by };
    },
    loopDelay() {
      try {
        return Number(readFileSync(loopFile, 'utf8'));
      } catch {
        return undefined;
      }
    },
  };
}

/** Resolves to the URL of the server once it has printed its address. */
async function address(child: ChildProcess, ended: Promise<unknown>): Promise<string> {
  let output = '';
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  child.stdout?.on('data', (chunk) => {
    if (output.length < 1e5) output += chunk;
    const url = /listening on (http:\/\/[\d.]+:\d+)/.exec(output)?.[1];
    if (url) resolve(url);
  });
  child.stderr?.on('data', (chunk) => {
    if (output.length < 1e5) output += chunk;
  });
  void ended.then(() => reject(new Error(`the server did not start: ${output.slice(-2000)}`)));
  return promise;
}

/** Lists the files and processes that a server left behind. */
export function listLeftovers({ tempDir, outlived }: Pick<Server, 'tempDir' | 'outlived'>): string[] {
  const processes = new Set([...processesLeft(tempDir), ...outlived()]);
  return [...filesLeft(tempDir), ...[...processes].map((pid) => `process ${pid}`)];
}

/** Lists the files below the folder for working files. */
function filesLeft(tempDir: string): string[] {
  return readdirSync(tempDir, { recursive: true }).map(String);
}

/** Lists processes whose working directory is below the folder. */
export function processesLeft(tempDir: string): number[] {
  return listProcesses().filter((pid) => {
    try {
      return readlinkSync(`/proc/${pid}/cwd`).startsWith(tempDir);
    } catch {
      return false; // the process has exited
    }
  });
}

/** Returns the resident memory in bytes of a process (`own`), and including all its descendants (`tree`). */
export function memoryOf(pid: number): { own: number; tree: number } {
  const sizes = listTree(pid).map((one) => readStatus(one, 'VmRSS') * 1024);
  return { own: readStatus(pid, 'VmRSS') * 1024, tree: sizes.reduce((sum, size) => sum + size, 0) };
}

/** Lists a process and its descendants. */
export function listTree(pid: number): number[] {
  const parents = new Map(listProcesses().map((one) => [one, readStatus(one, 'PPid')]));
  const isInTree = (one: number): boolean =>
    one === pid || (parents.has(one) && isInTree(parents.get(one) ?? 0));
  return [...parents.keys()].filter(isInTree);
}

function listProcesses(): number[] {
  return readdirSync('/proc').map(Number).filter(Number.isInteger);
}

function readStatus(pid: number, field: string): number {
  try {
    return Number(
      new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0,
    );
  } catch {
    return 0;
  }
}
