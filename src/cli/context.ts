import { constants } from 'node:os';
import { type Logger, pino } from 'pino';
import { type Config, ConfigError, loadConfig } from '../config.ts';
/** What a command is given besides its arguments. */
export interface CliContext {
  /** The environment: the settings. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly version: string;
}

/** Ends the program with a sentence for whoever typed the command. */
export class CliError extends Error {
  override readonly name = 'Refused';
  readonly status: number;
  /** @param status the exit status */
  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

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

/** What the mill logs, for people: sentences instead of JSON. */

export interface WarningCollector {
  readonly log: Logger;
  /** What it warned of so far, each once. */
  readonly warnings: ReadonlySet<string>;
}

/** Nothing is printed: whoever runs the command knows which of it matters. */
export function createWarningCollector(): WarningCollector {
  const warnings = new Set<string>();
  const log = pino(
    { level: 'warn' },
    { write: (line: string) => void warnings.add((JSON.parse(line) as { msg: string }).msg) },
  );
  return { log, warnings };
}

/** How a command is stopped before its end, so that it can tidy up after itself. */

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** As shells have it, for what a signal ended. */
const BY_SIGNAL = 128;

export interface SignalAbort {
  /** Fires at the first signal, or when nobody reads any more what is printed. */
  readonly signal: AbortSignal;
  /** The exit status, once it has fired. */
  status(): number;
}

/** From now on a signal no longer ends the process by itself. */
export function abortOnSignals(): SignalAbort {
  const stop = new AbortController();
  let ending: NodeJS.Signals | undefined;
  const end = (name: NodeJS.Signals): void => {
    ending ??= name;
    stop.abort();
  };
  for (const name of SIGNALS) process.on(name, end);
  process.stdout.on('error', () => end('SIGPIPE'));
  return {
    signal: stop.signal,
    status: () => (ending === undefined ? 0 : BY_SIGNAL + constants.signals[ending]),
  };
}
