import { styleText } from 'node:util';

/** What was looked at, and how it is told. */

export interface Check {
  readonly name: string;
  /** `warn`: it serves, but not all it could; `fail`: it cannot serve. */
  readonly state: 'ok' | 'warn' | 'fail';
  readonly found: string;
  /** What to do about it. */
  readonly advice?: readonly string[];
}

const COLOURS = { ok: 'green', warn: 'yellow', fail: 'red' } as const;
const STATE_WIDTH = 6;
const NAME_WIDTH = 16;

/**
 * A line a check, and those that its advice takes.
 *
 * @param columns of the terminal
 */
export function formatTable(checks: readonly Check[], columns: number): string {
  const indent = ' '.repeat(STATE_WIDTH + NAME_WIDTH);
  const width = Math.max(30, columns - indent.length);
  return checks
    .flatMap(({ name, state, found, advice = [] }) => {
      const told = [...wrapped(found, width), ...advice.flatMap((line) => wrapped(`→ ${line}`, width))];
      const head = styleText(COLOURS[state], state.padEnd(STATE_WIDTH)) + name.padEnd(NAME_WIDTH);
      return told.map((line, at) => (at === 0 ? head : indent) + line);
    })
    .join('\n');
}

/** Broken between words. */
function wrapped(text: string, width: number): string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1) as string;
    if (line === '') lines[lines.length - 1] = word;
    else if (line.length + 1 + word.length <= width) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(text.startsWith('→') ? `  ${word}` : word);
  }
  return lines;
}
