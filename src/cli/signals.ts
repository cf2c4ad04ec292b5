import { constants } from 'node:os';

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
