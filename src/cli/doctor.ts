/** @module The `doctor` command. */

import { styleText } from 'node:util';
import { plural, toSafeJson } from '../base/text.ts';
import { type CliContext, CliError, EXIT_CANNOT_RUN } from './context.ts';
import { CHECKS } from './doctor/checks.ts';
import { type CheckResult, collectReport, loadServiceSettings } from './doctor/collect.ts';

export interface DoctorFlags {
  readonly json?: boolean;
  readonly env?: string;
  /** Whether to attack this installation instead. */
  readonly attack?: boolean;
  /** Part of the names of the attacks to make. */
  readonly only?: string;
}

/**
 * Runs `imagemill doctor`: checks this machine, and prints problems and how to fix them.
 *
 * @returns the exit status: 0 if this machine can serve, with or without warnings; 2 if it cannot;
 *   with `attack`, see there
 */
export async function doctor(
  { json = false, env: file, attack: attacks = false, only }: DoctorFlags,
  { env, version }: CliContext,
): Promise<number> {
  if (only !== undefined && !attacks) throw new CliError('--only needs --attack.');
  const settings = await loadServiceSettings(env, file);
  if (attacks) {
    const { attack } = await import('./doctor/attack.ts');
    return attack({ json, only }, { env: settings.env, version });
  }
  const report = await collectReport(settings);
  try {
    const checks: CheckResult[] = [];
    for (const check of CHECKS) checks.push(...(await check(report)));
    const serves = checks.every(({ state }) => state !== 'fail');
    if (json) console.log(toSafeJson({ version, serves, checks }));
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

/** Formats the checks, with a row for each check and each advice. */
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
