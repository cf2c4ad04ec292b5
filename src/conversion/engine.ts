import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { StartupError } from '../errors.ts';
import { removeStaleWorkspaces } from '../files/stale.ts';
import { createWorkspaces, type Workspaces } from '../files/workspace.ts';
import { CommandError, type KillReason, killReason, type RunCommand } from '../process/command.ts';
import type { MagickLimits } from '../process/environment.ts';
import { createLaunchers, type Launchers } from '../process/launcher/pool.ts';
import { isPolicyEnforced, writePolicy } from '../process/policy.ts';
import { createQueue } from '../process/queue.ts';
import { createRunner } from '../process/runner.ts';
import { configureSandbox, magickLimits } from '../process/sandbox/configure.ts';
import { isolateLaunchers } from '../process/sandbox/namespaces.ts';
import type { SandboxLayers } from '../process/sandbox/types.ts';
import { findToolchain, type Toolchain } from '../process/toolchain.ts';
import type { FallbackOutcome } from '../process/workers/pool.ts';
import { createWarmWorkerPool } from '../process/workers/start.ts';
import { type Capabilities, detectCapabilities } from './capabilities.ts';
import { createConvert } from './convert.ts';
import { extrasOf, grantsFor, optionalTools } from './extras.ts';
import type { ConversionEvent, Convert } from './types.ts';

/** All that converts, without a server: tools that were found and tested, a pool, folders to work in. */

/** The server observes the engine, and imports nothing of the process layer. */
export { KILL_REASONS, type KillReason } from '../process/command.ts';
export type { SandboxLayers } from '../process/sandbox/types.ts';
export { FALLBACK_OUTCOMES, type FallbackOutcome } from '../process/workers/pool.ts';

const ASSETS = fileURLToPath(new URL('../../assets', import.meta.url));
/** Maximum number of threads of a tool. The policy has the same number. Each takes 72 MiB of address space at most. */
const MAX_THREADS = 8;
const EMPTY_CONFIG_DIR = '/nonexistent';

export interface ConversionEngine {
  readonly toolchain: Toolchain;
  readonly capabilities: Capabilities;
  readonly convert: Convert;
  readonly workspaces: Workspaces;
  /** How the tools are shut in. */
  readonly layers: SandboxLayers;
  /** What waits, and what is under way. */
  stats(): EngineStats;
  /** Removes what is left on disk. */
  close(): Promise<void>;
}

interface EngineStats {
  readonly waiting: number;
  readonly running: number;
  readonly workersSpare: number;
  readonly workersIdle: number;
}

/** Is told what happens, as it happens. */
export interface EngineEvents {
  conversion(conversion: ConversionEvent): void;
  toolKilled(reason: KillReason): void;
  workerStarted(): void;
  workerFellBack(outcome: FallbackOutcome): void;
}

/**
 * Finds the tools, tests the policy and tidies up after dead processes.
 *
 * @throws StartupError when nothing could be converted, or not safely
 */
