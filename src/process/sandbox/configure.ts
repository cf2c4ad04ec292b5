/** @module Derives the resource limits of the tools from the settings, and configures their sandbox. */

import type { Logger } from 'pino';
import type { Config } from '../../config.ts';
import { StartupError } from '../../startup-error.ts';
import type { Launchers } from '../launcher/launcher.ts';
import { createRunner, type MagickLimits } from '../runner.ts';
import { type Toolchain, VERSION_PROBES } from '../toolchain.ts';
import { findSandbox, NO_LAYERS, type Sandbox } from './index.ts';
import { listTrials } from './self-test.ts';

const MIB = 1024 ** 2;

/**
 * Returns the limits of ImageMagick.
 *
 * Converting an image of 50 megapixels takes up to 1.22 GB: 26 bytes per pixel. The service checks the settings before
 * it starts a tool. These limits apply to files with a false header, and allow for the overhead of the tools.
 */
export function magickLimits({ MAX_PIXELS, MAX_FRAMES }: Config): MagickLimits {
  return {
    pixels: Math.ceil(MAX_PIXELS * 1.1) + 65_536,
    frames: MAX_FRAMES,
    memoryBytes: Math.max(1536 * MIB, 32 * MAX_PIXELS),
  };
}

/**
 * Returns the maximum size of a file that a tool writes, in bytes: four bytes per pixel of the largest input, which is
 * more than any result takes, and 16 MiB.
 */
export function maxToolFileBytes({ MAX_TOTAL_PIXELS }: Config): number {
  return 4 * MAX_TOTAL_PIXELS + 16 * MIB;
}

/** Configuration files, texts and fonts that single tools read in addition to their libraries. */
const READS: Partial<Record<keyof Toolchain, readonly string[]>> = {
  magick: ['/etc', '/usr/share', '/usr/local/share'].flatMap((folder) =>
    [6, 7].map((major) => `${folder}/ImageMagick-${major}`),
  ),
  rsvg: ['/etc/fonts', '/var/cache/fontconfig', '/usr/share', '/usr/local/share'],
};

/** Options of {@link configureSandbox}. */
export interface SandboxConfig {
  readonly config: Config;
  readonly toolchain: Toolchain;
  readonly limits: MagickLimits;
  /** An empty folder, for testing the tools. */
  readonly folder: string;
  readonly launchers: Launchers;
  /** Receives a warning when the sandbox lacks a layer. */
  readonly log: Logger;
  /** Folder with the files that the tools need, such as the policy and the seccomp filters. */
  readonly assets: string;
  /** Other folders that the tools can read. */
  readonly readable: readonly string[];
}

/**
 * Configures the strongest sandbox that works on this machine.
 *
 * @throws {StartupError} if `SANDBOX=on` and no layer hides files from the tools
 */
export async function configureSandbox({
  config,
  toolchain,
  limits,
  folder,
  launchers,
  log,
  assets,
  readable,
}: SandboxConfig): Promise<Sandbox> {
  if (config.SANDBOX === 'off') {
    log.warn('SANDBOX=off: the tools run unconfined, with all permissions of this process');
    return { confine: () => ({}), layers: NO_LAYERS };
  }
  const sandbox = await findSandbox({
    searchPath: config.PATH,
    tools: listTrials(toolchain).map(({ name, tool, trial }) => ({
      path: tool.path,
      reads: READS[name] ?? [],
      versionProbe: VERSION_PROBES[name],
      trial,
    })),
    readable: [assets, ...readable],
    limits: {
      memoryBytes: limits.memoryBytes + 512 * MIB,
      fileBytes: maxToolFileBytes(config),
    },
    filters: `${assets}/seccomp`,
    folder,
    createTrialRunner: (confine) =>
      createRunner({ launchers, searchPath: config.PATH, policyFolder: assets, limits, confine }),
  });
  if (sandbox.layers.files === 'none') {
    const advice = 'use setpriv of util-linux 2.40 (Debian 13), or: apt install bubblewrap';
    if (config.SANDBOX === 'on')
      throw new StartupError(`SANDBOX=on, but no available sandbox hides files from the tools: ${advice}.`);
    log.warn(`the tools can read every file that this process can read: ${advice}`);
  }
  if (sandbox.layers.syscalls === 'deny-list') {
    log.warn(
      'a tool needs system calls that are not on the allow-list: using the deny-list, which permits more; see SECURITY.md',
    );
  }
  return sandbox;
}
