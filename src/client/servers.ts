/** @module Selects the instance for the next request: the least busy one that can accept requests. */

/** First delay after a failed connection, in ms. It doubles with each further failure. */
const MIN_BACKOFF_MS = 500;
/** Maximum delay after a failed connection, in ms. */
const MAX_BACKOFF_MS = 30_000;

/** An instance of the service. */
export interface Server {
  /** URL of the API, including the version. */
  readonly base: string;
  /** Counts a request to this instance until the returned function is called. */
  acquire(): () => void;
  /** Records that the instance responded. */
  succeeded(): void;
  /** Records that the connection failed. The instance gets no requests during a backoff. */
  failed(): void;
  /** Records that the instance returned Retry-After. */
  busy(ms: number): void;
}

/** The instances that share the requests. */
export interface Servers {
  /** Returns the instance for the next request, or the time in ms after which to call again. */
  next():
    | { readonly server: Server; readonly waitMs?: never }
    | { readonly server?: never; readonly waitMs: number };
}

interface State extends Server {
  /** Number of requests in progress. */
  requests: number;
  /** Time from which the instance can receive requests, in ms since the epoch. */
  readyAt: number;
}

/**
 * Creates the list of instances.
 *
 * @param now returns the time in ms since the epoch
 */
export function createServers(bases: readonly string[], now: () => number = Date.now): Servers {
  const servers = bases.map((base) => createServer(base, now));
  return {
    next() {
      const time = now();
      const ready = servers.filter(({ readyAt }) => readyAt <= time);
      const [first, ...others] = ready;
      if (!first) return { waitMs: Math.max(1, Math.min(...servers.map(({ readyAt }) => readyAt)) - time) };
      return { server: others.reduce((best, each) => (each.requests < best.requests ? each : best), first) };
    },
  };
}

function createServer(base: string, now: () => number): State {
  let failures = 0;
  return {
    base,
    requests: 0,
    readyAt: 0,
    acquire() {
      this.requests += 1;
      return () => {
        this.requests -= 1;
      };
    },
    succeeded() {
      failures = 0;
    },
    failed() {
      this.readyAt = now() + Math.min(MAX_BACKOFF_MS, MIN_BACKOFF_MS * 2 ** failures);
      failures += 1;
    },
    busy(ms) {
      failures = 0;
      this.readyAt = Math.max(this.readyAt, now() + ms);
    },
  };
}
