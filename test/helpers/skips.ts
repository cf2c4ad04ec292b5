import type { Context, Suite } from 'mocha';

/**
 * What a machine may lack for some tests. A test that lacks it is reported as pending, and the run fails unless the
 * environment variable MAY_SKIP, a list with commas, says that this machine need not have it.
 */
export type Requirement =
  | 'compiler'
  | 'hidden-files'
  | 'kernel-headers'
  | 'magick-version'
  | 'mounts'
  | 'proc'
  | 'process-namespace'
  | 'root';

/** By the full title of the test. */
const lacking = new Map<string, Requirement>();

/** Skips the test that runs, unless what it requires is here. */
export function requires(test: Context, requirement: Requirement, isHere: boolean): void {
  if (isHere) return;
  lacking.set(test.test?.fullTitle() ?? '', requirement);
  test.skip();
}

/** The pending tests of a suite that MAY_SKIP does not allow, a line each. */
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
