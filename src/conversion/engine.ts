/** @module Creates the conversion engine without a server: tools, sandbox, queue and folders. */
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import type { Logger } from 'pino';
import { removeStaleWorkspaces } from '../files/stale.ts';
import { DEFAULT_FOLDERS, maxOpenFiles } from '../files/system.ts';
import { Workspaces } from '../files/workspace.ts';
import { ASSETS_DIR } from '../folders.ts';
import { type KillReason, PROBE_TIMEOUT_MS, type RunCommand } from '../process/command.ts';
import type { RenewalReason } from '../process/fork-server/servers.ts';
import { assertProtections, isPolicyEnforced, writePolicy } from '../process/policy.ts';
import { createProbeRunner, reportFailures, TOOL_OPEN_FILES } from '../process/runner.ts';
import { type ConfiguredTools, configureSandbox, magickLimits } from '../process/sandbox/configure.ts';
import { findToolchain, type Toolchain } from '../process/toolchain.ts';
import { openTrialCache } from '../process/trial-cache.ts';
import { type Config, listWithoutEffect } from '../tables/config.ts';
import { isDiskFull, StartupError, toStartupError } from '../tables/errors.ts';
import { PATH_SETTINGS, TOOLS } from '../tables/tools.ts';
import { createCombine } from './combine.ts';
import type { ConversionEvent } from './context.ts';
import { createConvert } from './convert.ts';
import { createIdentify } from './identify.ts';
import { MAX_PREPARATIONS } from './input/inspect.ts';
import {
  type Capabilities,
  detectCapabilities,
  grantsFor,
  preparedCoders,
  toolContext,
  toolSearch,
} from './limits/capabilities.ts';
import { ConversionQueue } from './queue/queue.ts';

// Re-exported for the server, which imports nothing from the process layer.
export { KILL_REASONS, type KillReason } from '../process/command.ts';
export { RENEWAL_REASONS, type RenewalReason } from '../process/fork-server/servers.ts';

/** Maximum threads of a tool, as in the policy. Each takes up to 72 MiB of address space. */
const MAX_THREADS = 8;

/** Slots beside `CONCURRENCY`: a client without a conversion does not wait for those of others. */
const RESERVED_SLOTS = 1;

/** Converts images with the tools of this machine. */
export type ConversionEngine = Awaited<ReturnType<typeof createConversionEngine>>;

interface EngineEvents {
  conversion(conversion: ConversionEvent): void;
  toolKilled(reason: KillReason): void;
  serverRenewed(reason: RenewalReason): void;
}

/** What the caller of the engine knows of the tools. */
interface KnownTools {
  /** The tools, if the caller has found them. */
  readonly toolchain?: Toolchain;
  /** Folder for the results of the trials of the tools. Without it, all are tried. */
  readonly cacheFolder?: string | undefined;
}

/**
 * Creates the engine: finds the tools, removes files of dead processes, sets up the sandbox and
 * tests the policy.
 *
 * @throws {StartupError} if nothing can be converted, or not safely
 */
export async function createConversionEngine(
  config: Config,
  log: Logger,
  events: Partial<EngineEvents> = {},
  known: KnownTools = {},
) {
  const cache = await openTrialCache(known.cacheFolder, config, toolSearch(config));
  const proven = cache?.proven;
  const found = known.toolchain ?? proven?.toolchain ?? (await findTools(config));
  checkNamedTools(config, found);
  await assertProtections(ASSETS_DIR);
  for (const warning of listWithoutEffect(config)) log.warn(warning);
  // Without TEMP_DIR, an earlier start may have chosen the other folder.
  const isDefault = DEFAULT_FOLDERS.includes(config.TEMP_DIR);
  const folders = new Set([config.TEMP_DIR, ...(isDefault ? DEFAULT_FOLDERS : [])]);
  const swept = (await Promise.all([...folders].map((folder) => removeStaleWorkspaces(folder)))).flat();
  if (swept.length > 0) log.info({ swept }, 'removed working files of processes that have ended');
  const workspaces = new Workspaces(config.TEMP_DIR);
  let tools: ConfiguredTools | undefined;
  const close = async (): Promise<void> => {
    await tools?.close();
    await workspaces.close();
  };
  try {
    const folder = await openRoot(workspaces, config);
    const possible = detectCapabilities(found, config);
    tools = await configureSandbox({
      config,
      toolchain: found,
      folder,
      log,
      coders: preparedCoders(possible.outputs),
      grantsFolder: await writeGrants(possible, found, folder),
      served: proven?.served,
      // pdfinfo runs during preparations, and all others during conversions.
      concurrency: RESERVED_SLOTS + Math.max(config.CONCURRENCY, MAX_PREPARATIONS.pdf),
      onRenewal: (reason) => events.serverRenewed?.(reason),
    });
    const { layers, served, toolchain, refused } = tools;
    const capabilities = requireCapabilities(config, tools, log);
    if (!proven) {
      await assertPolicyEnforced(workspaces, toolchain, tools.run, config);
      // A weaker sandbox can have a passing cause, such as a machine too busy for the trials.
      if (layers.files === 'landlock' && layers.syscalls === 'allow-list' && refused.size === 0)
        cache?.save({ toolchain, served });
    }
    const run = reportFailures(cache?.forgetOnFailure(tools.run) ?? tools.run, log, (reason) =>
      events.toolKilled?.(reason),
    );
    const queue = new ConversionQueue({
      concurrency: config.CONCURRENCY,
      queueLimit: config.QUEUE_LIMIT,
      reservedSlots: RESERVED_SLOTS,
      maxPreparations: MAX_PREPARATIONS,
    });
    const srgbProfile = `${ASSETS_DIR}/srgb.icc`;
    const machine = { config, toolchain, tools: toolContext(toolchain), run, srgbProfile };
    const maxThreads = Math.min(availableParallelism(), MAX_THREADS);
    return {
      ...createConvert({ ...machine, queue, maxThreads, onFinished: events.conversion }),
      identify: createIdentify({ ...machine, capabilities, queue }),
      combine: createCombine({ ...machine, queue }),
      toolchain,
      /** Why other tools of this machine are not used. */
      refused,
      capabilities,
      workspaces,
      /** Layers of the sandbox that confines the tools. */
      layers,
      /** Returns the current numbers of conversions, and of tools that run in a fork server. */
      stats: () => ({ ...queue.stats(), forkServers: served.length }),
      /** Ends the fork servers, and removes temporary files. */
      close,
    };
  } catch (error) {
    await close();
    throw toStartupError(error, config);
  }
}

