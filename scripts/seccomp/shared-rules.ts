/** @module Rules that both filters use. */
import { CLONE_NEW_NAMESPACES, CLONE_THREAD } from './flags.ts';
import type { Rule } from './rules.ts';

/** Allows clone(2) to start threads, but not processes or namespaces. */
export const THREADS_ONLY: Rule = {
  action: 'allow',
  when: [[{ argument: 0, mask: CLONE_THREAD | CLONE_NEW_NAMESPACES, oneOf: [CLONE_THREAD] }]],
};

/**
 * Allows prlimit64(2) to read the limits of the process itself, but not to set any: the pointer to new limits must be
 * null.
 */
export const OWN_LIMITS_READ: Rule = {
  action: 'allow',
  when: [
    [
      { argument: 0, oneOf: [0] },
      { argument: 2, oneOf: [0] },
      { argument: 2, half: 'high', oneOf: [0] },
    ],
  ],
};
