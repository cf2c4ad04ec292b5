/**
 * @module Starts the service as a separate process, and reads its memory and leftovers from /proc
 * and the disk.
 */
import { mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { isRunning } from '../../test/helpers/util.ts';
import type { Probe } from '../processes/probe.ts';
import { BUILT_PROGRAM, NODE_FLAGS, type ServerProcess, startServerProcess } from '../processes/start.ts';
import { listProcesses, listTree, PROBE_MODULE, readProbe } from '../processes/usage.ts';

/** Flags of Node.js in `npm start`, and those to measure the process. */
const FLAGS = [...NODE_FLAGS, '--expose-gc', `--import=${PROBE_MODULE}`];

/** A running server. */
export interface Server extends ServerProcess {
  readonly tempDir: string;
  /** Collects garbage, and measures the server since the last measurement. */
  measure(): Promise<Probe>;
  /** Returns the processes that the server had when it was ended, and that still run. */
  outlived(): number[];
}

/** Folder for all files of the run, removed at the end. */
export const scratch = mkdtempSync(join(tmpdir(), 'imagemill-stress-'));
/** Removes {@link scratch}. */
export const tidyUp = (): void => rmSync(scratch, { recursive: true, force: true });

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
  const probeFile = join(scratch, `probe-${servers}`);
  const defaults = {
    LOG_LEVEL: 'info',
    TEMP_DIR: tempDir,
    PROBE_FILE: probeFile,
    UPLOAD_TIMEOUT_MS: '20000',
  };
  const command = [...prefix, process.execPath, ...FLAGS, BUILT_PROGRAM];
  const started = await startServerProcess({ ...defaults, ...settings }, command);
  let last: number[] = [];
  return {
    ...started,
    tempDir,
    outlived: () => last.filter(isRunning),
    end(signal) {
      last = listTree(started.pid);
      return started.end(signal);
    },
    measure: () => readProbe(started.pid, probeFile),
  };
}

/** Waits for a condition, for a minute at most. */
export async function waitUntil(check: () => boolean): Promise<void> {
  for (let round = 0; round < 3000 && !check(); round += 1) await pause(20);
}

/**
 * Lists the files and processes that a server left behind. A killed process can end a moment after
 * its server.
 */
export async function listLeftovers(server: Pick<Server, 'tempDir' | 'outlived'>): Promise<string[]> {
  const processes = () => [...new Set([...processesLeft(server.tempDir), ...server.outlived()])];
  await waitUntil(() => processes().length === 0);
  return [...filesLeft(server), ...processes().map((pid) => `process ${pid}`)];
}

/**
 * Lists the files below the folder for working files. While the server removes a folder, lists only
 * the instances.
 */
export function filesLeft({ tempDir }: Pick<Server, 'tempDir'>): string[] {
  try {
    return readdirSync(tempDir, { recursive: true }).map(String);
  } catch {
    return readdirSync(tempDir);
  }
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