/**
 * Checks what every program needs that this process starts. Otherwise, each tool would be reported
 * as missing.
 *
 * @throws {StartupError} if this process can open too few files, or cannot see its processes
 */
function assertSystem(): void {
  const files = maxOpenFiles();
  if (files < TOOL_OPEN_FILES)
    throw new StartupError(
      `This process can open only ${files} files: raise the limit to at least ${TOOL_OPEN_FILES} (ulimit -n).`,
    );
  if (process.platform === 'linux' && !existsSync('/proc/self'))
    throw new StartupError('/proc is missing: mount it (mount -t proc proc /proc).');
}

/** Creates the folder for temporary files. */
async function openRoot(workspaces: Workspaces, { TEMP_DIR }: Config): Promise<string> {
  return workspaces.root().catch((cause: Error) => {
    if (isDiskFull(cause)) throw cause;
    throw new StartupError(`TEMP_DIR ${TEMP_DIR} cannot be written: ${cause.message}`, {
      cause,
      setting: 'TEMP_DIR',
    });
  });
}

/**
 * Finds the tools that the settings need.
 *
 * @throws {StartupError} if this process cannot start programs, so that every tool would be
 *   reported as missing
 */
export async function findTools(config: Config): Promise<Toolchain> {
  assertSystem();
  const probe = createProbeRunner(config.PATH);
  await probe({ file: '/bin/sh', args: ['-c', ':'], cwd: '/', timeoutMs: PROBE_TIMEOUT_MS }).catch(
    (cause) => {
      throw new StartupError(`No program can be started: ${cause.cause?.message ?? cause.message}`, {
        cause,
      });
    },
  );
  return findToolchain(toolSearch(config));
}

/**
 * @throws {StartupError} if nothing can be converted, or if a format that a setting names does not
 *   work
 */
function requireCapabilities(
  config: Config,
  { toolchain, refused }: ConfiguredTools,
  log: Logger,
): Capabilities {
  const capabilities = detectCapabilities(toolchain, config, refused);
  const [unavailable] = capabilities.unavailable;
  if (unavailable) {
    const messages = capabilities.unavailable.map(({ message }) => message);
    throw new StartupError(messages.join('\n'), { setting: unavailable.setting });
  }
  for (const { message } of capabilities.problems) log.warn(message);
  if (capabilities.outputs.length === 0) throw new StartupError('Nothing can be converted on this machine.');
  return capabilities;
}

/**
 * Checks the tools that settings name. Without this check, the service would start without a
 * misspelled tool.
 *
 * @throws {StartupError} if a setting names a program that is not the tool
 */
function checkNamedTools(config: Config, toolchain: Toolchain): void {
  const wrong = PATH_SETTINGS.filter(([tool, setting]) => config[setting] !== undefined && !toolchain[tool]);
  const [first] = wrong;
  if (!first) return;
  const problems = wrong.map(
    ([tool, setting]) => `${setting}="${config[setting]}" does not run, or is not ${TOOLS[tool].label}.`,
  );
  throw new StartupError(problems.join(' '), { setting: first[1] });
}

/** Writes the policy for extra formats to `root`. Returns its folder, if any needs more rights. */
async function writeGrants(
  { inputs, outputs }: Capabilities,
  { magick }: Toolchain,
  root: string,
): Promise<string | undefined> {
  const coders = magick ? grantsFor(inputs, outputs, magick.major) : [];
  if (coders.length === 0) return undefined;
  await writePolicy(`${root}/policy`, coders);
  return `${root}/policy`;
}

/** @throws {StartupError} if ImageMagick does not enforce the policy */
async function assertPolicyEnforced(
  workspaces: Workspaces,
  { magick }: Toolchain,
  run: RunCommand,
  config: Config,
): Promise<void> {
  await workspaces.use({}, async ({ path }) => {
    if (magick && !(await isPolicyEnforced(magick, run, path, magickLimits(config)))) {
      throw new StartupError(
        `${magick.path} does not enforce the policy in ${ASSETS_DIR}, so images cannot be converted safely.`,
      );
    }
  });
}
