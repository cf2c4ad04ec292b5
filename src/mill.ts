import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import type { Config } from './config.ts';
import { type Capabilities, capabilitiesOf } from './convert/capabilities.ts';
import { type Convert, createConvert } from './convert/convert.ts';
import { policyHolds } from './engine/policy.ts';
import { createPool } from './engine/pool.ts';
import { createRun, type Run } from './engine/run.ts';
import { findToolchain, type Toolchain } from './engine/toolchain.ts';
import { sweep } from './files/sweep.ts';
import { createWorkspaces, type Workspaces } from './files/workspace.ts';

/** All that converts, without a server: tools that were found and tested, a pool, folders to work in. */

const ASSETS = fileURLToPath(new URL('../assets', import.meta.url));
const NO_POLICY = '/nonexistent';

export interface Mill {
  readonly toolchain: Toolchain;
  readonly capabilities: Capabilities;
  readonly convert: Convert;
  readonly workspaces: Workspaces;
  /** Removes what is left on disk. */
  close(): Promise<void>;
}

export type MillSettings = Pick<
  Config,
  'CONCURRENCY' | 'CONVERT_TIMEOUT_MS' | 'MAGICK_BIN' | 'PATH' | 'QUEUE_LIMIT' | 'RSVG_BIN' | 'TEMP_DIR'
>;

/** The machine cannot do what the service needs; the message says what and why. */
export class Unusable extends Error {
  override readonly name = 'Unusable';
}

/**
 * Finds the tools, tests the policy and tidies up after dead processes.
 *
 * @throws Unusable when nothing could be converted, or not safely
 */
export async function createMill(config: MillSettings, log: Logger): Promise<Mill> {
  // Asking a tool who it is involves no picture, and version 6 lists no formats under the policy.
  const ask = createRun(config.PATH, NO_POLICY);
  const run = createRun(config.PATH, ASSETS);

  const toolchain = await findToolchain(
    { path: config.PATH, magickBin: config.MAGICK_BIN, rsvgBin: config.RSVG_BIN },
    ask,
  );
  const capabilities = capabilitiesOf(toolchain);
  for (const problem of capabilities.problems) log.warn(problem);
  if (capabilities.outputs.length === 0) throw new Unusable('Nothing can be converted on this machine.');

  const swept = await sweep(config.TEMP_DIR);
  if (swept.length > 0) log.info({ swept }, 'removed the working files of processes that are gone');
  const workspaces = createWorkspaces(config.TEMP_DIR);
  try {
    await checkMachine(workspaces, config.TEMP_DIR, toolchain, run);
  } catch (error) {
    await workspaces.close();
    throw error;
  }

  const pool = createPool({ concurrency: config.CONCURRENCY, queueLimit: config.QUEUE_LIMIT });
  const convert = createConvert({
    toolchain,
    pool,
    run,
    srgbProfile: `${ASSETS}/srgb.icc`,
    timeoutMs: config.CONVERT_TIMEOUT_MS,
  });
  return { toolchain, capabilities, convert, workspaces, close: () => workspaces.close() };
}

/** Tries out what every conversion depends on: a folder to work in, and a tool that obeys. */
async function checkMachine(
  workspaces: Workspaces,
  folder: string,
  { magick }: Toolchain,
  run: Run,
): Promise<void> {
  const trial = await workspaces.open().catch((cause: Error) => {
    throw new Unusable(`TEMP_DIR ${folder} cannot be written: ${cause.message}`, { cause });
  });
  try {
    if (magick && !(await policyHolds(magick, run, trial.path))) {
      throw new Unusable(
        `${magick.path} does not obey the policy in ${ASSETS}/ImageMagick: not safe to serve.`,
      );
    }
  } finally {
    await trial.remove();
  }
}
