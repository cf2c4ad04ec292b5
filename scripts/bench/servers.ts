/** @module Starts the servers to compare, each in a separate process. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';

/** A running server. */
export interface Server {
  readonly pid: number;
  readonly port: number;
  end(): void;
}

const resolvePath = (path: string): string => new URL(path, import.meta.url).pathname;
const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});
// Run the exit handler on a signal, too: an interrupted benchmark must not leave servers running.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

/** Starts the built service with default settings, but without a rate limit. */
export function startService(settings: Readonly<Record<string, string>> = {}): Promise<Server> {
  const TEMP_DIR = mkdtempSync(join(tmpdir(), 'imagemill-bench-'));
  return start(['--optimize-for-size', resolvePath('../../dist/main.js')], {
    PORT: '0',
    HOST: '127.0.0.1',
    RATE_LIMIT_PER_MINUTE: '0',
    TEMP_DIR,
    ...settings,
  });
}

/** Starts the sharp server with one libuv thread per processor. */
export const startSharp = (): Promise<Server> =>
  start([resolvePath('./sharp-server.ts')], { UV_THREADPOOL_SIZE: String(availableParallelism()) });

/** Starts the echo server. */
export const startEcho = (): Promise<Server> => start([resolvePath('./echo-server.ts')], {});

/**
 * Starts a Node.js script and waits until it listens.
 *
 * @throws {Error} if the process exits first
 */
async function start(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<Server> {
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env.PATH, NODE_ENV: 'production', ...environment },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  running.add(child);
  let output = '';
  const port = await new Promise<number>((resolve, reject) => {
    child.stdout.on('data', (chunk) => {
      if (output.length > 10_000) return;
      output += chunk;
      const match = /listening on (?:http:\/\/\S+:)?(\d+)/.exec(output);
      if (match) resolve(Number(match[1]));
    });
    child.once('exit', () => reject(new Error(`the server exited: ${output}`)));
  });
  return {
    pid: child.pid as number,
    port,
    end() {
      running.delete(child);
      child.kill('SIGTERM');
    },
  };
}
