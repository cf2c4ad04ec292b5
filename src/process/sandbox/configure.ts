/** @module Derives the tools' limits from the settings, and starts and confines them. */
import { existsSync } from 'node:fs';
import type { Logger } from 'pino';
import { ASSETS_DIR, FORK_SERVER_LIBRARY } from '../../folders.ts';
import { type Config, MEMORY_PER_PIXEL, machineMemory } from '../../tables/config.ts';
import { StartupError } from '../../tables/errors.ts';
import { TOOLS, type ToolName } from '../../tables/tools.ts';
import type { RunCommand } from '../command.ts';
import { ForkServers, type RenewalReason, type ServedTool } from '../fork-server/servers.ts';
import {
  type Confine,
  createRunner,
  type EnvironmentOptions,
  environmentOf,
  type MagickLimits,
} from '../runner.ts';
import { installedTools, isScript, type Toolchain } from '../toolchain.ts';
import { findSandbox, NO_LAYERS, type Sandbox, type SandboxLayers } from './layers.ts';
import { listTrials } from './self-test.ts';

const MIB = 1024 ** 2;

/**
 * Returns the limits of ImageMagick.
 *
 * Converting an image of 50 megapixels takes up to 1.22 GB: 26 bytes per pixel. The service checks
 * the settings before it starts a tool. These limits apply to files with a false header, and allow
 * for the overhead of the tools.
 */
export function magickLimits({ MAX_PIXELS, MAX_FRAMES, maxSide }: Config): MagickLimits {
  return {
    side: maxSide,
    pixels: Math.ceil(MAX_PIXELS * 1.1) + 65_536,
    frames: MAX_FRAMES,
    memoryBytes: Math.max(1536 * MIB, Math.min(MEMORY_PER_PIXEL * MAX_PIXELS, machineMemory())),
  };
}

/**
 * Returns the maximum size of a file that a tool writes, in bytes: four bytes per pixel of the
 * largest input, which is more than any result takes, and 16 MiB.
 */
export function maxToolFileBytes({ MAX_TOTAL_PIXELS }: Config): number {
  return 4 * MAX_TOTAL_PIXELS + 16 * MIB;
}

export interface SandboxConfig {
  readonly config: Config;
  readonly toolchain: Toolchain;
  /** Coders of ImageMagick that the fork server loads. */
  readonly coders: readonly string[];
  /** Folder with a copy of the policy that permits more, if a format needs it. */
  readonly grantsFolder: string | undefined;
  /** An empty folder, for testing the tools. */
  readonly folder: string;
  /** Receives a warning when the sandbox lacks a layer. */
  readonly log: Logger;
  /** Maximum number of jobs of all tools at once. */
  readonly concurrency: number;
  /** Paths of tools that can be fork servers, if an earlier run has tried all under full layers. */
  readonly served?: readonly string[] | undefined;
  readonly onRenewal: (reason: RenewalReason) => void;
}

/** The tools, as they run in the sandbox. */
export interface ConfiguredTools {
  readonly run: RunCommand;
  readonly layers: SandboxLayers;
  /** The tools that can be used. */
  readonly toolchain: Toolchain;
  /** Why the other tools of this machine are not used: sentences by the name of the tool. */
  readonly refused: ReadonlyMap<ToolName, string>;
  /** Paths of the tools that are fork servers. */
  readonly served: readonly string[];
  close(): Promise<void>;
}

/**
 * Starts the fork servers, and configures the strongest sandbox that works on this machine.
 *
 * @throws {StartupError} if `SANDBOX=on` and no layer hides files from the tools, or if ImageMagick
 *   cannot be confined
 */
export async function configureSandbox(options: SandboxConfig): Promise<ConfiguredTools> {
  const { config, log, grantsFolder, toolchain } = options;
  const limits = magickLimits(config);
  const environment = { searchPath: config.PATH, policyFolder: ASSETS_DIR, grantsFolder, limits };
  if (config.SANDBOX === 'off') {
    log.warn(
      { setting: 'SANDBOX' },
      'SANDBOX=off: the tools run unconfined, with all permissions of this process',
    );
    const unused = { refused: new Map(), served: [], close: async () => {} };
    return { run: createRunner(environment), layers: NO_LAYERS, toolchain, ...unused };
  }
  const isBuilt = existsSync(FORK_SERVER_LIBRARY);
  const servers = await startServers(options, environment, isBuilt);
  const runnerWith = (confine: Confine | undefined): RunCommand =>
    createRunner({ ...environment, library: FORK_SERVER_LIBRARY, confine, servers });
  try {
    const sandbox = isBuilt ? await chooseLayers(options, runnerWith) : undefined;
    const { confine, layers = NO_LAYERS, refused: paths = [] } = sandbox ?? {};
    const refused = explainRefused(paths, toolchain);
    reportRefused(refused, log);
    reportMissingLayers(layers, options, isBuilt);
    const isUsed = (name: string): boolean => !refused.has(name as ToolName);
    const used = installedTools(toolchain).filter(({ name }) => isUsed(name));
    const served = used.map(({ path }) => path).filter((path) => servers.serves(path));
    // Only fork servers have namespaces. Those not started do not know yet whether they can.
    const isolated = !options.served && servers.isolated && served.length === used.length;
    return {
      run: runnerWith(confine),
      layers: layers.files !== 'none' && isolated ? { ...layers, processes: 'namespace' } : layers,
      toolchain: Object.fromEntries(Object.entries(toolchain).filter(([name]) => isUsed(name))) as Toolchain,
      refused,
      served: confine ? served : [],
      close: () => servers.close(),
    };
  } catch (error) {
    await servers.close();
    throw error;
  }
}

