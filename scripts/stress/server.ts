import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The service as a process of its own, and what the machine knows of it. */

const MAIN = new URL('../../src/main.ts', import.meta.url).pathname;
const LOOP_DELAY = new URL('./loop-delay.ts', import.meta.url).pathname;

/** As `npm start` gives them. */
const FLAGS = ['--optimize-for-size'];

export interface Server {
  readonly base: string;
  readonly pid: number;
  readonly tempDir: string;
  /** Sends the signal and waits for the end. */
  end(signal: NodeJS.Signals): Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  /** The 99th percentile of the event loop's delay in ms, once it has ended by itself. */
  loopDelay(): number | undefined;
}

/** All that is put on disk is below this folder, which goes in the end. */
export const scratch = mkdtempSync(join(tmpdir(), 'imagemill-stress-'));
export const tidyUp = (): void => rmSync(scratch, { recursive: true, force: true });

/** Whatever ends this run ends the servers that it started, too. */
const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

let servers = 0;

/** @param prefix a program and its arguments that the server is started with */
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
      ...{
        PATH: process.env.PATH,
        PORT: '0',
        HOST: '127.0.0.1',
        RATE_LIMIT_PER_MINUTE: '0',
        LOG_LEVEL: 'info',
      },
      ...{ TEMP_DIR: tempDir, TORTURE_LOOP_FILE: loopFile, UPLOAD_TIMEOUT_MS: '20000', ...settings },
    },
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  const ended = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  return {
    base: `${await address(child, ended)}/api/v1`,
    pid: child.pid as number,
    tempDir,
    async end(signal) {
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

async function address(child: ChildProcess, ended: Promise<unknown>): Promise<string> {
  let output = '';
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  child.stdout?.on('data', (chunk) => {
    if (output.length < 1e5) output += chunk;
    const found = /listening on (http:\/\/[\d.]+:\d+)/.exec(output)?.[1];
    if (found) resolve(found);
  });
  child.stderr?.on('data', (chunk) => {
    if (output.length < 1e5) output += chunk;
  });
  void ended.then(() => reject(new Error(`the server did not start: ${output.slice(-2000)}`)));
  return promise;
}

/** Everything that is left below a folder for working files. */
export function filesLeft(tempDir: string): string[] {
  return readdirSync(tempDir, { recursive: true }).map(String);
}

/** Processes that work in such a folder. */
export function processesLeft(tempDir: string): number[] {
  return everyProcess().filter((pid) => {
    try {
      return readlinkSync(`/proc/${pid}/cwd`).startsWith(tempDir);
    } catch {
      return false; // it has ended meanwhile
    }
  });
}

/** Resident memory of a process, and of it with all its descendants, in bytes. */
export function memoryOf(pid: number): { own: number; tree: number } {
  const parents = new Map(everyProcess().map((one) => [one, status(one, 'PPid')]));
  const isBelow = (one: number): boolean =>
    one === pid || (parents.has(one) && isBelow(parents.get(one) ?? 0));
  const sizes = [...parents.keys()].filter(isBelow).map((one) => status(one, 'VmRSS') * 1024);
  return { own: status(pid, 'VmRSS') * 1024, tree: sizes.reduce((sum, size) => sum + size, 0) };
}

function everyProcess(): number[] {
  return readdirSync('/proc').map(Number).filter(Number.isInteger);
}

function status(pid: number, field: string): number {
  try {
    return Number(
      new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0,
    );
  } catch {
    return 0;
  }
}
