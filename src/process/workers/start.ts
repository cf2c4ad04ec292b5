/** @module Creates the pool of pre-started ImageMagick workers, if a self-test at startup succeeds. */

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Config } from '../../config.ts';
import type { Workspaces } from '../../files/workspace.ts';
import { CommandError } from '../command.ts';
import { isPolicyEnforced, ONE_PIXEL } from '../policy.ts';
import { createRunner, type LaunchDeps, type MagickLimits } from '../runner.ts';
import type { Magick } from '../toolchain.ts';
import { createWorkerPool, type FallbackOutcome, type WorkerPool } from './pool.ts';
import { startWorker, WORKER_PROTOCOLS, type Worker } from './worker.ts';

/** Time limit of ten years, in s. A worker outlives its jobs, and the service limits the time of each job. */
export const WORKER_ENVIRONMENT = { MAGICK_TIME_LIMIT: String(10 * 365 * 86_400) };
const SELF_TEST_TIMEOUT_MS = 10_000;

/** Options of {@link createWarmWorkerPool}. */
export interface WarmWorkerPoolOptions {
  readonly config: Config;
  readonly magick: Magick | undefined;
  readonly workspaces: Workspaces;
  readonly launchOptions: LaunchDeps & { readonly limits: MagickLimits };
  /** Folder with a policy that also permits arguments from stdin, see {@link writePolicy}. */
  readonly workerGrantsFolder: string;
  readonly log: Logger;
  /** Called when a worker starts. */
  readonly onStart: () => void;
  /** Called after a job that failed in a worker was repeated in a new process. */
  readonly onFallback: (outcome: FallbackOutcome) => void;
}

/**
 * Creates the pool of workers.
 *
 * @returns `undefined` if there is no ImageMagick, or if the self-test fails, which is logged. Every image then gets a new
 *   process.
 */
export async function createWarmWorkerPool(options: WarmWorkerPoolOptions): Promise<WorkerPool | undefined> {
  const { config, magick, workspaces, launchOptions, log, onStart, onFallback } = options;
  if (!magick) return undefined;
  const maxJobs = WORKER_PROTOCOLS[magick.major].singleUse ? 1 : config.WORKER_REUSE;
  const workerOptions = { ...launchOptions, grantsFolder: options.workerGrantsFolder };
  const start = async (): Promise<Worker> => {
    onStart();
    return startWorker({
      ...workerOptions,
      environment: WORKER_ENVIRONMENT,
      home: await workspaces.root(),
      magick,
      lifetimeMs: maxJobs * config.CONVERT_TIMEOUT_MS,
    });
  };
  try {
    await selfTest(start, magick, createRunner(workerOptions), options);
  } catch (err) {
    log.warn({ err }, 'warm workers are unavailable: every image gets a new process, which is slower');
    return undefined;
  }
  const shared = config.WORKER_SHARING === 'all' && maxJobs > 1;
  if (shared) log.warn('WORKER_SHARING=all: one ImageMagick process converts images of different clients');
  return createWorkerPool({
    start,
    shared,
    executable: magick.path,
    runInFreshProcess: createRunner(launchOptions),
    size: config.CONCURRENCY,
    maxJobs,
    onError: (err) => log.warn({ err }, 'worker failed'),
    onFallback(outcome, failure) {
      onFallback(outcome);
      if (outcome === 'ok')
        log.warn(describe(failure), 'job failed in a worker and succeeded in a new process');
      else log.debug(describe(failure), 'job failed in a worker and in a new process');
    },
  });
}

/** Returns the log fields of a failure. They omit standard error, which may quote image content. */
function describe(failure: unknown): object {
  if (!(failure instanceof CommandError)) return { err: failure };
  const { reason, exitCode, signal } = failure;
  return { reason, exitCode, signal };
}

/**
 * Checks that ImageMagick enforces the policy of workers, and that a worker converts an image.
 *
 * @throws {Error} if ImageMagick does not enforce the policy
 * @throws {CommandError} if the worker does not start or does not convert the image
 */
async function selfTest(
  start: () => Promise<Worker>,
  magick: Magick,
  run: ReturnType<typeof createRunner>,
  { workspaces, launchOptions, workerGrantsFolder }: WarmWorkerPoolOptions,
): Promise<void> {
  const workspace = await workspaces.open();
  try {
    const [policyFolder, jobFolder] = [await workspace.folder('policy'), await workspace.folder('job')];
    if (!(await isPolicyEnforced(magick, run, policyFolder, launchOptions.limits)))
      throw new Error(`ImageMagick does not enforce the policy in ${workerGrantsFolder}`);
    await writeFile(join(jobFolder, 'in'), ONE_PIXEL);
    const worker = await start();
    const command = {
      file: magick.path,
      args: ['PNG:in', 'PNG:out.png'],
      cwd: jobFolder,
      timeoutMs: SELF_TEST_TIMEOUT_MS,
    };
    await worker.run(command).finally(() => worker.end());
  } finally {
    await workspace.remove();
  }
}
