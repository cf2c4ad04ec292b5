import { CLONE_NEW_NAMESPACES, CLONE_THREAD } from './flags.ts';
import type { Rule } from './rules.ts';

/** For clone(2): starts a thread, and neither a process nor a namespace. */
export const THREADS_ONLY: Rule = {
  action: 'allow',
  when: [[{ argument: 0, mask: CLONE_THREAD | CLONE_NEW_NAMESPACES, oneOf: [CLONE_THREAD] }]],
};

/** For prlimit64(2): reads limits of the process itself, and sets none. The new limits are a null pointer. */
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
