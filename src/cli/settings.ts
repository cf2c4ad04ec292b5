import { type Config, ConfigError, loadConfig } from '../config.ts';
import { Refused, type Surroundings } from './surroundings.ts';

/** The settings, for a command; they come from the environment whatever the command is. */

/** @throws Refused naming every wrong setting, with status 2 */
export function settingsOf(env: Surroundings['env']): Config {
  try {
    return loadConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) throw new Refused(error.problems.join('\n'), 2);
    throw error;
  }
}
