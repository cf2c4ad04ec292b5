/** @module How much clients and groups use the slots of a queue, and which is served next. */

/** A point in time. Points with equal `ms` differ in `order`, which increases with each point. */
export interface Moment {
  readonly ms: number;
  readonly order: number;
}

/** Slots that a client, or a group, uses. */
interface Usage {
  /** Number of its jobs that have a slot. */
  running: number;
  /** Time when a job of it last gave a slot back. */
  lastServed: Moment;
  /** Slot time until `countedAt`, in ms. */
  usedMs: number;
  countedAt: number;
}

/** Returns the usage of a client or group until `ms`. */
export type Usages = (user: object, ms: number) => Usage;

/** Time after which used slot time counts half, in ms: the window of the rate limit. */
const HALF_LIFE_MS = 60_000;
/** Slot time of a client that is too small to be remembered, in ms. */
export const NEGLIGIBLE_MS = 100;

/** Creates the usages of slots of one kind. They are forgotten with their client or group. */
export function createUsages(): Usages {
  const usages = new WeakMap<object, Usage>();
  return (user, ms) => {
    let usage = usages.get(user);
    if (!usage) {
      usage = {
        running: 0,
        lastServed: { ms: Number.NEGATIVE_INFINITY, order: 0 },
        usedMs: 0,
        countedAt: ms,
      };
      usages.set(user, usage);
    }
    const elapsed = ms - usage.countedAt;
    usage.usedMs = usage.usedMs * 2 ** (-elapsed / HALF_LIFE_MS) + usage.running * elapsed;
    usage.countedAt = ms;
    return usage;
  };
}

/**
 * Returns the candidate with the fewest running jobs. Among equals, returns the one that has waited
 * longest since it arrived or was last served, minus the slot time that it used. So a client with
 * long jobs waits longer, but not forever.
 */
export function leastServed<T>(
  candidates: readonly T[],
  usageOf: (candidate: T, ms: number) => Usage,
  arrivalOf: (candidate: T) => Moment,
  ms: number,
): T | undefined {
  const ranked = candidates.map((candidate) => {
    const { running, lastServed, usedMs } = usageOf(candidate, ms);
    const arrival = arrivalOf(candidate);
    const since = lastServed.order > arrival.order ? lastServed : arrival;
    return { candidate, running, dueMs: since.ms + usedMs, order: since.order };
  });
  ranked.sort((a, b) => a.running - b.running || a.dueMs - b.dueMs || a.order - b.order);
  return ranked[0]?.candidate;
}
