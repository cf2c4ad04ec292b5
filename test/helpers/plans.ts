/** @module Checks the arguments of plans. */
import type { Plan } from '../../src/conversion/plan/types.ts';

/** Matches strings that were built from missing values or invalid numbers. */
const NO_VALUE = /undefined|null|NaN|Infinity|\[object/;

/** Returns the invalid arguments of a plan: empty, not strings, or built from missing values. */
export function invalidArguments({ steps }: Plan): unknown[] {
  const values: readonly unknown[] = steps.flatMap(({ args }) => args);
  return values.filter((value) => typeof value !== 'string' || value === '' || NO_VALUE.test(value));
}
