/** @module Settings, errors, warnings and signals of all commands. */
import { availableParallelism, constants } from 'node:os';
import { pino } from 'pino';
import { parseAmount, sanitizeForDisplay } from '../base/text.ts';
import { workingFolder } from '../files/system.ts';
import { openUserCache } from '../files/user-cache.ts';
import { findInPackage } from '../folders.ts';
import { type Config, ConfigError, loadConfig } from '../tables/config.ts';
import { StartupError } from '../tables/errors.ts';

/** What every command receives in addition to its arguments. */
export interface CliContext {
  /** Environment variables, which contain the settings. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly version: string;
}

/**
 * Ends the program with a message for the user and {@link EXIT_CANNOT_RUN}: wrong arguments or
 * settings, or a missing tool.
 */
export class CliError extends Error {
  override readonly name = 'CliError';
}

/** Throws the error of a service that cannot start here as one for the user, any other as it is. */
export function throwForUser(error: unknown): never {
  throw error instanceof StartupError ? new CliError(error.message) : error;
}

/** Exit status if a command cannot run, as in shells and most programs. */
export const EXIT_CANNOT_RUN = 2;

/** @throws {CliError} naming every invalid setting */
export function loadSettings(env: CliContext['env']): Config {
  try {
    return loadConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) throw new CliError(error.problems.join('\n'));
    throw error;
  }
}

/** Settings for the files of strangers. Unless set, the own files of a user have these. */
const LOCAL_DEFAULTS = {
  EXTRA_INPUTS: 'all',
  EXTRA_OUTPUTS: 'all',
  MAX_FILE_BYTES: Number.MAX_SAFE_INTEGER,
  MAX_PIXELS: 1_000_000_000,
  MAX_TOTAL_PIXELS: 2_000_000_000,
  MAX_FRAMES: 10_000,
  CONVERT_TIMEOUT_MS: 600_000,
  /**
   * One more than processors: a conversion also waits for this process, for about a tenth of its
   * time if the image is small.
   */
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
 * Loads the settings for files of this machine: the limits of the flags, of the environment, or for
 * the user's own files. Memory and disk of the machine remain limits.
 *
 * @throws {CliError} naming every invalid setting, or an invalid flag
 */
export function loadLocalSettings(
  env: CliContext['env'],
  { maxFileSize, maxPixels }: { readonly maxFileSize?: string; readonly maxPixels?: string } = {},
): LocalSettings {
  const config = loadSettings(env);
  const unset = Object.entries(LOCAL_DEFAULTS).filter(([name]) => !env[name]);
  const local: Config = {
    ...config,
    ...Object.fromEntries(unset),
    maxSide: LOCAL_MAX_SIDE,
    maxDrawnSide: LOCAL_MAX_SIDE,
  };
  const bytes = parseLimit('--max-file-size', maxFileSize);
  const pixels = parseLimit('--max-pixels', maxPixels);
  return {
    ...local,
    cacheFolder: openUserCache(env),
    hasWorkingFolder: namesWorkingFolder(env),
    MAX_FILE_BYTES: bytes ?? local.MAX_FILE_BYTES,
    MAX_PIXELS: pixels ?? local.MAX_PIXELS,
    MAX_TOTAL_PIXELS: pixels ? Math.max(pixels, LOCAL_DEFAULTS.MAX_TOTAL_PIXELS) : local.MAX_TOTAL_PIXELS,
  };
}

function parseLimit(flag: string, text: string | undefined): number | undefined {
  const limit = text === undefined ? undefined : parseAmount(text);
  if (text === undefined || limit) return limit;
  throw new CliError(
    `Invalid ${flag} "${sanitizeForDisplay(text)}": expected a number, such as 50M or 10MiB.`,
  );
}

/** Disk space per input byte: the input, and about as much for its result. */
export const DISK_SPACE_FACTOR = 2;

/** Returns the maximum size of the working files of a full batch, in bytes. */
export const bytesOfBatch = ({ MAX_FILE_BYTES, MAX_BATCH_FILES }: Config): number =>
  DISK_SPACE_FACTOR * MAX_BATCH_FILES * MAX_FILE_BYTES;

const namesWorkingFolder = (env: CliContext['env']): boolean => Boolean(env.TEMP_DIR || env.TMPDIR);

/**
 * Returns the settings of the service: without `TEMP_DIR`, its working files are in memory if there
 * is room for a full batch.
 */
export function withWorkingFolder(config: Config, env: CliContext['env']): Config {
  return namesWorkingFolder(env) ? config : { ...config, TEMP_DIR: workingFolder(bytesOfBatch(config)) };
}

/**
 * Finds the folder of the packages that decode results: outside the program's own folder if it is a
 * dependency of a project.
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

/** Creates a log that collects warnings and prints nothing. The command decides which to print. */
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

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** Base of the exit status after a signal, as in shells. */
const SIGNAL_EXIT_BASE = 128;

/**
 * Time after the first signal when another one ends a process, in milliseconds. Ctrl-C reaches all
 * processes of a terminal at once, and npm forwards it to its child a second time.
 */
export const SECOND_SIGNAL_MS = 1_000;

/** Lets signals end the process again, even one that waits for a disk that does not respond. */
function releaseSignals(): void {
  for (const name of SIGNALS) process.removeAllListeners(name);
}

/** Ends the process as the signal ends a program that does not handle it. */
export function endBySignal(name: NodeJS.Signals): void {
  releaseSignals();
  process.kill(process.pid, name);
}

/** Ends the process with a status. Node.js waits for its threads, during which a signal ends it. */
export function exitNow(status: number): never {
  releaseSignals();
  process.exit(status);
}

export type SignalAbort = ReturnType<typeof abortOnSignals>;

/**
 * Makes the first signal abort the command instead of ending the process, so that the command can
 * clean up. A second one ends the process, {@link SECOND_SIGNAL_MS} after the first or later.
 */
export function abortOnSignals() {
  const stop = new AbortController();
  let status = 0;
  let firstAt: number | undefined;
  const end = (exitStatus: number): void => {
    status ||= exitStatus;
    stop.abort();
  };
  const abortBySignal = (name: NodeJS.Signals): void => end(SIGNAL_EXIT_BASE + constants.signals[name]);
  const receive = (name: NodeJS.Signals): void => {
    abortBySignal(name);
    const now = performance.now();
    if (firstAt !== undefined) setTimeout(endBySignal, firstAt + SECOND_SIGNAL_MS - now, name).unref();
    firstAt ??= now;
  };
  for (const name of SIGNALS) process.on(name, receive);
  process.stdout.on('error', ({ code }: NodeJS.ErrnoException) =>
    code === 'EPIPE' ? abortBySignal('SIGPIPE') : end(1),
  );
  return {
    /** Aborts on the first signal, or when standard output cannot be written. */
    signal: stop.signal,
    /** Returns the exit status after the signal aborted, or 0 if it did not. */
    status: (): number => status,
  };
}