function explainRefused(paths: readonly string[], toolchain: Toolchain): ReadonlyMap<ToolName, string> {
  const refused = installedTools(toolchain).filter(({ path }) => paths.includes(path));
  return new Map(
    refused.map(({ name, path }) => {
      const { lacks, debianPackage } = TOOLS[name];
      const reason = 'it is linked statically, uses another C library, or needs files that the sandbox hides';
      const advice = `On Debian: apt install ${debianPackage}. SANDBOX=off uses it, and confines no tool`;
      return [name, `${path} cannot be confined, and is not used (${lacks}): ${reason}. ${advice}.`];
    }),
  );
}

/** @throws {StartupError} if ImageMagick is refused, which nearly every conversion needs */
function reportRefused(refused: ReadonlyMap<ToolName, string>, log: Logger): void {
  const magick = refused.get('magick');
  if (magick) throw new StartupError(magick, { setting: 'SANDBOX' });
  for (const sentence of refused.values()) log.warn({ setting: 'SANDBOX' }, sentence);
}

async function startServers(
  { config, toolchain, coders, log, concurrency, served, onRenewal }: SandboxConfig,
  environment: EnvironmentOptions,
  isBuilt: boolean,
): Promise<ForkServers> {
  const prepared = installedTools(toolchain).map(async ({ name, path }): Promise<ServedTool[]> => {
    if (await isScript(path)) return []; // its interpreter would be served
    if (served && !served.includes(path)) return [];
    const { prepare = '', reads = [], env } = TOOLS[name];
    const loaded = prepare === 'magick' ? [prepare, ...coders].join(' ') : prepare;
    return [{ file: path, prepare: loaded, env, dependencies: [path, '/etc/ld.so.cache', ...reads] }];
  });
  const isUsed = isBuilt && config.FORK_SERVER === 'on';
  const servers = new ForkServers({
    library: FORK_SERVER_LIBRARY,
    concurrency,
    env: environmentOf(environment, { cwd: '/nonexistent', timeoutMs: config.CONVERT_TIMEOUT_MS }),
    tools: isUsed ? (await Promise.all(prepared)).flat() : [],
    onRenewal(reason) {
      log.debug({ reason }, 'a fork server was replaced');
      onRenewal(reason);
    },
    onRefused: (file, error) =>
      log.warn(`${file} cannot be a fork server, and is started for each image: ${error.message}`),
  });
  await servers.start(served).catch(async (error) => {
    await servers.close();
    throw error;
  });
  return servers;
}

function chooseLayers(
  { config, toolchain, grantsFolder, folder, served }: SandboxConfig,
  createTrialRunner: (confine: Confine | undefined) => RunCommand,
): Promise<Sandbox> {
  return findSandbox({
    tools: listTrials(toolchain),
    readable: grantsFolder === undefined ? [ASSETS_DIR] : [ASSETS_DIR, grantsFolder],
    limits: {
      memoryBytes: magickLimits(config).memoryBytes + 512 * MIB,
      fileBytes: maxToolFileBytes(config),
    },
    filters: `${ASSETS_DIR}/seccomp`,
    folder,
    proven: served !== undefined,
    createTrialRunner,
  });
}

/** @throws {StartupError} if `SANDBOX=on` and no layer hides files from the tools */
function reportMissingLayers(
  { files, syscalls }: SandboxLayers,
  { config, log }: SandboxConfig,
  isBuilt: boolean,
): void {
  if (files === 'none') {
    const advice = isBuilt
      ? 'use Linux 5.13 or later with Landlock and seccomp, and tools that are not scripts'
      : `build imagemill on Linux with a C compiler, which makes ${FORK_SERVER_LIBRARY}`;
    if (config.SANDBOX === 'on')
      throw new StartupError(`SANDBOX=on, but no available sandbox hides files from the tools: ${advice}.`, {
        setting: 'SANDBOX',
      });
    log.warn({ setting: 'SANDBOX' }, `the tools can read every file that this process can read: ${advice}`);
  }
  if (syscalls === 'deny-list') {
    log.warn(
      'a tool needs system calls that are not on the allow-list: using the deny-list, which permits more; see SECURITY.md',
    );
  }
}
