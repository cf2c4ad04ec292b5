/**
 * @module Writes the rows of the options of a result in `docs/api.md` and `docs/cli.md` from the table of options:
 * `npm run option-rows`. test/docs.test.ts checks that they are up to date. Rows of other fields and flags stay as they are.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ALL_OUTPUT_TYPES } from '../src/formats.ts';
import {
  describeFlag,
  fieldName,
  flagName,
  OPTION_NAMES,
  type OptionName,
  type OptionType,
  optionRow,
} from '../src/options.ts';

/** Maximum length of a description in a row. Of a longer one, the section of the option has the rest. */
const MAX_LENGTH = 250;

/** The documents, and the rows of an option in each. */
const DOCUMENTS: Readonly<
  Record<string, { rowOf: (name: OptionName) => string; cellOf: (name: OptionName) => string }>
> = {
  'docs/api.md': { rowOf: apiRow, cellOf: fieldName },
  'docs/cli.md': { rowOf: cliRow, cellOf: flagName },
};

/** Returns the documents with current rows, by path. A new row follows that of the option before it. */
export function optionRows(): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(DOCUMENTS).map(([path, { rowOf, cellOf }]) => {
      const lines = readFileSync(new URL(`../${path}`, import.meta.url), 'utf8').split('\n');
      let last = 0;
      for (const name of OPTION_NAMES) {
        const isRow = new RegExp(`^\\| [^|]*\`${cellOf(name)}[ \`]`);
        const at = lines.findIndex((line) => isRow.test(line));
        last = at === -1 ? last + 1 : at;
        lines.splice(last, at === -1 ? 0 : 1, rowOf(name));
      }
      return [path, lines.join('\n')];
    }),
  );
}

function apiRow(name: OptionName): string {
  const { type, default: fallback, description, section } = optionRow(name);
  const whole = typeof description === 'string' ? description : description(ALL_OUTPUT_TYPES);
  const { text, stated = fallback === undefined ? 'none' : code(fallback) } = splitDefault(whole);
  const isLong = section !== undefined && text.length > MAX_LENGTH;
  const sentences = isLong ? text.replace(/(?<=\.) (?=[A-Z`]).*/, '') : text;
  const see = section === undefined ? [] : [`See [${section}](${anchorOf(section)}).`];
  return formatRow(
    code(fieldName(name)),
    stated,
    [valuesOf(type), sentences, ...see].filter(Boolean).join(' '),
  );
}

function cliRow(name: OptionName): string {
  const { default: fallback, flag, section } = optionRow(name);
  const { text, stated = fallback === undefined ? 'none' : fallback === false ? 'off' : code(fallback) } =
    splitDefault(flag.help);
  const [flags] = describeFlag(name);
  const withCode = text.replaceAll(/--[\w=-]+/g, code);
  const see =
    section === undefined
      ? ''
      : `${text.endsWith('…') ? '' : '.'} See [${section}](api.md${anchorOf(section)}).`;
  return formatRow(flags.split(', ').map(code).join(', '), stated, withCode + see);
}

/** Takes the default out of a text that states it, such as `(default: white)`. */
function splitDefault(text: string): { readonly text: string; readonly stated?: string } {
  const [found, inHelp, stated = inHelp] = / \(default: (.*)\)$| Default: ([^.]*)\./.exec(text) ?? [];
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
      return type.point || type.numbered || Object.keys(type.labels).length > 5
        ? ''
        : `${list(Object.keys(type.labels).map(code))}.`;
    default:
      return '';
  }
}

const list = (words: readonly string[]): string => `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
const code = (value: unknown): string => (typeof value === 'number' ? `${value}` : `\`${value}\``);
const anchorOf = (section: string): string => `#${section.toLowerCase().replaceAll(' ', '-')}`;
const formatRow = (...cells: readonly string[]): string =>
  `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;

const [, script = ''] = process.argv;
if (script === fileURLToPath(import.meta.url))
  for (const [path, text] of optionRows()) writeFileSync(new URL(`../${path}`, import.meta.url), text);
