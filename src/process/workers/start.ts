import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import type { Config } from '../../config.ts';
import type { Workspaces } from '../../files/workspace.ts';
import { CommandError } from '../command.ts';
import type { MagickLimits } from '../environment.ts';
import type { LaunchDeps } from '../launch.ts';
import { isPolicyEnforced, ONE_PIXEL } from '../policy-check.ts';
import { createRunner } from '../runner.ts';
import type { Magick } from '../toolchain.ts';
import { createWorkerPool, type FallbackOutcome, type WorkerPool } from './pool.ts';
import { WORKER_PROTOCOLS } from './protocol.ts';
import { startWorker, type Worker } from './worker.ts';

/** Processes that wait for images, where that works: found out by trying, as all that the tools must do. */

/** Their arguments come by standard input, which the other policy forbids to be named. */
export const WORKER_POLICY = fileURLToPath(new URL('../../../assets/worker', import.meta.url));
/** Ten years: a worker lives longer than one job, and the service limits the time of each job. */
export const WORKER_ENVIRONMENT = { MAGICK_TIME_LIMIT: String(10 * 365 * 86_400) };
const SELF_TEST_TIMEOUT_MS = 10_000;

export interface WarmWorkerPoolOptions {
  readonly config: Pick<Config, 'CONCURRENCY' | 'CONVERT_TIMEOUT_MS' | 'WORKER_REUSE'>;
  readonly magick: Magick | undefined;
  readonly workspaces: Workspaces;
  readonly launchOptions: LaunchDeps & { readonly limits: MagickLimits };
  /** Where the worker's policy grants more than the shipped one. */
  readonly workerGrantsFolder: string | undefined;
  readonly log: Logger;
  /** Is told of every process that is started. */
  readonly onStart: () => void;
  /** Is told of every job that was repeated in a process of its own. */
  readonly onFallback: (outcome: FallbackOutcome) => void;
}

/** @returns undefined where every image gets a process of its own: the log says why */
export async function createWarmWorkerPool(deps: WarmWorkerPoolOptions): Promise<WorkerPool | undefined> {
  const { config, magick, workspaces, launchOptions: launching, log, onStart, onFallback } = deps;
  if (!magick) return undefined;
  const reuse = WORKER_PROTOCOLS[magick.major].singleUse ? 1 : config.WORKER_REUSE;
  const grantsFolder = deps.workerGrantsFolder ?? WORKER_POLICY;
  const worker = { ...launching, policyFolder: WORKER_POLICY, grantsFolder };
  const start = async (): Promise<Worker> => {
    onStart();
    return startWorker({
      ...worker,
      environment: WORKER_ENVIRONMENT,
      home: await workspaces.root(),
      magick,
      lifetimeMs: reuse * config.CONVERT_TIMEOUT_MS,
    });
  };
  try {
    await selfTest(start, magick, createRunner(worker), deps);
  } catch (err) {
    log.warn(
      { err },
      'no process can wait for images here: every image gets one of its own, which is slower',
    );
    return undefined;
  }
  return createWorkerPool({
    start,
    executable: magick.path,
    runInFreshProcess: createRunner(launching),
    size: config.CONCURRENCY,
    maxJobs: reuse,
    onError: (err) => log.warn({ err }, 'trouble with a waiting process; the image gets one of its own'),
    onFallback(outcome, failure) {
      onFallback(outcome);
      if (outcome === 'ok') log.warn(describe(failure), 'a worker failed where a new process did not');
      else log.debug(describe(failure), 'a conversion failed in a worker and in a new process');
    },
  });
}

/** What is known of a failure without the words of a picture, which may be on standard error. */
function describe(failure: unknown): object {
  if (!(failure instanceof CommandError)) return { err: failure };
  const { reason, exitCode, signal } = failure;
  return { reason, exitCode, signal };
}

/** One of them obeys the policy, and converts a picture that is linked into its folder. */
async function selfTest(
  start: () => Promise<Worker>,
  magick: Magick,
  run: ReturnType<typeof createRunner>,
  { workspaces, launchOptions: launching }: WarmWorkerPoolOptions,
): Promise<void> {
  const trial = await workspaces.open();
  try {
    const [asked, done] = [await trial.folder('asked'), await trial.folder('done')];
    if (!(await isPolicyEnforced(magick, run, asked, launching.limits)))
      throw new Error(`it does not obey ${WORKER_POLICY}`);
    await writeFile(join(done, 'in'), ONE_PIXEL);
    const worker = await start();
    const command = {
      file: magick.path,
      args: ['PNG:in', 'PNG:out.png'],
      cwd: done,
      timeoutMs: SELF_TEST_TIMEOUT_MS,
    };
    await worker.run(command).finally(() => worker.end());
  } finally {
    await trial.remove();
  }
}
