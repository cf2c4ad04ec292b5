/**
 * @module Collects the data for the checks of the `doctor` command, with the settings that systemd
 * passes to the service (`EnvironmentFile=`). Continues after invalid settings and missing tools.
 */
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { createConversionEngine, findTools } from '../../conversion/engine.ts';
import { toolSearch } from '../../conversion/limits/capabilities.ts';
import { isMissing, systemReason } from '../../files/system.ts';
import { Workspaces } from '../../files/workspace.ts';
import { ASSETS_DIR } from '../../folders.ts';
import { isPolicyEnforced } from '../../process/policy.ts';
import { createRunner } from '../../process/runner.ts';
import { type Magick, searchedTools, type Toolchain } from '../../process/toolchain.ts';
import { type Config, ConfigError, listMisspelled, loadConfig } from '../../tables/config.ts';
import { StartupError } from '../../tables/errors.ts';
import { MAX_DIMENSION } from '../../tables/formats.ts';
import type { ToolName } from '../../tables/tools.ts';
import {
  type CliContext,
  CliError,
  createWarningCollector,
  throwForUser,
  withWorkingFolder,
} from '../context.ts';

export interface CheckResult {
  readonly name: string;
  /** `warn`: the service works with restrictions; `fail`: the service does not work. */
  readonly state: 'ok' | 'warn' | 'fail';
  readonly found: string;
  readonly advice?: readonly string[] | undefined;
}

const inState =
  (state: CheckResult['state']) =>
  (name: string, found: string, ...advice: string[]): CheckResult => {
    return { name, state, found, advice: advice.length > 0 ? advice : undefined };
  };
export const [ok, warn, fail] = [inState('ok'), inState('warn'), inState('fail')];

/** The file that `debian/imagemill.service` names. */
export const UNIT_SETTINGS = '/etc/imagemill/imagemill.env';

/** The environment of the service, and the file that its settings are from, if any. */
interface ServiceSettings {
  readonly env: CliContext['env'];
  readonly file?: string;
  /** Why the settings of the systemd unit are not known. */
  readonly problem?: string;
}

/**
 * Adds the settings of a file to the environment, whose values they replace.
 *
 * @param file by default the file of the systemd unit, if it exists
 * @throws {CliError} if the given file cannot be read, or a line is not a setting
 */
export async function loadServiceSettings(
  env: CliContext['env'],
  file: string | undefined,
  unitFile: string = UNIT_SETTINGS,
): Promise<ServiceSettings> {
  const path = file ?? unitFile;
  try {
    return { env: { ...env, ...parseSettings(await readFile(path, 'utf8'), path) }, file: path };
  } catch (error) {
    if (error instanceof CliError) throw error;
    if (file === undefined && isMissing(error as Error)) return { env };
    const problem = `${path} cannot be read: ${systemReason(error)}`;
    if (file === undefined) return { env, problem };
    throw new CliError(`${problem}.`);
  }
}

/** Parses lines as systemd does: `#` after a value is a part of it, quotes around it are not. */
function parseSettings(text: string, path: string): Record<string, string> {
  const settings: Record<string, string> = {};
  for (const [index, line] of text.split('\n').entries()) {
    if (/^\s*(?:[#;].*)?$/.test(line)) continue;
    const [, name, value = ''] = /^\s*(\w+)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    if (name === undefined) throw new CliError(`${path}, line ${index + 1}: expected NAME=value.`);
    settings[name] = value.replace(/^(["'])(.*)\1$/, '$2');
  }
  return settings;
}

export type DoctorReport = Awaited<ReturnType<typeof collectReport>>;

/**
 * Collects the report. The caller must close its engine.
 *
 * @throws {CliError} if no program can be started
 */
export async function collectReport({ env, ...settingsFile }: ServiceSettings) {
  const { config, settingProblems } = loadValidSettings(env);
  const { log, warnings } = createWarningCollector();
  // Commands for one's own files use all tools, and the service those of its settings.
  const allTools = await findTools({ ...config, EXTRA_INPUTS: 'all', EXTRA_OUTPUTS: 'all' }).catch(
    throwForUser,
  );
  const { magick, ...others } = allTools;
  const searched: readonly string[] = searchedTools(toolSearch(config));
  const used = Object.entries(others).filter(([name]) => searched.includes(name));
  const found: Toolchain = { magick, ...Object.fromEntries(used) };
  /** The conversion engine, or the error that prevents it from starting. */
  const engine = await createConversionEngine(config, log, {}, { toolchain: found }).catch((error) => {
    if (error instanceof StartupError) return error;
    throw error;
  });
  const { toolchain, refused } =
    engine instanceof Error ? { toolchain: found, refused: new Map<ToolName, string>() } : engine;
  /** Whether ImageMagick enforces the policy that the engine needs; undefined if not known. */
  const policyEnforced =
    toolchain.magick && (!(engine instanceof Error) || (await enforcesPolicy(toolchain.magick, config)));
  return {
    config,
    settingProblems,
    settingsFile,
    toolchain,
    allTools,
    misspelled: listMisspelled(env),
    policyEnforced,
    refused,
    engine,
    warnings,
  };
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

/** Limits of the check of the policy, which needs far less. */
const LIMITS = { side: MAX_DIMENSION, pixels: 10_000, memoryBytes: 1024 ** 3 };

/**
 * Asks ImageMagick without the sandbox and TEMP_DIR, which may be why the engine did not start.
 *
 * @returns undefined if no file can be written
 */
async function enforcesPolicy(magick: Magick, config: Config): Promise<boolean | undefined> {
  const workspaces = new Workspaces(tmpdir());
  const limits = { ...LIMITS, frames: config.MAX_FRAMES };
  const run = createRunner({ searchPath: config.PATH, policyFolder: ASSETS_DIR, limits });
  try {
    return await workspaces.use({}, ({ path }) => isPolicyEnforced(magick, run, path, limits));
  } catch {
    return undefined;
  } finally {
    await workspaces.close();
  }
}
