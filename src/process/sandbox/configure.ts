/** @module Derives the resource limits of the tools from the settings, starts their fork servers and configures their sandbox. */
import { existsSync } from 'node:fs';
import type { Logger } from 'pino';
import { type Config, MEMORY_PER_PIXEL, machineMemory } from '../../config.ts';
import { StartupError } from '../../errors.ts';
import { TOOLS, type ToolName } from '../../tools.ts';
import type { RunCommand } from '../command.ts';
import { ForkServers, type RenewalReason, type ServedTool } from '../fork-server/servers.ts';
import { createRunner, type EnvironmentOptions, environmentOf, type MagickLimits } from '../runner.ts';
import { isScript, type Toolchain } from '../toolchain.ts';
import { findSandbox, NO_LAYERS, type Sandbox, type SandboxLayers } from './layers.ts';
import { listTrials } from './self-test.ts';

const MIB = 1024 ** 2;

/**
 * Returns the limits of ImageMagick.
 *
 * Converting an image of 50 megapixels takes up to 1.22 GB: 26 bytes per pixel. The service checks the settings before
 * it starts a tool. These limits apply to files with a false header, and allow for the overhead of the tools.
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
 * Returns the maximum size of a file that a tool writes, in bytes: four bytes per pixel of the largest input, which is
 * more than any result takes, and 16 MiB.
 */
export function maxToolFileBytes({ MAX_TOTAL_PIXELS }: Config): number {
  return 4 * MAX_TOTAL_PIXELS + 16 * MIB;
}

export interface SandboxConfig {
  readonly config: Config;
  readonly toolchain: Toolchain;
  /** Coders of ImageMagick that the fork server loads. */
  readonly coders: readonly string[];
  /** The environment of the tools, and the limits of ImageMagick. */
  readonly environment: EnvironmentOptions & { readonly limits: MagickLimits };
  /** An empty folder, for testing the tools. */
  readonly folder: string;
  /** Receives a warning when the sandbox lacks a layer. */
  readonly log: Logger;
  /** Folder with the files that the tools need, such as the policy and the seccomp filters. */
  readonly assets: string;
  /** Path of the compiled `fork-server.c`. */
  readonly library: string;
  /** Other folders that the tools can read. */
  readonly readable: readonly string[];
  /** Maximum number of jobs of all tools at once. */
  readonly concurrency: number;
  /** Paths of the tools that can be fork servers, if an earlier run has tried all tools under the strongest layers. */
  readonly served?: readonly string[] | undefined;
  /** Called when a fork server has been replaced. */
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
 * @throws {StartupError} if `SANDBOX=on` and no layer hides files from the tools, or if ImageMagick cannot be confined
 */
export async function configureSandbox(options: SandboxConfig): Promise<ConfiguredTools> {
  const { config, log, library, environment, toolchain } = options;
  if (config.SANDBOX === 'off') {
    log.warn(
      { setting: 'SANDBOX' },
      'SANDBOX=off: the tools run unconfined, with all permissions of this process',
    );
    const unused = { refused: new Map(), served: [], close: async () => {} };
    return { run: createRunner(environment), layers: NO_LAYERS, toolchain, ...unused };
  }
  const isBuilt = existsSync(library);
  const servers = await startServers(options, isBuilt);
  try {
    const { confine, layers, refused: paths } = isBuilt ? await chooseLayers(options, servers) : UNCONFINED;
    const refused = explainRefused(paths, toolchain);
    reportRefused(refused, log);
    const used = Object.entries(toolchain).filter(([name]) => !refused.has(name as ToolName));
    reportMissingLayers(layers, options, isBuilt);
    // Only fork servers have namespaces, and those that have not started do not know yet whether they can.
    const isolated =
      !options.served && servers.isolated && used.every(([, tool]) => !tool || servers.serves(tool.path));
    return {
      run: createRunner({ ...environment, library, confine, servers }),
      layers: layers.files !== 'none' && isolated ? { ...layers, processes: 'namespace' } : layers,
      toolchain: Object.fromEntries(used) as Toolchain,
      refused,
      served: confine ? used.flatMap(([, tool]) => (tool && servers.serves(tool.path) ? tool.path : [])) : [],
      close: () => servers.close(),
    };
  } catch (error) {
    await servers.close();
    throw error;
  }
}

const UNCONFINED: Sandbox = { confine: undefined, layers: NO_LAYERS, refused: [] };

/** Returns why tools are not used. */
function explainRefused(paths: readonly string[], toolchain: Toolchain): ReadonlyMap<ToolName, string> {
  const refused = Object.entries(toolchain).filter(([, tool]) => tool && paths.includes(tool.path));
  return new Map(
    refused.map(([name, tool]) => {
      const { lacks, debianPackage } = TOOLS[name as ToolName];
      const reason = 'it is linked statically, uses another C library, or needs files that the sandbox hides';
      const advice = `On Debian: apt install ${debianPackage}. SANDBOX=off uses it, and confines no tool`;
      return [
        name as ToolName,
        `${tool?.path} cannot be confined, and is not used (${lacks}): ${reason}. ${advice}.`,
      ];
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
  { config, toolchain, coders, environment, log, library, concurrency, served, onRenewal }: SandboxConfig,
  isBuilt: boolean,
): Promise<ForkServers> {
  const prepared = async (name: ToolName, file: string): Promise<ServedTool[]> => {
    if (await isScript(file)) return []; // its interpreter would be served
    if (served && !served.includes(file)) return [];
    const { prepare = '', reads = [] } = TOOLS[name];
    const loaded = prepare === 'magick' ? [prepare, ...coders].join(' ') : prepare;
    return [{ file, prepare: loaded, dependencies: [file, '/etc/ld.so.cache', ...reads] }];
  };
  const tools = Object.entries(toolchain).flatMap(([name, tool]) =>
    tool ? [prepared(name as ToolName, tool.path)] : [],
  );
  const used = isBuilt && config.FORK_SERVER === 'on';
  const servers = new ForkServers({
    ...{ library, concurrency },
    env: environmentOf(environment, { cwd: '/nonexistent', timeoutMs: config.CONVERT_TIMEOUT_MS }),
    tools: used ? (await Promise.all(tools)).flat() : [],
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
  { config, toolchain, environment, readable, assets, library, folder, served }: SandboxConfig,
  servers: ForkServers,
): Promise<Sandbox> {
  return findSandbox({
    tools: listTrials(toolchain),
    readable: [assets, ...readable],
    limits: {
      memoryBytes: environment.limits.memoryBytes + 512 * MIB,
      fileBytes: maxToolFileBytes(config),
    },
    filters: `${assets}/seccomp`,
    folder,
    proven: served !== undefined,
    createTrialRunner: (confine) => createRunner({ ...environment, library, confine, servers }),
  });
}

/** @throws {StartupError} if `SANDBOX=on` and no layer hides files from the tools */
function reportMissingLayers(
  { files, syscalls }: SandboxLayers,
  { config, log, library }: SandboxConfig,
  isBuilt: boolean,
): void {
  if (files === 'none') {
    const advice = isBuilt
      ? 'use Linux 5.13 or later with Landlock and seccomp, and tools that are not scripts'
      : `build imagemill on Linux with a C compiler, which makes ${library}`;
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
