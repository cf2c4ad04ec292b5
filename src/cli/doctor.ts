/** @module The `doctor` command. */
import { plural } from '../text.ts';
import { type CliContext, CliError } from './context.ts';
import { type Check, formatTable } from './doctor/check.ts';
import { CHECKS } from './doctor/checks.ts';
import { collectReport, type DoctorReport } from './doctor/collect.ts';
import { formatSizingRow, KINDS, measureSizing } from './doctor/sizing.ts';

/** Exit status if this machine cannot serve. */
const EXIT_CANNOT_SERVE = 2;

/**
 * Runs `imagemill doctor`: checks this machine, and prints problems and how to fix them.
 *
 * @returns the exit status: 0 if this machine can serve, with or without warnings; 2 if it cannot
 */
export async function doctor(
  { json = false, sizing = false }: { json?: boolean; sizing?: boolean },
  { env, version }: CliContext,
): Promise<number> {
  const report = await collectReport(env);
  try {
    if (sizing) return await printSizing(report, json);
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

/**
 * Measures this machine, and prints its row of the table in docs/sizing.md.
 *
 * @throws {CliError} with status 2, if this machine cannot convert
 */
async function printSizing({ engine, config }: DoctorReport, json: boolean): Promise<number> {
  if (engine instanceof Error)
    throw new CliError(`${engine.message}\nRun "imagemill doctor" to find out why.`, EXIT_CANNOT_SERVE);
  const measurements = await measureSizing(engine, config, (label) => console.error(`imagemill: ${label} …`));
  if (json) {
    console.log(JSON.stringify({ processors: config.CONCURRENCY, conversionsPerSecond: measurements }));
    return 0;
  }
  const head = ['Machine', 'Processors', 'ImageMagick', ...KINDS.map(({ label }) => label)];
  console.log(`| ${head.join(' | ')} |\n|${'---|'.repeat(head.length)}`);
  console.log(formatSizingRow(measurements, engine.toolchain, config));
  return 0;
}

function formatVerdict(version: string, checks: readonly Check[]): string {
  const count = (state: Check['state']) => checks.filter((check) => check.state === state).length;
  if (count('fail') > 0) return `imagemill ${version} cannot serve here.`;
  const warnings = count('warn');
  const suffix = warnings === 0 ? '' : `, with ${plural(warnings, 'warning')}`;
  return `imagemill ${version} can serve here${suffix}.`;
}
