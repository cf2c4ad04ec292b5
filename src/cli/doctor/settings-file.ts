/** @module Reads the file of settings that systemd passes to the service (`EnvironmentFile=`). */
import { readFile } from 'node:fs/promises';
import { isMissing, systemReason } from '../../files/system.ts';
import { type CliContext, CliError } from '../context.ts';

/** The file that `debian/imagemill.service` names. */
const UNIT_SETTINGS = '/etc/imagemill/imagemill.env';

/** The environment of the service, and the file that its settings are from, if any. */
export interface ServiceSettings {
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

/** Parses lines as systemd does: a `#` after a value is a part of it, and quotes around a value are not. */
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
