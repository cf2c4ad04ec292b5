/** @module The `doctor` command. */
import type { CliContext } from './context.ts';
import { type Check, formatTable } from './doctor/check.ts';
import { CHECKS } from './doctor/checks.ts';
import { collectReport } from './doctor/collect.ts';

/** Exit status if this machine cannot serve. */
const EXIT_CANNOT_SERVE = 2;

/**
 * Runs `imagemill doctor`: checks this machine, and prints what is missing and how to fix it.
 *
 * @returns the exit status: 0 if this machine can serve, with or without warnings; 2 if it cannot
 */
export async function doctor({ json = false }, { env, version }: CliContext): Promise<number> {
  const report = await collectReport(env);
  try {
    const checks: Check[] = [];
    for (const check of CHECKS) checks.push(...(await check(report)));
    const serves = checks.every(({ state }) => state !== 'fail');
    if (json) console.log(JSON.stringify({ version, serves, checks }));
    else
      console.log(
        `${formatTable(checks, process.stdout.columns || 80)}\n\n${formatVerdict(version, checks)}`,
      );
    return serves ? 0 : EXIT_CANNOT_SERVE;
  } finally {
    if (!(report.engine instanceof Error)) await report.engine.close();
  }
}

function formatVerdict(version: string, checks: readonly Check[]): string {
  const count = (state: Check['state']) => checks.filter((check) => check.state === state).length;
  if (count('fail') > 0) return `imagemill ${version} cannot serve here.`;
  const warnings = count('warn');
  const besides = warnings === 0 ? '' : `, with ${warnings} warning${warnings === 1 ? '' : 's'}`;
  return `imagemill ${version} can serve here${besides}.`;
}
