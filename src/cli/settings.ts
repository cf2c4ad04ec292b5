import { type Config, ConfigError, loadConfig } from '../config.ts';
import { CliError, type CliContext } from './surroundings.ts';

/** The settings, for a command; they come from the environment whatever the command is. */

/** @throws Refused naming every wrong setting, with status 2 */
export function loadSettings(env: CliContext['env']): Config {
  try {
    return loadConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) throw new CliError(error.problems.join('\n'), 2);
    throw error;
  }
}
