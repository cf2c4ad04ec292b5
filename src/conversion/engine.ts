/** @module Creates the conversion engine without a server: tools, sandbox, queue, workers and temporary folders. */
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { isDiskFull } from '../errors.ts';
import { maxOpenFiles } from '../files/open-file-limit.ts';
import { removeStaleWorkspaces } from '../files/stale.ts';
import { createWorkspaces, type Workspaces } from '../files/workspace.ts';
import { ASSETS_DIR } from '../folders.ts';
import { CommandError, type KillReason, killReason, type RunCommand } from '../process/command.ts';
import { createLaunchers, type Launchers } from '../process/launcher/launcher.ts';
import { isPolicyEnforced, NO_POLICY_FOLDER, writePolicy } from '../process/policy.ts';
import { createQueue } from '../process/queue.ts';
import { createRunner, type MagickLimits } from '../process/runner.ts';
import { configureSandbox, magickLimits } from '../process/sandbox/configure.ts';
import { TOOL_OPEN_FILES } from '../process/sandbox/layers.ts';
import { isolateLaunchers } from '../process/sandbox/namespaces.ts';
import type { SandboxLayers } from '../process/sandbox/types.ts';
import { findToolchain, type Toolchain } from '../process/toolchain.ts';
import type { FallbackOutcome } from '../process/workers/pool.ts';
import { createWarmWorkerPool } from '../process/workers/start.ts';
import { StartupError, toStartupError } from '../startup-error.ts';
import { type Capabilities, detectCapabilities } from './capabilities.ts';
import { createConvert, MAX_PREPARATIONS } from './convert.ts';
import { grantsFor, optionalTools, selectExtras } from './extras.ts';
import type { ConversionEvent, Convert } from './types.ts';

// Re-exported for the server, which imports nothing from the process layer.
export { KILL_REASONS, type KillReason } from '../process/command.ts';
export { type ConversionQueue, createQueue } from '../process/queue.ts';
export type { SandboxLayers } from '../process/sandbox/types.ts';
export { FALLBACK_OUTCOMES, type FallbackOutcome } from '../process/workers/pool.ts';

/** Maximum number of threads of a tool, as in the policy. Each thread takes up to 72 MiB of address space. */
const MAX_THREADS = 8;

/** Slots in addition to `CONCURRENCY`, so that a client without a running conversion does not wait for long ones of others. */
const RESERVED_SLOTS = 1;

/** Converts images with the tools of this machine. */
export interface ConversionEngine {
  readonly toolchain: Toolchain;
  readonly capabilities: Capabilities;
  readonly convert: Convert;
  readonly workspaces: Workspaces;
  /** Layers of the sandbox that confines the tools. */
  readonly layers: SandboxLayers;
  /** Returns the current numbers of conversions and workers. */
  stats(): EngineStats;
  /** Ends the workers and launchers, and removes temporary files. */
  close(): Promise<void>;
}

interface EngineStats {
  /** Conversions in the queue, including those whose input is being prepared. */
  readonly waiting: number;
  /** Conversions in progress. */
  readonly running: number;
  /** Workers that have not converted an image yet. */
  readonly workersSpare: number;
  /** Workers that wait for another image of the same client. */
  readonly workersIdle: number;
}

/** Callbacks for events of the engine. */
interface EngineEvents {
  /** A conversion has finished or failed. */
  conversion(conversion: ConversionEvent): void;
  /** A tool was killed. */
  toolKilled(reason: KillReason): void;
  /** A worker has started. */
  workerStarted(): void;
  /** A worker did not convert an image, and a new process was started for it. */
  workerFellBack(outcome: FallbackOutcome): void;
}

const NO_EVENTS: EngineEvents = {
  conversion() {},
  toolKilled() {},
  workerStarted() {},
  workerFellBack() {},
};

/** Options of {@link createConversionEngine}. */
export interface EngineOptions {
  readonly events?: Partial<EngineEvents>;
  /** Whether ImageMagick processes wait for images. A single image is faster without them. Default: true. */
  readonly warmWorkers?: boolean;
}

/**
 * Creates the engine: removes files of dead processes, finds the tools, sets up the sandbox and tests the policy.
 *
 * @throws {StartupError} if nothing can be converted, or not safely
 */