export async function createConversionEngine(
  config: Config,
  log: Logger,
  events?: EngineEvents,
): Promise<ConversionEngine> {
  const swept = await removeStaleWorkspaces(config.TEMP_DIR);
  if (swept.length > 0) log.info({ swept }, 'removed the working files of processes that are gone');
  const workspaces = createWorkspaces(config.TEMP_DIR);
  const launchers = createLaunchers(workspaces.root);
  let isolated: Launchers | undefined;
  const cleanUp = async (): Promise<void> => {
    await Promise.all([launchers.close(), isolated?.close()]);
    await workspaces.close();
  };
  try {
    const folder = await workspaces.root().catch((cause: Error) => {
      throw new StartupError(`TEMP_DIR ${config.TEMP_DIR} cannot be written: ${cause.message}`, { cause });
    });
    // Asking a tool who it is involves no picture, and version 6 lists no formats under the policy.
    const ask = createRunner({ launchers, searchPath: config.PATH, policyFolder: EMPTY_CONFIG_DIR });
    // Otherwise every tool would seem to be missing.
    await ask({ file: '/bin/sh', args: ['-c', ':'], cwd: folder, timeoutMs: 10_000 }).catch((error) => {
      throw new StartupError(`No program can be started: ${error.cause?.message ?? error.message}`, {
        cause: error,
      });
    });
    const extras = extrasOf(config);
    const optional = optionalTools(extras);
    const toolchain = await findToolchain(
      { path: config.PATH, magickBin: config.MAGICK_BIN, rsvgBin: config.RSVG_BIN, optional },
      ask,
    );
    checkNamedTools(config, toolchain);
    const capabilities = detectCapabilities(toolchain, extras);
    if (capabilities.unavailable.length > 0) throw new StartupError(capabilities.unavailable.join('\n'));
    for (const problem of capabilities.problems) log.warn(problem);
    if (capabilities.outputs.length === 0)
      throw new StartupError('Nothing can be converted on this machine.');

    const limits = magickLimits(config);
    const policies = await writePolicies(capabilities, toolchain, folder);
    const { confine, layers: confinement } = await configureSandbox({
      config,
      toolchain,
      limits,
      folder,
      launchers,
      log,
      assets: ASSETS,
      readable: policies.folders,
    });
    const shared = {
      searchPath: config.PATH,
      policyFolder: ASSETS,
      limits,
      confine,
      ...(policies.grantsFolder && { grantsFolder: policies.grantsFolder }),
    };
    // bubblewrap brings namespaces, and a launcher with tools that nothing confines needs none.
    if (confinement.files === 'landlock') {
      isolated = await isolateLaunchers(workspaces.root, folder, toolchain, (own) =>
        createRunner({ ...shared, launchers: own }),
      );
      if (isolated) await launchers.close(); // they have found the tools, and are not needed any more
    }
    const layers: SandboxLayers = { ...confinement, ...(isolated && { processes: 'namespace' }) };
    const launchOptions = { ...shared, launchers: isolated ?? launchers };
    const run = createRunner(launchOptions);
    await assertPolicyEnforced(workspaces, toolchain, run, limits);
    const workers = await createWarmWorkerPool({
      config,
      magick: toolchain.magick,
      workspaces,
      launchOptions,
      log,
      workerGrantsFolder: policies.workerGrantsFolder,
      onStart: () => events?.workerStarted(),
      onFallback: (outcome) => events?.workerFellBack(outcome),
    });
    const pool = createQueue({ concurrency: config.CONCURRENCY, queueLimit: config.QUEUE_LIMIT });
    const convert = createConvert({
      config,
      toolchain,
      pool,
      run: reportFailures(workers?.run ?? run, log, events),
      srgbProfile: `${ASSETS}/srgb.icc`,
      maxThreads: Math.min(availableParallelism(), MAX_THREADS),
      ...(events && { onFinished: events.conversion }),
    });
    const load = (): EngineStats => {
      const { spare: ready, idle: resting } = workers ?? { spare: 0, idle: 0 };
      return { ...pool.stats(), workersSpare: ready, workersIdle: resting };
    };
    const close = async (): Promise<void> => {
      await workers?.close();
      await cleanUp();
    };
    return { toolchain, capabilities, convert, workspaces, layers, stats: load, close };
  } catch (error) {
    await cleanUp();
    throw error;
  }
}

/** @throws StartupError when a setting names a program that is not the tool, instead of going on without that tool */
function checkNamedTools({ MAGICK_BIN, RSVG_BIN }: Config, { magick, rsvg }: Toolchain): void {
  const named = [
    { setting: 'MAGICK_BIN', path: MAGICK_BIN, tool: magick, label: 'ImageMagick 6 or 7' },
    { setting: 'RSVG_BIN', path: RSVG_BIN, tool: rsvg, label: 'rsvg-convert' },
  ];
  const wrong = named.filter(({ path, tool }) => path !== undefined && !tool);
  if (wrong.length === 0) return;
  const problems = wrong.map(
    ({ setting, path, label }) => `${setting}="${path}" does not run, or does not answer as ${label}.`,
  );
  throw new StartupError(problems.join(' '));
}

/** Folders with policies that permit more than the one in `assets/`. */
interface GrantedPolicies {
  /** Permits the coders of extra formats. Undefined if there are none. */
  readonly grantsFolder?: string;
  /** Also permits what workers need. */
  readonly workerGrantsFolder: string;
  /** All of them. */
  readonly folders: readonly string[];
}

/** Writes the policies for the available formats and for workers to `root`. */
async function writePolicies(
  { inputs, outputs }: Capabilities,
  { magick }: Toolchain,
  root: string,
): Promise<GrantedPolicies> {
  const coders = magick ? grantsFor(inputs, outputs, magick.major) : [];
  const [grantsFolder, workerGrantsFolder] = [`${root}/policy`, `${root}/worker-policy`];
  await writePolicy(ASSETS, workerGrantsFolder, { coders, stdin: true });
  if (coders.length === 0) return { workerGrantsFolder, folders: [workerGrantsFolder] };
  await writePolicy(ASSETS, grantsFolder, { coders });
  return { grantsFolder, workerGrantsFolder, folders: [grantsFolder, workerGrantsFolder] };
}

/** Logs what a failed tool printed, at debug alone since it may quote what a picture contains, and counts kills. */
function reportFailures(run: RunCommand, log: Logger, observer: EngineEvents | undefined): RunCommand {
  return (command) =>
    run(command).catch((error) => {
      if (error instanceof CommandError) {
        log.debug({ err: error, stderr: error.stderr }, 'a tool failed');
        const reason = killReason(error);
        if (reason) observer?.toolKilled(reason);
      }
      throw error;
    });
}

/** Tries out what every conversion depends on: a tool that obeys. */
async function assertPolicyEnforced(
  workspaces: Workspaces,
  { magick }: Toolchain,
  run: RunCommand,
  limits: MagickLimits,
): Promise<void> {
  await workspaces.use({}, async ({ path }) => {
    if (magick && !(await isPolicyEnforced(magick, run, path, limits))) {
      throw new StartupError(`${magick.path} does not obey the policy in ${ASSETS}: not safe to serve.`);
    }
  });
}
