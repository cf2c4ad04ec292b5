/**
 * @module Writes the generated files of the Debian package into a folder: manual pages, the file of
 * settings and completions.
 *
 *     node scripts/make-package-files.ts FOLDER
 *
 * The manual page of the program comes from the commands, like `--help`; the settings come from
 * docs/configuration.md, which the tests compare with src/tables/config.ts.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { argv, env } from 'node:process';
import type { Command } from 'commander';
import { COMPLETION_SCRIPTS } from '../src/cli/completion.ts';
import { createProgram } from '../src/cli/program.ts';
import { VERSION } from '../src/folders.ts';
import { findSection, PROJECT, tableRows } from '../test/helpers/markdown.ts';

/** Values that the package sets, because the service is for this machine and a proxy on it. */
const PACKAGE_VALUES: Readonly<Record<string, string>> = {
  HOST: '127.0.0.1',
  TRUST_PROXY: 'loopback',
  SANDBOX: 'on',
};
/** Values that the file of settings suggests. */
const SUGGESTED_VALUES: Readonly<Record<string, string>> = { API_KEYS_FILE: '/etc/imagemill/keys' };
/** Defaults that the unit sets. */
const UNIT_DEFAULTS: Readonly<Record<string, string>> = { TEMP_DIR: '/run/imagemill' };

interface Setting {
  readonly name: string;
  /** Value, or words such as `none`. */
  readonly fallback: string;
  readonly description: string;
}

interface SettingsGroup {
  readonly heading: string;
  readonly settings: readonly Setting[];
}

/** Reads the settings from the tables of docs/configuration.md, by heading. */
async function readSettings(): Promise<SettingsGroup[]> {
  const text = await readFile(join(PROJECT, 'docs/configuration.md'), 'utf8');
  return [...text.matchAll(/^## (.+)$/gm)].flatMap(([line, heading = '']) => {
    const rows = tableRows(findSection(text, line)).filter((row) => /^`[A-Z_]+`$/.test(row[0] ?? ''));
    const settings = rows
      .filter((row) => row.length === 3 && !row[0]?.includes(','))
      .map((row) => row.map(toPlainText))
      .map(([name = '', fallback = '', description = '']) => {
        return { name, fallback: UNIT_DEFAULTS[name] ?? fallback, description };
      });
    return settings.length > 0 ? [{ heading, settings }] : [];
  });
}

/** Removes the Markdown of links and code. */
const toPlainText = (cell: string): string =>
  cell.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll('`', '');

// --- the file of settings ---------------------------------------------------

const COMMENT_WIDTH = 98;

function formatSettings(groups: readonly SettingsGroup[]): string {
  const head = `# Settings of the service. imagemill.env(5) describes this file. After a change: systemctl restart imagemill
# To accept connections from other machines, also add their addresses to IPAddressAllow= with: systemctl edit imagemill`;
  const parts = groups.map(
    ({ heading, settings }) => `# --- ${heading} ---\n\n${settings.map(formatSetting).join('\n\n')}`,
  );
  return `${[head, ...parts].join('\n\n')}\n`;
}

function formatSetting({ name, fallback, description }: Setting): string {
  const own = PACKAGE_VALUES[name];
  const isValue = /^\S+$/.test(fallback) && fallback !== 'none';
  const remark = isValue && own === undefined ? '' : ` (default: ${fallback})`;
  const value = SUGGESTED_VALUES[name] ?? (isValue ? fallback : '');
  const line = own === undefined ? `#${name}=${value}` : `${name}=${own}`;
  return [...wrap(`${description}${remark}`).map((text) => `# ${text}`), line].join('\n');
}

/** Breaks a text into lines between words. */
const wrap = (text: string): string[] =>
  text.match(new RegExp(`.{1,${COMMENT_WIDTH}}(?=\\s|$)`, 'g'))?.map((line) => line.trim()) ?? [];

// --- manual pages -----------------------------------------------------------

/** Escapes a text for roff. */
const roff = (text: string): string =>
  text.replaceAll('\\', '\\e').replaceAll('-', '\\-').replaceAll("'", '\\(aq').replace(/^\./gm, '\\&.');

/** Formats entries as a list with the names in bold. */
const tagged = (entries: readonly (readonly [name: string, text: string])[]): string =>
  entries.map(([name, text]) => `.TP\n.B ${roff(name)}\n${roff(text)}`).join('\n');

const verbatim = (text: string): string => `.nf\n${roff(text)}\n.fi`;