export async function createConversionEngine(
  config: Config,
  log: Logger,
  { events: handled = {}, warmWorkers = true }: EngineOptions = {},
): Promise<ConversionEngine> {
  assertSystem();
  const events = { ...NO_EVENTS, ...handled };
  const swept = await removeStaleWorkspaces(config.TEMP_DIR);
  if (swept.length > 0) log.info({ swept }, 'removed working files of processes that have ended');
  const workspaces = createWorkspaces(config.TEMP_DIR);
  const launchers = createLaunchers(workspaces.root);
  let isolated: Launchers | undefined;
  const cleanUp = async (): Promise<void> => {
    await Promise.all([launchers.close(), isolated?.close()]);
    await workspaces.close();
  };
  try {
    const folder = await workspaces.root().catch((cause: Error) => {
      if (isDiskFull(cause)) throw cause;
      throw new StartupError(`TEMP_DIR ${config.TEMP_DIR} cannot be written: ${cause.message}`, { cause });
    });
    // The probes read no image. Under the policy, ImageMagick 6 would list no formats.
    const probe = createRunner({ launchers, searchPath: config.PATH, policyFolder: NO_POLICY_FOLDER });
    // If no process can be started, every tool would be reported as missing.
    await probe({ file: '/bin/sh', args: ['-c', ':'], cwd: folder, timeoutMs: 10_000 }).catch((error) => {
      throw new StartupError(`No program can be started: ${error.cause?.message ?? error.message}`, {
        cause: error,
      });
    });
    const extras = selectExtras(config);
    const optional = optionalTools(extras);
    const toolchain = await findToolchain(
      { path: config.PATH, magickBin: config.MAGICK_BIN, rsvgBin: config.RSVG_BIN, optional },
      probe,
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
      assets: ASSETS_DIR,
      readable: policies.folders,
    });
    const shared = {
      searchPath: config.PATH,
      policyFolder: ASSETS_DIR,
      limits,
      confine,
      ...(policies.grantsFolder && { grantsFolder: policies.grantsFolder }),
    };
    // bubblewrap creates its own namespaces.
    if (confinement.files === 'landlock') {
      isolated = await isolateLaunchers(workspaces.root, folder, toolchain, (own) =>
        createRunner({ ...shared, launchers: own }),
      );
      if (isolated) await launchers.close(); // they were needed only for the probes
    }
    const layers: SandboxLayers = { ...confinement, ...(isolated && { processes: 'namespace' }) };
    const launchOptions = { ...shared, launchers: isolated ?? launchers };
    const run = createRunner(launchOptions);
    await assertPolicyEnforced(workspaces, toolchain, run, limits);
    const workers = warmWorkers
      ? await createWarmWorkerPool({
          config,
          magick: toolchain.magick,
          workspaces,
          launchOptions,
          log,
          workerGrantsFolder: policies.workerGrantsFolder,
          onStart: events.workerStarted,
          onFallback: events.workerFellBack,
        })
      : undefined;
    const queue = createQueue({
      concurrency: config.CONCURRENCY,
      queueLimit: config.QUEUE_LIMIT,
      reservedSlots: RESERVED_SLOTS,
      maxPreparations: MAX_PREPARATIONS,
    });
    const convert = createConvert({
      config,
      toolchain,
      queue,
      // The pool runs other commands than those of ImageMagick in new processes.
      run: reportFailures(workers?.run ?? run, log, events),
      srgbProfile: `${ASSETS_DIR}/srgb.icc`,
      maxThreads: Math.min(availableParallelism(), MAX_THREADS),
      onFinished: events.conversion,
    });
    const stats = (): EngineStats => {
      const { spare, idle } = workers ?? { spare: 0, idle: 0 };
      return { ...queue.stats(), workersSpare: spare, workersIdle: idle };
    };
    const close = async (): Promise<void> => {
      await workers?.close();
      await cleanUp();
    };
    return { toolchain, capabilities, convert, workspaces, layers, stats, close };
  } catch (error) {
    await cleanUp();
    throw toStartupError(error, config);
  }
}

/**
 * Checks what every program needs that this process starts. Otherwise, each tool would be reported as missing.
 *
 * @throws {StartupError} if this process can open too few files, or cannot see its processes
 */
export function assertSystem(): void {
  const files = maxOpenFiles();
  if (files < TOOL_OPEN_FILES)
    throw new StartupError(
      `This process can open only ${files} files: raise the limit to at least ${TOOL_OPEN_FILES} (ulimit -n).`,
    );
  if (process.platform === 'linux' && !existsSync('/proc/self'))
    throw new StartupError('/proc is missing: mount it (mount -t proc proc /proc).');
}

/**
 * Checks the tools that settings name. Without this check, the service would start without a misspelled tool.
 *
 * @throws {StartupError} if a setting names a program that is not the tool
 */
function checkNamedTools({ MAGICK_BIN, RSVG_BIN }: Config, { magick, rsvg }: Toolchain): void {
  const named = [
    { setting: 'MAGICK_BIN', path: MAGICK_BIN, tool: magick, label: 'ImageMagick 6 or 7' },
    { setting: 'RSVG_BIN', path: RSVG_BIN, tool: rsvg, label: 'rsvg-convert' },
  ];
  const wrong = named.filter(({ path, tool }) => path !== undefined && !tool);
  if (wrong.length === 0) return;
  const problems = wrong.map(
    ({ setting, path, label }) => `${setting}="${path}" does not run, or is not ${label}.`,
  );
  throw new StartupError(problems.join(' '));
}

/** Folders with policies that permit more than the one in `assets/`. */
interface GrantedPolicies {
  /** Permits the coders of extra formats. Undefined if there are none. */
  readonly grantsFolder?: string;
  /** Also permits what workers need. */
  readonly workerGrantsFolder: string;
  /** All of the folders. */
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
  await writePolicy(ASSETS_DIR, workerGrantsFolder, { coders, stdin: true });
  if (coders.length === 0) return { workerGrantsFolder, folders: [workerGrantsFolder] };
  await writePolicy(ASSETS_DIR, grantsFolder, { coders });
  return { grantsFolder, workerGrantsFolder, folders: [grantsFolder, workerGrantsFolder] };
}

/** Logs the output of failed tools at level debug, because it can quote the content of images, and reports kills. */
function reportFailures(run: RunCommand, log: Logger, events: EngineEvents): RunCommand {
  return (command) =>
    run(command).catch((error) => {
      if (error instanceof CommandError) {
        log.debug({ err: error, stderr: error.stderr }, 'a tool failed');
        const reason = killReason(error);
        if (reason) events.toolKilled(reason);
      }
      throw error;
    });
}

/** @throws {StartupError} if ImageMagick does not enforce the policy */
async function assertPolicyEnforced(
  workspaces: Workspaces,
  { magick }: Toolchain,
  run: RunCommand,
  limits: MagickLimits,
): Promise<void> {
  await workspaces.use({}, async ({ path }) => {
    if (magick && !(await isPolicyEnforced(magick, run, path, limits))) {
      throw new StartupError(
        `${magick.path} does not enforce the policy in ${ASSETS_DIR}, so images cannot be converted safely.`,
      );
    }
  });
}
