import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import type { Config } from './config.ts';
import { CommandFailed } from './engine/command.ts';
import type { ToolLimits } from './engine/environment.ts';
import type { LaunchDeps } from './engine/launch.ts';
import { MANNERS } from './engine/manner.ts';
import { ONE_PIXEL, policyHolds } from './engine/policy.ts';
import { createRun } from './engine/run.ts';
import type { Magick } from './engine/toolchain.ts';
import { startWorker, type Worker } from './engine/worker.ts';
import { createWorkers, type FallbackOutcome, type Workers } from './engine/workers.ts';
import type { Workspaces } from './files/workspace.ts';

/** Processes that wait for images, where that works: found out by trying, as all that the tools must do. */

/** Their arguments come by standard input, which the other policy forbids to be named. */
export const WORKER_POLICY = fileURLToPath(new URL('../assets/worker', import.meta.url));
/** Ten years: a worker lives longer than one job, and the service limits the time of each job. */
export const WORKER_ENVIRONMENT = { MAGICK_TIME_LIMIT: String(10 * 365 * 86_400) };
const TRIAL_MS = 10_000;

export interface WarmDeps {
  readonly config: Pick<Config, 'CONCURRENCY' | 'CONVERT_TIMEOUT_MS' | 'WORKER_REUSE'>;
  readonly magick: Magick | undefined;
  readonly workspaces: Workspaces;
  readonly launching: LaunchDeps & { readonly limits: ToolLimits };
  readonly log: Logger;
  /** Is told of every process that is started. */
  readonly onStart: () => void;
  /** Is told of every job that was repeated in a process of its own. */
  readonly onFallback: (outcome: FallbackOutcome) => void;
}

/** @returns undefined where every image gets a process of its own: the log says why */
export async function warmWorkers(deps: WarmDeps): Promise<Workers | undefined> {
  const { config, magick, workspaces, launching, log, onStart, onFallback } = deps;
  if (!magick) return undefined;
  const reuse = MANNERS[magick.major].once ? 1 : config.WORKER_REUSE;
  const worker = { ...launching, policyFolder: WORKER_POLICY };
  const start = async (): Promise<Worker> => {
    onStart();
    return startWorker({
      ...worker,
      environment: WORKER_ENVIRONMENT,
      home: await workspaces.home(),
      magick,
      lifetimeMs: reuse * config.CONVERT_TIMEOUT_MS,
    });
  };
  try {
    await tryOut(start, magick, createRun(worker), deps);
  } catch (err) {
    log.warn(
      { err },
      'no process can wait for images here: every image gets one of its own, which is slower',
    );
    return undefined;
  }
  return createWorkers({
    start,
    serves: magick.path,
    runAlone: createRun(launching),
    slots: config.CONCURRENCY,
    reuse,
    report: (err) => log.warn({ err }, 'trouble with a waiting process; the image gets one of its own'),
    onFallback(outcome, failure) {
      onFallback(outcome);
      if (outcome === 'ok') log.warn(describe(failure), 'a worker failed where a new process did not');
      else log.debug(describe(failure), 'a conversion failed in a worker and in a new process');
    },
  });
}

/** What is known of a failure without the words of a picture, which may be on standard error. */
function describe(failure: unknown): object {
  if (!(failure instanceof CommandFailed)) return { err: failure };
  const { reason, exitCode, signal } = failure;
  return { reason, exitCode, signal };
}

/** One of them obeys the policy, and converts a picture that is linked into its folder. */
async function tryOut(
  start: () => Promise<Worker>,
  magick: Magick,
  run: ReturnType<typeof createRun>,
  { workspaces, launching }: WarmDeps,
): Promise<void> {
  const trial = await workspaces.open();
  try {
    const [asked, done] = [await trial.folder('asked'), await trial.folder('done')];
    if (!(await policyHolds(magick, run, asked, launching.limits)))
      throw new Error(`it does not obey ${WORKER_POLICY}`);
    await writeFile(join(done, 'in'), ONE_PIXEL);
    const worker = await start();
    const command = { file: magick.path, args: ['PNG:in', 'PNG:out.png'], cwd: done, timeoutMs: TRIAL_MS };
    await worker.run(command).finally(() => worker.end());
  } finally {
    await trial.remove();
  }
}
