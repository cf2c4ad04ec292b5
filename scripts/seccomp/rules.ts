import type { CallName } from './call-numbers.ts';

/** One comparison of an argument: its low 32 bits, or its high ones, after `mask`. */
export type Condition = {
  /** The place of the argument, from 0. */
  readonly argument: 0 | 1 | 2 | 3 | 4 | 5;
  readonly half?: 'low' | 'high';
  /** By default all bits. */
  readonly mask?: number;
} & ({ readonly oneOf: readonly number[] } | { readonly noneOf: readonly number[] });

/**
 * What becomes of a call: `allow`; `refuse`, with EPERM; `absent`, with ENOSYS; or one of the first two by its arguments,
 * where `when` has alternatives, each of which is a list of conditions that all must be true.
 */
export type Rule =
  | 'allow'
  | 'refuse'
  | 'absent'
  | {
      readonly action: 'allow' | 'refuse';
      readonly when: readonly (readonly Condition[])[];
    };

/** A filter: a rule for each call that it names, and one for all others. */
export interface Filter {
  readonly calls: Readonly<Partial<Record<CallName, Rule>>>;
  /** For calls up to {@link LAST_COMMON_CALL} that have no rule. */
  readonly others: 'allow' | 'refuse';
  /** For calls after {@link LAST_COMMON_CALL} that have no rule. */
  readonly newer: 'allow' | 'absent';
}

/** The last call of Linux 6.1, which Debian 12 has. A C library that probes a later one expects ENOSYS there. */
export const LAST_COMMON_CALL = 450;
