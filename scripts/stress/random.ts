/** @module Reproducible pseudorandom numbers (mulberry32). */

/** Pseudorandom number generator. The same seed gives the same sequence. */
export interface Random {
  /** Returns a number from 0 (inclusive) to 1 (exclusive). */
  next(): number;
  /** Returns an integer from 0 (inclusive) to `end` (exclusive). */
  below(end: number): number;
  /** Returns a random item. */
  pick<T>(items: readonly T[]): T;
}

/** Creates a generator (mulberry32) from a 32-bit seed. */
export function seeded(seed: number): Random {
  let state = seed | 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (end: number): number => Math.floor(next() * end);
  return { next, below, pick: (items) => items[below(items.length)] as (typeof items)[number] };
}
