/**
 * @module Skips tests that need something the machine lacks, and fails if that was not expected.
 */
import type { Context, Suite } from 'mocha';

/**
 * Requirement of a test that a machine may lack. Such a test is reported as pending, and the run
 * fails unless the environment variable MAY_SKIP, a comma-separated list, names the requirement.
 */
export type Requirement =
  | 'browser'
  | 'compiler'
  | 'disk'
  | 'firefox'
  | 'hidden-files'
  | 'magick-version'
  | 'mounts'
  | 'proc'
  | 'promtool'
  | 'root'
  | 'slurm';

/** Missing requirements by full title of the test. */
const lacking = new Map<string, Requirement>();

/**
 * Skips the current test, or in a hook all tests of its suite, unless the requirement is available.
 */
export function requires(context: Context, requirement: Requirement, isHere: boolean): void {
  if (isHere) return;
  const { test } = context;
  const note = (skipped: { fullTitle(): string }): unknown => lacking.set(skipped.fullTitle(), requirement);
  if (isHook(context)) test?.parent?.eachTest(note);
  else if (test) note(test);
  context.skip();
}

const isHook = ({ test }: Context): boolean => (test as { type?: string } | undefined)?.type === 'hook';

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
