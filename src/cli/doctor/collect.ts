import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Config, ConfigError, loadConfig } from '../../config.ts';
import { type ConversionEngine, createConversionEngine } from '../../conversion/engine.ts';
import { extrasOf, optionalTools } from '../../conversion/extras.ts';
import { StartupError } from '../../errors.ts';
import { createWorkspaces, type Workspaces } from '../../files/workspace.ts';
import { createLaunchers } from '../../process/launcher/pool.ts';
import { isPolicyEnforced } from '../../process/policy-check.ts';
import { createRunner } from '../../process/runner.ts';
import { findToolchain, type Toolchain } from '../../process/toolchain.ts';
import { CliError, createWarningCollector } from '../context.ts';

/** What this machine has, whether or not that is enough to serve. */

export interface DoctorReport {
  /** Those that are wrong are as if unset. */
  readonly config: Config;
  readonly settingProblems: readonly string[];
  readonly toolchain: Toolchain;
  /** Whether ImageMagick obeys; undefined when there is none. */
  readonly policyHolds: boolean | undefined;
  /** All that converts, or why there is no such thing. */
  readonly engine: ConversionEngine | Error;
  /** What the mill warned of. */
  readonly warnings: readonly string[];
}

type Environment = Readonly<Record<string, string | undefined>>;

/** The caller closes the mill. */
export async function collectReport(env: Environment): Promise<DoctorReport> {
  const { config, settingProblems } = settingsIn(env);
  const { log, warnings } = createWarningCollector();
  const tools = await findTools(config);
  const mill = await createConversionEngine(config, log).catch((error: Error) => error);
  if (mill instanceof Error && !(mill instanceof StartupError)) throw mill;
  return { config, settingProblems, ...tools, engine: mill, warnings: [...warnings] };
}

/** One wrong setting is no reason not to look at the rest. */
function settingsIn(env: Environment): Pick<DoctorReport, 'config' | 'settingProblems'> {
  try {
    return { config: loadConfig(env), settingProblems: [] };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const wrong = error.problems.map((problem) => problem.slice(0, problem.indexOf('=')));
    const rest = Object.entries(env).filter(([name]) => !wrong.includes(name));
    return { config: loadConfig(Object.fromEntries(rest)), settingProblems: error.problems };
  }
}

const ASSETS = fileURLToPath(new URL('../../../assets', import.meta.url));
const NO_POLICY = '/nonexistent';
/** Such as no question comes near to. */
const LIMITS = { pixels: 10_000, memoryBytes: 1024 ** 3 };

/** Programs are started from a folder, and TEMP_DIR may be what is wrong. */
async function findTools(config: Config): Promise<Pick<DoctorReport, 'toolchain' | 'policyHolds'>> {
  const { PATH: path, MAGICK_BIN: magickBin, RSVG_BIN: rsvgBin } = config;
  const workspaces = await workspacesIn([config.TEMP_DIR, tmpdir()]);
  const launchers = createLaunchers(workspaces.root);
  try {
    const ask = createRunner({ launchers, searchPath: path, policyFolder: NO_POLICY });
    const optional = optionalTools(extrasOf(config));
    const toolchain = await findToolchain({ path, magickBin, rsvgBin, optional }, ask);
    const { magick } = toolchain;
    const limits = { ...LIMITS, frames: config.MAX_FRAMES };
    const obey = createRunner({ launchers, searchPath: path, policyFolder: ASSETS, limits });
    const folder = join(await workspaces.root(), 'policy');
    await mkdir(folder);
    return { toolchain, policyHolds: magick && (await isPolicyEnforced(magick, obey, folder, limits)) };
  } finally {
    await launchers.close();
    await workspaces.close();
  }
}

async function workspacesIn(folders: readonly string[]): Promise<Workspaces> {
  for (const folder of folders) {
    const workspaces = createWorkspaces(folder);
    const usable = await workspaces.root().catch(() => undefined);
    if (usable) return workspaces;
  }
  throw new CliError(
    `Nothing can be written in ${folders.join(' or ')}: set TEMP_DIR to a folder that can.`,
    2,
  );
}
