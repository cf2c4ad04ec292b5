/** @module Selects the instance for the next request: the least busy one that can accept requests. */
import { setTimeout as wait } from 'node:timers/promises';

/** First delay after a failed connection, in ms. It doubles with each further failure. */
const MIN_BACKOFF_MS = 500;
/** Maximum delay after a failed connection, in ms. */
const MAX_BACKOFF_MS = 30_000;

/** An instance of the service. */
export class Server {
  /** URL of the API, including the version. */
  readonly base: string;
  /** Number of requests in progress. */
  requests = 0;
  /** Time from which the instance can receive requests, in ms since the epoch. */
  readyAt = 0;
  /** Failed connections since the last response. */
  #failures = 0;

  constructor(base: string) {
    this.base = base;
  }

  /** Records that the instance responded. */
  succeeded(): void {
    this.#failures = 0;
  }

  /** Records that the connection failed. The instance gets no requests during a backoff. */
  failed(): void {
    this.readyAt = Date.now() + Math.min(MAX_BACKOFF_MS, MIN_BACKOFF_MS * 2 ** this.#failures);
    this.#failures += 1;
  }

  /** Records that the instance returned Retry-After. */
  busy(ms: number): void {
    this.#failures = 0;
    this.readyAt = Math.max(this.readyAt, Date.now() + ms);
  }
}

/**
 * Waits until an instance can accept a request, and returns the least busy one.
 *
 * @throws the signal's reason if it aborts
 */
export async function nextServer(servers: readonly Server[], signal: AbortSignal): Promise<Server> {
  for (;;) {
    signal.throwIfAborted();
    const now = Date.now();
    const [first, ...others] = servers.filter(({ readyAt }) => readyAt <= now);
    if (first) return others.reduce((best, each) => (each.requests < best.requests ? each : best), first);
    const waitMs = Math.min(...servers.map(({ readyAt }) => readyAt)) - now;
    await wait(waitMs, undefined, { signal }).catch(() => {});
  }
}
