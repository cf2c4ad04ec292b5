/** @module Skips tests that need something the machine lacks, and fails if that was not expected. */
import type { Context, Suite } from 'mocha';

/**
 * Requirement of a test that a machine may lack. Such a test is reported as pending, and the run fails unless the
 * environment variable MAY_SKIP, a comma-separated list, names the requirement.
 */
export type Requirement = 'compiler' | 'hidden-files' | 'magick-version' | 'mounts' | 'proc' | 'root';

/** Missing requirements by full title of the test. */
const lacking = new Map<string, Requirement>();

/** Skips the current test unless the requirement is available. */
export function requires(test: Context, requirement: Requirement, isHere: boolean): void {
  if (isHere) return;
  lacking.set(test.test?.fullTitle() ?? '', requirement);
  test.skip();
}

/** Returns a line for each pending test that MAY_SKIP does not allow. */
export function unexpectedSkips(suite: Suite, { MAY_SKIP = '' }: NodeJS.ProcessEnv): string[] {
  const allowed = MAY_SKIP.split(',').map((name) => name.trim());
  const lines: string[] = [];
  suite.eachTest((test) => {
    const title = test.fullTitle();
    const requirement = lacking.get(title);
    if (test.isPending() && !(requirement && allowed.includes(requirement)))
      lines.push(`${title} (requires ${requirement ?? 'nothing that MAY_SKIP could name'})`);
  });
  return lines;
}
