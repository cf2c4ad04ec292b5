/** @module Divides long work of the main thread into turns, so as not to delay other requests. */

/** Time after which all work together yields to the event loop, in ms. */
const TURN_MS = 5;
let turnStarted = 0;
/** Continues the work that waits, first come, first served. */
const waiting: (() => void)[] = [];

/** Returns whether work must wait for the next turn of the event loop. */
export function isTurnOver(): boolean {
  return performance.now() - turnStarted > TURN_MS;
}

/**
 * Waits for a turn of the event loop. One turn continues the work of one caller, since each can
 * take as long as a whole turn.
 */
export function waitForTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.push(resolve) === 1) setImmediate(startTurn);
  });
}

function startTurn(): void {
  turnStarted = performance.now();
  waiting.shift()?.();
  if (waiting.length > 0) setImmediate(startTurn);
}

/** Maps items one by one, and yields to the event loop between two of them if a turn is over. */
export async function mapInTurns<T, R>(
  items: Iterable<T>,
  work: (item: T, at: number) => Promise<R> | R,
): Promise<R[]> {
  const results: R[] = [];
  for (const item of items) {
    if (isTurnOver()) await waitForTurn();
    results.push(await work(item, results.length));
  }
  return results;
}
