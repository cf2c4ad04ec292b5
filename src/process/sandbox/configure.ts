import type { Logger } from 'pino';
import type { Config } from '../../config.ts';
import { StartupError } from '../../errors.ts';
import type { MagickLimits } from '../environment.ts';
import type { Launchers } from '../launcher/pool.ts';
import { createRunner } from '../runner.ts';
import { type Toolchain, VERSION_PROBES } from '../toolchain.ts';
import { findSandbox, NO_LAYERS, type Sandbox } from './index.ts';
import { trialsOf } from './self-test.ts';

/** What the tools may use, and how they are shut in, by the settings. */

const MIB = 1024 ** 2;

/**
 * An honest picture of 50 megapixels took up to 1.22 GB in any conversion: 26 bytes a pixel. The limit that counts
 * is kept before a tool is started; the tools' own, for files that lie, leave room for what they add.
 */
export function magickLimits({
  MAX_PIXELS,
  MAX_FRAMES,
}: Pick<Config, 'MAX_PIXELS' | 'MAX_FRAMES'>): MagickLimits {
  return {
    pixels: Math.ceil(MAX_PIXELS * 1.1) + 65_536,
    frames: MAX_FRAMES,
    memoryBytes: Math.max(1536 * MIB, 32 * MAX_PIXELS),
  };
}

/** The bytes that one file of a tool may have: four for every pixel of the largest input, more than any result takes. */
export function maxToolFileBytes({ MAX_TOTAL_PIXELS }: Pick<Config, 'MAX_TOTAL_PIXELS'>): number {
  return 4 * MAX_TOTAL_PIXELS + 16 * MIB;
}

export interface SandboxConfig {
  readonly config: Pick<Config, 'MAX_TOTAL_PIXELS' | 'PATH' | 'SANDBOX'>;
  readonly toolchain: Toolchain;
  readonly limits: MagickLimits;
  /** To try the tools in. */
  readonly folder: string;
  readonly launchers: Launchers;
  readonly log: Logger;
  /** A folder that holds what the tools need beside them. */
  readonly assets: string;
  /** Other folders that they read. */
  readonly readable: readonly string[];
}

/**
 * Finds the strongest way that works here.
 *
 * @throws Unusable when `SANDBOX=on` and there is none
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
    log.warn('SANDBOX=off: the tools run with all rights of this process');
    return { confine: () => ({}), layers: NO_LAYERS };
  }
  const sandbox = await findSandbox({
    searchPath: config.PATH,
    tools: trialsOf(toolchain).map(({ name, tool, trial }) => ({
      path: tool.path,
      question: VERSION_PROBES[name],
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
    const advice = 'on Debian 13 setpriv of util-linux does it, elsewhere: apt install bubblewrap';
    if (config.SANDBOX === 'on')
      throw new StartupError(`SANDBOX=on, and nothing here hides files from the tools: ${advice}.`);
    log.warn(`the tools can read what this process can read: ${advice}`);
  }
  if (sandbox.layers.syscalls === 'deny-list') {
    log.warn(
      'A tool makes system calls that are not on the allow-list: the deny-list is on, which allows more. See SECURITY.md.',
    );
  }
  return sandbox;
}
