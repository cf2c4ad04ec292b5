import type { CliContext } from './context.ts';
import { type Check, formatTable } from './doctor/check.ts';
import { CHECKS } from './doctor/checks.ts';
import { collectReport } from './doctor/collect.ts';

/** `imagemill doctor`: what this machine has, what it lacks, and what to do about that. */

const CANNOT_SERVE = 2;

/** @returns the exit status: 0 when it can serve, with warnings or without; 2 when it cannot */
export async function doctor({ json = false }, { env, version }: CliContext): Promise<number> {
  const facts = await collectReport(env);
  try {
    const checks: Check[] = [];
    for (const check of CHECKS) checks.push(...(await check(facts)));
    const serves = checks.every(({ state }) => state !== 'fail');
    if (json) console.log(JSON.stringify({ version, serves, checks }));
    else console.log(`${formatTable(checks, process.stdout.columns || 80)}\n\n${verdict(version, checks)}`);
    return serves ? 0 : CANNOT_SERVE;
  } finally {
    if (!(facts.engine instanceof Error)) await facts.engine.close();
  }
}

function verdict(version: string, checks: readonly Check[]): string {
  const count = (state: Check['state']) => checks.filter((check) => check.state === state).length;
  if (count('fail') > 0) return `imagemill ${version} cannot serve here.`;
  const warnings = count('warn');
  const besides = warnings === 0 ? '' : `, with ${warnings} warning${warnings === 1 ? '' : 's'}`;
  return `imagemill ${version} can serve here${besides}.`;
}
