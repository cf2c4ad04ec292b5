/** @module The `doctor` command. */

import { styleText } from 'node:util';
import { plural } from '../text.ts';
import { type CliContext, EXIT_CANNOT_RUN } from './context.ts';
import { CHECKS } from './doctor/checks.ts';
import { type CheckResult, collectReport, loadServiceSettings } from './doctor/collect.ts';

export interface DoctorFlags {
  readonly json?: boolean;
  /** File of settings. */
  readonly env?: string;
}

/**
 * Runs `imagemill doctor`: checks this machine, and prints problems and how to fix them.
 *
 * @returns the exit status: 0 if this machine can serve, with or without warnings; 2 if it cannot
 */
export async function doctor(
  { json = false, env: file }: DoctorFlags,
  { env, version }: CliContext,
): Promise<number> {
  const report = await collectReport(await loadServiceSettings(env, file));
  try {
    const checks: CheckResult[] = [];
    for (const check of CHECKS) checks.push(...(await check(report)));
    const serves = checks.every(({ state }) => state !== 'fail');
    if (json) console.log(JSON.stringify({ version, serves, checks }));
    else
      console.log(
        `${formatTable(checks, process.stdout.columns || 80)}\n\n${formatVerdict(version, checks)}`,
      );
    return serves ? 0 : EXIT_CANNOT_RUN;
  } finally {
    if (!(report.engine instanceof Error)) await report.engine.close();
  }
}

function formatVerdict(version: string, checks: readonly CheckResult[]): string {
  const count = (state: CheckResult['state']) => checks.filter((check) => check.state === state).length;
  if (count('fail') > 0) return `imagemill ${version} cannot serve here.`;
  const warnings = count('warn');
  const suffix = warnings === 0 ? '' : `, with ${plural(warnings, 'warning')}`;
  return `imagemill ${version} can serve here${suffix}.`;
}

const COLOURS = { ok: 'green', warn: 'yellow', fail: 'red' } as const;
const STATE_WIDTH = 6;
const NAME_WIDTH = 16;

/**
 * Formats the checks as a table, with a row for each check and each advice.
 *
 * @param columns width of the terminal
 */
function formatTable(checks: readonly CheckResult[], columns: number): string {
  const indent = ' '.repeat(STATE_WIDTH + NAME_WIDTH);
  const width = Math.max(30, columns - indent.length);
  return checks
    .flatMap(({ name, state, found, advice = [] }) => {
      const lines = [...wrap(found, width), ...advice.flatMap((line) => wrap(`→ ${line}`, width))];
      const head = styleText(COLOURS[state], state.padEnd(STATE_WIDTH)) + name.padEnd(NAME_WIDTH);
      return lines.map((line, index) => (index === 0 ? head : indent) + line);
    })
    .join('\n');
}

/** Breaks a text into lines between words. */
function wrap(text: string, width: number): string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1) as string;
    if (line === '') lines[lines.length - 1] = word;
    else if (line.length + 1 + word.length <= width) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(text.startsWith('→') ? `  ${word}` : word);
  }
  return lines;
}
