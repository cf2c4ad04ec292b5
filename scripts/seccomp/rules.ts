/** @module Types of seccomp filters. */
import type { CallName } from './call-numbers.ts';

/** Comparison of one half of an argument (low 32 bits by default) after applying `mask`. */
export type Condition = {
  /** Index of the argument, from 0. */
  readonly argument: 0 | 1 | 2 | 3 | 4 | 5;
  readonly half?: 'low' | 'high';
  /** Bits to compare; all by default. */
  readonly mask?: number;
} & ({ readonly oneOf: readonly number[] } | { readonly noneOf: readonly number[] });

/**
 * What happens to a call. `allow` runs it, `refuse` fails with EPERM, `absent` fails with ENOSYS. An object applies
 * `action` if any of the alternatives in `when` matches, and the opposite otherwise. An alternative matches if all of
 * its conditions are true.
 */
export type Rule =
  | 'allow'
  | 'refuse'
  | 'absent'
  | {
      readonly action: 'allow' | 'refuse';
      readonly when: readonly (readonly Condition[])[];
    };

/** Rules for system calls. */
export interface Filter {
  /** Rules by call name. */
  readonly calls: Readonly<Partial<Record<CallName, Rule>>>;
  /** Rule for calls up to {@link LAST_COMMON_CALL} that are not in `calls`. */
  readonly others: 'allow' | 'refuse';
  /** Rule for calls after {@link LAST_COMMON_CALL} that are not in `calls`. */
  readonly newer: 'allow' | 'absent';
}

/** Last call of Linux 6.1, the kernel of Debian 12. A C library that probes a later call expects ENOSYS. */
export const LAST_COMMON_CALL = 450;
