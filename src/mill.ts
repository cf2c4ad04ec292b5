import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import type { Config } from './config.ts';
import { type Capabilities, capabilitiesOf } from './convert/capabilities.ts';
import { type Conversion, type Convert, createConvert } from './convert/convert.ts';
import { CommandFailed, type Run } from './engine/command.ts';
import type { ToolLimits } from './engine/environment.ts';
import { isolateLaunchers } from './engine/isolate.ts';
import { type KillReason, killReason } from './engine/killed.ts';
import { createLaunchers, type Launchers } from './engine/launcher/launchers.ts';
import { policyHolds } from './engine/policy.ts';
import { createPool } from './engine/pool.ts';
import { createRun } from './engine/run.ts';
import type { Layers } from './engine/sandbox.ts';
import { findToolchain, type Toolchain } from './engine/toolchain.ts';
import type { FallbackOutcome } from './engine/workers.ts';
import { sweep } from './files/sweep.ts';
import { createWorkspaces, type Workspaces } from './files/workspace.ts';
import { maxToolFileBytes, shutIn, toolLimits } from './shut-in.ts';
import { Unusable } from './unusable.ts';
import { warmWorkers } from './warm.ts';

/** All that converts, without a server: tools that were found and tested, a pool, folders to work in. */

const ASSETS = fileURLToPath(new URL('../assets', import.meta.url));
const NO_POLICY = '/nonexistent';

export interface Mill {
  readonly toolchain: Toolchain;
  readonly capabilities: Capabilities;
  readonly convert: Convert;
  readonly workspaces: Workspaces;
  /** How the tools are shut in. */
  readonly layers: Layers;
  /** What waits, and what is under way. */
  load(): MillLoad;
  /** Removes what is left on disk. */
  close(): Promise<void>;
}

export interface MillLoad {
  readonly waiting: number;
  readonly running: number;
  readonly workersReady: number;
  readonly workersResting: number;
}

/** Is told what happens, as it happens. */
export interface MillObserver {
  conversion(conversion: Conversion): void;
  toolKilled(reason: KillReason): void;
  workerStarted(): void;
  workerFellBack(outcome: FallbackOutcome): void;
}

export type MillSettings = Pick<
  Config,
  | 'CONCURRENCY'
  | 'CONVERT_TIMEOUT_MS'
  | 'MAGICK_BIN'
  | 'MAX_FRAMES'
  | 'MAX_PIXELS'
  | 'MAX_TOTAL_PIXELS'
  | 'PATH'
  | 'QUEUE_LIMIT'
  | 'RSVG_BIN'
  | 'SANDBOX'
  | 'TEMP_DIR'
  | 'WORKER_REUSE'
>;

/**
 * Finds the tools, tests the policy and tidies up after dead processes.
 *
 * @throws Unusable when nothing could be converted, or not safely
 */
