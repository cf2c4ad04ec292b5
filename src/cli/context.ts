/** @module Settings, errors, warnings and signals of all commands. */
import { availableParallelism, constants } from 'node:os';
import { pino } from 'pino';
import { type Config, ConfigError, loadConfig } from '../config.ts';
import { workingFolder } from '../files/system.ts';
import { openUserCache } from '../files/user-cache.ts';
import { findInPackage } from '../folders.ts';
import { sanitizeForDisplay } from '../text.ts';

/** What every command receives in addition to its arguments. */
export interface CliContext {
  /** Environment variables, which contain the settings. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Version of this program. */
  readonly version: string;
}

/** Ends the program with a message for the user and {@link EXIT_CANNOT_RUN}: wrong arguments or settings, or a missing tool. */
export class CliError extends Error {
  override readonly name = 'CliError';
}

/** Exit status if a command cannot run, as in shells and most programs. */
export const EXIT_CANNOT_RUN = 2;

/**
 * Loads the settings from the environment.
 *
 * @throws {CliError} naming every invalid setting
 */
export function loadSettings(env: CliContext['env']): Config {
  try {
    return loadConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) throw new CliError(error.problems.join('\n'));
    throw error;
  }
}

/** Settings for the files of strangers. Without them in the environment, the own files of a user have these. */
const LOCAL_DEFAULTS = {
  EXTRA_INPUTS: 'all',
  EXTRA_OUTPUTS: 'all',
  MAX_FILE_BYTES: Number.MAX_SAFE_INTEGER,
  MAX_PIXELS: 1_000_000_000,
  MAX_TOTAL_PIXELS: 2_000_000_000,
  MAX_FRAMES: 10_000,
  CONVERT_TIMEOUT_MS: 600_000,
  /** One more than processors: a conversion also waits for this process, for about a tenth of its time if the image is small. */
  CONCURRENCY: availableParallelism() + 1,
} as const;
/** Maximum width and height of JPEG, and nearly that of GIF and AVIF (65 535). */
const LOCAL_MAX_SIDE = 65_500;

/** The settings for files of this machine. */
export interface LocalSettings extends Config {
  /** Folder of this user for what does not change between two commands, if there is a safe one. */
  readonly cacheFolder?: string | undefined;
  /** Whether `TEMP_DIR` or `TMPDIR` names the folder for working files. */
  readonly hasWorkingFolder?: boolean;
}

/**
 * Loads the settings for files of this machine: the limits of the flags, of the environment, or for the user's own files. Memory
 * and disk of the machine remain limits.
 *
 * @throws {CliError} naming every invalid setting, or an invalid flag
 */
export function loadLocalSettings(
  env: CliContext['env'],
  { maxFileSize, maxPixels }: { readonly maxFileSize?: string; readonly maxPixels?: string } = {},
): LocalSettings {
  const config = loadSettings(env);
  const unset = Object.entries(LOCAL_DEFAULTS).filter(([name]) => !env[name]);
  const local: Config = { ...config, ...Object.fromEntries(unset), maxSide: LOCAL_MAX_SIDE };
  const bytes = maxFileSize === undefined ? undefined : parseAmount('--max-file-size', maxFileSize);
  const pixels = maxPixels === undefined ? undefined : parseAmount('--max-pixels', maxPixels);
  return {
    ...local,
    cacheFolder: openUserCache(env),
    hasWorkingFolder: namesWorkingFolder(env),
    MAX_FILE_BYTES: bytes ?? local.MAX_FILE_BYTES,
    MAX_PIXELS: pixels ?? local.MAX_PIXELS,
    MAX_TOTAL_PIXELS: pixels ? Math.max(pixels, LOCAL_DEFAULTS.MAX_TOTAL_PIXELS) : local.MAX_TOTAL_PIXELS,
  };
}

/** @throws {CliError} */
function parseAmount(flag: string, text: string): number {
  const [, digits, unit = ''] = /^(\d+(?:\.\d+)?)\s?([kMG]?)(?:B|P)?$/.exec(text) ?? [];
  const amount = Math.floor(Number(digits) * 1000 ** ['', 'k', 'M', 'G'].indexOf(unit));
  if (amount >= 1) return amount;
  throw new CliError(
    `Invalid ${flag} "${sanitizeForDisplay(text)}": expected a number, such as 400M or 400000000.`,
  );
}

/** Disk space per input byte: the input, and about as much for its result. */
export const DISK_SPACE_FACTOR = 2;

/** Returns the maximum size of the working files of a full batch, in bytes. */
export const bytesOfBatch = ({ MAX_FILE_BYTES, MAX_BATCH_FILES }: Config): number =>
  DISK_SPACE_FACTOR * MAX_BATCH_FILES * MAX_FILE_BYTES;

const namesWorkingFolder = (env: CliContext['env']): boolean => Boolean(env.TEMP_DIR || env.TMPDIR);

/** Returns the settings of the service: without `TEMP_DIR`, its working files are in memory if there is room for a full batch. */
export function withWorkingFolder(config: Config, env: CliContext['env']): Config {
  return namesWorkingFolder(env) ? config : { ...config, TEMP_DIR: workingFolder(bytesOfBatch(config)) };
}

/**
 * Finds the folder of the packages that decode results: outside the program's own folder if it is a dependency of a project.
 *
 * @param user command or option that needs them
 * @throws {CliError} if they are not installed
 */
export function findDecoders(user: string): string {
  try {
    const path = findInPackage('sharp');
    return path.slice(0, path.lastIndexOf('/sharp/'));
  } catch {
    throw new CliError(`${user} needs the npm packages of imagemill, such as sharp: run npm install.`);
  }
}

/** Creates a log that collects warnings and prints nothing. The command decides which warnings to print. */
export function createWarningCollector() {
  /** Distinct messages of level warn and above, and the setting of each, if it concerns one. */
  const warnings = new Map<string, string | undefined>();
  const write = (line: string): void => {
    const { msg, setting } = JSON.parse(line) as { msg: string; setting?: string };
    warnings.set(msg, setting);
  };
  return {
    log: pino({ level: 'warn' }, { write }),
    warnings: warnings as ReadonlyMap<string, string | undefined>,
  };
}

/** Signals that abort a command. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** Base of the exit status after a signal, as in shells. */
const SIGNAL_EXIT_BASE = 128;

export type SignalAbort = ReturnType<typeof abortOnSignals>;

/** Makes signals abort the command instead of ending the process, so that the command can clean up. */
export function abortOnSignals() {
  const stop = new AbortController();
  let status = 0;
  const end = (exitStatus: number): void => {
    status ||= exitStatus;
    stop.abort();
  };
  const endBySignal = (name: NodeJS.Signals): void => end(SIGNAL_EXIT_BASE + constants.signals[name]);
  for (const name of SIGNALS) process.on(name, endBySignal);
  process.stdout.on('error', ({ code }: NodeJS.ErrnoException) =>
    code === 'EPIPE' ? endBySignal('SIGPIPE') : end(1),
  );
  return {
    /** Aborts on the first signal, or when standard output cannot be written. */
    signal: stop.signal,
    /** Returns the exit status after the signal aborted, or 0 if it did not. */
    status: (): number => status,
  };
}
