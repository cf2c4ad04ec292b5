/**
 * @module Collects the data for the checks of the `doctor` command. Continues after invalid settings and missing
 * tools.
 */
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Config, ConfigError, loadConfig } from '../../config.ts';
import { toolSearch } from '../../conversion/capabilities.ts';
import { assertSystem, createConversionEngine } from '../../conversion/engine.ts';
import { StartupError, toStartupError } from '../../errors.ts';
import { createWorkspaces, type Workspaces } from '../../files/workspace.ts';
import { ASSETS_DIR } from '../../folders.ts';
import { MAX_DIMENSION } from '../../formats.ts';
import { isPolicyEnforced } from '../../process/policy.ts';
import { createRunner } from '../../process/runner.ts';
import { findToolchain } from '../../process/toolchain.ts';
import { type CliContext, CliError, createWarningCollector, withWorkingFolder } from '../context.ts';
import type { ServiceSettings } from './settings-file.ts';

export interface CheckResult {
  readonly name: string;
  /** `warn`: the service works with restrictions; `fail`: the service does not work. */
  readonly state: 'ok' | 'warn' | 'fail';
  readonly found: string;
  /** How to fix the problem. */
  readonly advice?: readonly string[];
}

/** Returns a function that creates the results of checks with a state. */
const inState =
  (state: CheckResult['state']) =>
  (name: string, found: string, ...advice: string[]): CheckResult => {
    return { name, state, found, ...(advice.length > 0 && { advice }) };
  };
export const [ok, warn, fail] = [inState('ok'), inState('warn'), inState('fail')];

export type DoctorReport = Awaited<ReturnType<typeof collectReport>>;

/**
 * Collects the report. The caller must close its engine.
 *
 * @throws {CliError} if no program can be started or no file can be written
 */
export async function collectReport({ env, ...settingsFile }: ServiceSettings) {
  const { config, settingProblems } = loadValidSettings(env);
  const { log, warnings } = createWarningCollector();
  const tools = await findTools(config).catch((cause) => {
    const error = toStartupError(cause, config);
    throw error instanceof StartupError ? new CliError(error.message) : error;
  });
  /** The conversion engine, or the error that prevents it from starting. */
  const engine = await createConversionEngine(config, log).catch((error) => {
    if (error instanceof StartupError) return error;
    throw error;
  });
  const { toolchain, refused } = engine instanceof Error ? { ...tools, refused: new Map() } : engine;
  return { config, settingProblems, settingsFile, ...tools, toolchain, refused, engine, warnings };
}

/** Loads the settings. If some are invalid, ignores them and loads the rest. */
function loadValidSettings(env: CliContext['env']): { config: Config; settingProblems: readonly string[] } {
  try {
    return { config: withWorkingFolder(loadConfig(env), env), settingProblems: [] };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const rest = Object.entries(env).filter(([name]) => !error.settings.includes(name));
    return { config: loadConfig(Object.fromEntries(rest)), settingProblems: error.problems };
  }
}

/** Limits for version probes, which need far less. */
const LIMITS = { side: MAX_DIMENSION, pixels: 10_000, memoryBytes: 1024 ** 3 };

/** Finds the tools. Starting a program needs a folder, so falls back to the system's if TEMP_DIR is unusable. */
async function findTools(config: Config) {
  assertSystem();
  const { PATH: searchPath } = config;
  const workspaces = await openFirstUsable([config.TEMP_DIR, tmpdir()]);
  try {
    const toolchain = await findToolchain(toolSearch(config));
    const { magick } = toolchain;
    const limits = { ...LIMITS, frames: config.MAX_FRAMES };
    const runWithPolicy = createRunner({ searchPath, policyFolder: ASSETS_DIR, limits });
    const folder = join(await workspaces.root(), 'policy');
    await mkdir(folder);
    return {
      toolchain,
      /** Whether ImageMagick enforces the policy; undefined without ImageMagick. */
      policyEnforced: magick && (await isPolicyEnforced(magick, runWithPolicy, folder, limits)),
    };
  } finally {
    await workspaces.close();
  }
}

async function openFirstUsable(folders: readonly string[]): Promise<Workspaces> {
  for (const folder of folders) {
    const workspaces = createWorkspaces(folder);
    const usable = await workspaces.root().catch(() => undefined);
    if (usable) return workspaces;
  }
  throw new CliError(`${folders.join(' or ')} is not writable: set TEMP_DIR to a writable folder.`);
}
