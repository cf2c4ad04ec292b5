/** @module Ends the `convert` command soon after a signal, even if a tool is being started or a connection hangs. */
import type { SignalAbort } from '../context.ts';

/** Time after a signal at which the process ends, even if something still runs, in ms. */
const MAX_STOP_MS = 800;

/** Further time for results that are being written, in ms. A disk in the network can hang. */
const MAX_WRITE_MS = 5_000;

/** Options of {@link exitSoonAfter}. */
export interface StopOptions {
  /** Results that are being written. The process ends after them, so that none is incomplete or not counted. */
  readonly writing: ReadonlySet<Promise<unknown>>;
  /** Prints what the command did before the signal, and completes its report. */
  readonly explain: () => Promise<void>;
  /** Ends the process. */
  readonly exit: (status: number) => void;
}

/**
 * Explains and ends the process {@link MAX_STOP_MS} after a signal, or up to {@link MAX_WRITE_MS} later.
 *
 * @returns a function that explains at once, for a command that ends earlier. Only the first call explains.
 */
export function exitSoonAfter(
  { signal, status }: SignalAbort,
  { writing, explain, exit }: StopOptions,
): () => Promise<void> {
  let explained: Promise<void> | undefined;
  const explainOnce = (): Promise<void> => {
    explained ??= explain();
    return explained;
  };
  const stop = async (): Promise<void> => {
    const late = Promise.withResolvers<void>();
    setTimeout(late.resolve, MAX_WRITE_MS);
    await Promise.race([Promise.allSettled(writing), late.promise]);
    await Promise.race([explainOnce(), late.promise]);
    exit(status());
  };
  signal.addEventListener('abort', () => setTimeout(stop, MAX_STOP_MS).unref());
  return explainOnce;
}
