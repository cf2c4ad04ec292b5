/**
 * @module Writes the rows of the options of a result in `docs/api.md` from the table of options: `npm run option-rows`.
 * test/docs.test.ts checks that they are up to date. Rows of other fields stay as they are.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ALL_OUTPUT_TYPES } from '../src/tables/formats.ts';
import {
  fieldName,
  OPTION_NAMES,
  type OptionName,
  type OptionType,
  optionRow,
} from '../src/tables/options.ts';

/** Maximum length of a description in a row. Of a longer one, it has the first sentence, and the text of the document the rest. */
const MAX_LENGTH = 250;

const DOCUMENT = new URL('../docs/api.md', import.meta.url);

/** Returns `docs/api.md` with current rows. A new row follows that of the option before it. */
export function withOptionRows(): string {
  const lines = readFileSync(DOCUMENT, 'utf8').split('\n');
  let last = 0;
  for (const name of OPTION_NAMES) {
    const isRow = new RegExp(`^\\| [^|]*\`${fieldName(name)}[ \`]`);
    const at = lines.findIndex((line) => isRow.test(line));
    last = at === -1 ? last + 1 : at;
    lines.splice(last, at === -1 ? 0 : 1, formatOption(name));
  }
  return lines.join('\n');
}

function formatOption(name: OptionName): string {
  const { type, default: fallback, description } = optionRow(name);
  const whole = typeof description === 'string' ? description : description(ALL_OUTPUT_TYPES);
  const { text, stated = fallback === undefined ? 'none' : code(fallback) } = splitDefault(whole);
  const sentences = text.length > MAX_LENGTH ? text.replace(/(?<=\.) (?=[A-Z`]).*/, '') : text;
  return formatRow(code(fieldName(name)), stated, [valuesOf(type), sentences].filter(Boolean).join(' '));
}

/** Takes the default out of a text that states it, such as `Default: white.` */
function splitDefault(text: string): { readonly text: string; readonly stated?: string } {
  const [found, stated] = / Default: ([^.]*)\./.exec(text) ?? [];
  return found === undefined || stated === undefined ? { text } : { text: text.replace(found, ''), stated };
}

/** Returns the values of an option, unless its description states them. */
function valuesOf(type: OptionType): string {
  switch (type.kind) {
    case 'integer':
      return `${type.min} to ${type.max}.`;
    case 'number':
      return `${type.min} to ${type.max}, rounded to three decimals${type.yes === undefined ? '' : ', `yes` or `no`'}.`;
    case 'numbers':
      return `${list(Object.keys(type.labels))}.`;
    case 'words':
      return type.point || type.numbered || type.sized || Object.keys(type.labels).length > 5
        ? ''
        : `${list(Object.keys(type.labels).map(code))}.`;
    default:
      return '';
  }
}

const list = (words: readonly string[]): string => `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
const code = (value: unknown): string => (typeof value === 'number' ? `${value}` : `\`${value}\``);
const formatRow = (...cells: readonly string[]): string =>
  `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;

const [, script = ''] = process.argv;
if (script === fileURLToPath(import.meta.url)) writeFileSync(DOCUMENT, withOptionRows());
