/** @module Starts the servers to compare, each in a separate process. */
import { mkdtempSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  BUILT_PROGRAM,
  SERVICE_ENVIRONMENT,
  type ServerProcess,
  startServerProcess,
} from '../processes/start.ts';

const start = (args: readonly string[], environment: Readonly<Record<string, string>>) =>
  startServerProcess([process.execPath, ...args], { NODE_ENV: 'production', ...environment });

const resolvePath = (path: string): string => new URL(path, import.meta.url).pathname;

/** Starts the built service with default settings, but without a rate limit. */
export function startService(settings: Readonly<Record<string, string>> = {}): Promise<ServerProcess> {
  const TEMP_DIR = mkdtempSync(join(tmpdir(), 'imagemill-bench-'));
  return start(['--max-semi-space-size=4', BUILT_PROGRAM], { ...SERVICE_ENVIRONMENT, TEMP_DIR, ...settings });
}

/** Starts the sharp server with one libuv thread per processor. */
export const startSharp = (): Promise<ServerProcess> =>
  start([resolvePath('./sharp-server.ts')], { UV_THREADPOOL_SIZE: String(availableParallelism()) });

/** Starts the echo server. */
export const startEcho = (): Promise<ServerProcess> => start([resolvePath('./echo-server.ts')], {});