/** Formats a manual page. Its date is that of the commit. */
function formatPage(name: string, section: number, purpose: string, body: readonly string[]): string {
  const date = new Date(Number(env.SOURCE_DATE_EPOCH ?? 0) * 1000).toISOString().slice(0, 10);
  const head = `.TH ${name.toUpperCase()} ${section} ${date} "imagemill ${VERSION}"`;
  return `${[head, '.SH NAME', `${name} \\- ${roff(purpose)}`, ...body].join('\n')}\n`;
}

function formatProgramPage(program: Command): string {
  const describe = (command: Command, words: readonly string[]): string[] => {
    const help = command.createHelp();
    const { before, after } = helpTexts(command);
    const options = help.visibleOptions(command).filter(({ long }) => long !== '--help');
    const args = help.visibleArguments(command);
    return [
      ...(words.length > 1 ? [`.SS ${roff(words.join(' '))}`, roff(command.description())] : []),
      ...(words.length > 1 ? [verbatim(before)] : []),
      tagged(args.map((arg) => [help.argumentTerm(arg), help.argumentDescription(arg)])),
      tagged(options.map((option) => [help.optionTerm(option), help.optionDescription(option)])),
      ...(after ? ['.PP', verbatim(after)] : []),
      ...help
        .visibleCommands(command)
        .filter((sub) => sub.name() !== 'help')
        .flatMap((sub) => describe(sub, [...words, sub.name()])),
    ].filter((text) => text !== '');
  };
  return formatPage('imagemill', 1, 'convert images, as a service or on the command line', [
    '.SH SYNOPSIS',
    `.B imagemill\n.RI [ command ]\n.RI [ options ]`,
    '.SH DESCRIPTION',
    roff(program.description()),
    '.SH COMMANDS',
    ...describe(program, ['imagemill']),
    '.SH FILES',
    tagged([['/etc/imagemill/imagemill.env', 'Settings of the service: see imagemill.env(5).']]),
    '.SH SEE ALSO',
    '.BR imagemill.env (5)\n.PP\n/usr/share/doc/imagemill/docs',
  ]);
}

/** Returns the usage of a command, and the text that its help has at the end. */
function helpTexts(command: Command): { before: string; after: string } {
  let whole = '';
  command.configureOutput({ writeOut: (text) => (whole += text) }).outputHelp();
  const after = whole.slice(command.helpInformation().length).trim();
  return { before: command.createHelp().commandUsage(command), after };
}

function formatSettingsPage(groups: readonly SettingsGroup[]): string {
  const sections = groups.map(({ heading, settings }) => {
    const entries = settings.map(
      ({ name, fallback, description }) => [name, `${description} Default: ${fallback}.`] as const,
    );
    return `.SS ${roff(heading)}\n${tagged(entries)}`;
  });
  const own = Object.entries(PACKAGE_VALUES).map(([name, value]) => `${name}=${value}`);
  return formatPage('imagemill.env', 5, 'settings of imagemill', [
    '.SH DESCRIPTION',
    roff(
      `/etc/imagemill/imagemill.env has the settings of the service, one NAME=value in each line, which systemd passes to it as environment variables. Without a change, it sets ${own.join(', ')}. An empty value counts as unset. The commands on the command line read the same settings from their environment.`,
    ),
    '.PP',
    roff(
      '"imagemill doctor" checks the settings. "systemctl restart imagemill" applies them. A service with an invalid setting ends with status 2, and its log names all problems: "journalctl -u imagemill".',
    ),
    '.SH SETTINGS',
    ...sections,
    '.SH SEE ALSO',
    '.BR imagemill (1)\n.PP\n/usr/share/doc/imagemill/docs/configuration.md',
  ]);
}

const [, , folder] = argv;
if (folder === undefined) throw new Error('name a folder');
const groups = await readSettings();
const program = createProgram({ env: {}, version: VERSION });
const files: Readonly<Record<string, string>> = {
  'imagemill.1': formatProgramPage(program),
  'imagemill.env.5': formatSettingsPage(groups),
  'imagemill.env': formatSettings(groups),
  'completion/bash/imagemill': COMPLETION_SCRIPTS.bash(program),
  'completion/zsh/_imagemill': COMPLETION_SCRIPTS.zsh(program),
  'completion/fish/imagemill.fish': COMPLETION_SCRIPTS.fish(program),
};
for (const [name, text] of Object.entries(files)) {
  await mkdir(dirname(join(folder, name)), { recursive: true });
  await writeFile(join(folder, name), text);
}
