/** @module Formats the results of the `doctor` command. */
import { styleText } from 'node:util';

/** The result of one check. */
export interface Check {
  readonly name: string;
  /** `warn`: the service works with restrictions; `fail`: the service does not work. */
  readonly state: 'ok' | 'warn' | 'fail';
  readonly found: string;
  /** How to fix the problem. */
  readonly advice?: readonly string[];
}

const COLOURS = { ok: 'green', warn: 'yellow', fail: 'red' } as const;
const STATE_WIDTH = 6;
const NAME_WIDTH = 16;

/**
 * Formats the checks as a table, with a row for each check and each advice.
 *
 * @param columns width of the terminal
 */
export function formatTable(checks: readonly Check[], columns: number): string {
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