export async function createMill(config: MillSettings, log: Logger, observer?: MillObserver): Promise<Mill> {
  const swept = await sweep(config.TEMP_DIR);
  if (swept.length > 0) log.info({ swept }, 'removed the working files of processes that are gone');
  const workspaces = createWorkspaces(config.TEMP_DIR);
  const launchers = createLaunchers(workspaces.home);
  let isolated: Launchers | undefined;
  const tidy = async (): Promise<void> => {
    await Promise.all([launchers.close(), isolated?.close()]);
    await workspaces.close();
  };
  try {
    const folder = await workspaces.home().catch((cause: Error) => {
      throw new Unusable(`TEMP_DIR ${config.TEMP_DIR} cannot be written: ${cause.message}`, { cause });
    });
    // Asking a tool who it is involves no picture, and version 6 lists no formats under the policy.
    const ask = createRun({ launchers, searchPath: config.PATH, policyFolder: NO_POLICY });
    // Otherwise every tool would seem to be missing.
    await ask({ file: '/bin/sh', args: ['-c', ':'], cwd: folder, timeoutMs: 10_000 }).catch((error) => {
      throw new Unusable(`No program can be started: ${error.cause?.message ?? error.message}`, {
        cause: error,
      });
    });
    const toolchain = await findToolchain(
      { path: config.PATH, magickBin: config.MAGICK_BIN, rsvgBin: config.RSVG_BIN },
      ask,
    );
    checkNamedTools(config, toolchain);
    const capabilities = capabilitiesOf(toolchain);
    for (const problem of capabilities.problems) log.warn(problem);
    if (capabilities.outputs.length === 0) throw new Unusable('Nothing can be converted on this machine.');

    const limits = toolLimits(config);
    const { confine, layers: confinement } = await shutIn({
      ...{ config, toolchain, limits, folder, launchers, log },
      assets: ASSETS,
    });
    const shared = { searchPath: config.PATH, policyFolder: ASSETS, limits, confine };
    // bubblewrap brings namespaces, and a launcher with tools that nothing confines needs none.
    if (confinement.files === 'landlock') {
      isolated = await isolateLaunchers(workspaces.home, folder, toolchain, (own) =>
        createRun({ ...shared, launchers: own }),
      );
      if (isolated) await launchers.close(); // they have found the tools, and are not needed any more
    }
    const layers: Layers = { ...confinement, ...(isolated && { processes: 'namespace' }) };
    const launching = { ...shared, launchers: isolated ?? launchers };
    const run = createRun(launching);
    await checkPolicy(workspaces, toolchain, run, limits);
    const workers = await warmWorkers({
      ...{ config, magick: toolchain.magick, workspaces, launching, log },
      onStart: () => observer?.workerStarted(),
      onFallback: (outcome) => observer?.workerFellBack(outcome),
    });
    const pool = createPool({ concurrency: config.CONCURRENCY, queueLimit: config.QUEUE_LIMIT });
    const convert = createConvert({
      toolchain,
      pool,
      run: reportFailures(workers?.run ?? run, log, observer),
      srgbProfile: `${ASSETS}/srgb.icc`,
      limits: {
        maxPixels: config.MAX_PIXELS,
        maxTotalPixels: config.MAX_TOTAL_PIXELS,
        maxFrames: config.MAX_FRAMES,
      },
      timeoutMs: config.CONVERT_TIMEOUT_MS,
      maxFileBytes: maxToolFileBytes(config),
      ...(observer && { observe: observer.conversion }),
    });
    const load = (): MillLoad => {
      const { ready, resting } = workers ?? { ready: 0, resting: 0 };
      return { ...pool.load(), workersReady: ready, workersResting: resting };
    };
    const close = async (): Promise<void> => {
      await workers?.close();
      await tidy();
    };
    return { toolchain, capabilities, convert, workspaces, layers, load, close };
  } catch (error) {
    await tidy();
    throw error;
  }
}

/** @throws Unusable when a setting names a program that is not the tool, instead of going on without that tool */
function checkNamedTools({ MAGICK_BIN, RSVG_BIN }: MillSettings, { magick, rsvg }: Toolchain): void {
  const named = [
    { setting: 'MAGICK_BIN', path: MAGICK_BIN, tool: magick, label: 'ImageMagick 6 or 7' },
    { setting: 'RSVG_BIN', path: RSVG_BIN, tool: rsvg, label: 'rsvg-convert' },
  ];
  const wrong = named.filter(({ path, tool }) => path !== undefined && !tool);
  if (wrong.length === 0) return;
  const problems = wrong.map(
    ({ setting, path, label }) => `${setting}="${path}" does not run, or does not answer as ${label}.`,
  );
  throw new Unusable(problems.join(' '));
}

/** Logs what a failed tool printed, at debug alone since it may quote what a picture contains, and counts kills. */
function reportFailures(run: Run, log: Logger, observer: MillObserver | undefined): Run {
  return (command) =>
    run(command).catch((error) => {
      if (error instanceof CommandFailed) {
        log.debug({ err: error, stderr: error.stderr }, 'a tool failed');
        const reason = killReason(error);
        if (reason) observer?.toolKilled(reason);
      }
      throw error;
    });
}

/** Tries out what every conversion depends on: a tool that obeys. */
async function checkPolicy(
  workspaces: Workspaces,
  { magick }: Pick<Toolchain, 'magick'>,
  run: Run,
  limits: ToolLimits,
): Promise<void> {
  await workspaces.use({}, async ({ path }) => {
    if (magick && !(await policyHolds(magick, run, path, limits))) {
      throw new Unusable(`${magick.path} does not obey the policy in ${ASSETS}: not safe to serve.`);
    }
  });
}
