import type { Plan } from '../../src/conversion/plan/types.ts';

/** How JavaScript writes what is missing, and what is no number. */
const NO_VALUE = /undefined|null|NaN|Infinity|\[object/;

/** The arguments of a plan that no program can be given: what is no string, or a string made of a missing value. */
export function invalidArguments({ steps }: Plan): unknown[] {
  const words: readonly unknown[] = steps.flatMap(({ args }) => args);
  return words.filter((word) => typeof word !== 'string' || word === '' || NO_VALUE.test(word));
}
