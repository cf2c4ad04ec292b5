/** @module Finds clients that send or read too few bytes. */

/** Minimum rate of a transfer. */
export interface MinimumRate {
  readonly bytesPerSecond: number;
  /** Time over which the rate is averaged, in milliseconds. */
  readonly windowMs: number;
}

/**
 * Calls `onTooSlow` for each window in which fewer bytes than the minimum were transferred. Windows
 * that start or end while the client is not expected to transfer any do not count.
 *
 * @param transferred returns the number of bytes since any fixed time, or undefined if the client
 *   is not expected to transfer any
 * @returns a function that stops the monitor
 */
export function monitorRate(
  transferred: () => number | undefined,
  { bytesPerSecond, windowMs }: MinimumRate,
  onTooSlow: () => void,
): () => void {
  const minBytes = (bytesPerSecond * windowMs) / 1000;
  let before = transferred();
  const timer = setInterval(() => {
    const now = transferred();
    if (before !== undefined && now !== undefined && now - before < minBytes) onTooSlow();
    before = now;
  }, windowMs);
  return () => clearInterval(timer);
}
