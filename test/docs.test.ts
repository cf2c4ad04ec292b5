import { spawnSync } from 'node:child_process';
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { ATTACKS } from '../src/cli/doctor/attacks.ts';
import { formSchemas } from '../src/conversion/request/forms.ts';
import { KINDS } from '../src/images/kinds.ts';
import { loadConfig } from '../src/tables/config.ts';
import { ALL_OUTPUT_TYPES } from '../src/tables/formats.ts';
import { fieldName, OPTION_NAMES, optionRow } from '../src/tables/options.ts';
import { runCli } from './helpers/command-line.ts';
import {
  commandsIn,
  documentAt,
  findSection,
  type MarkdownFile,
  PROJECT,
  readDocuments,
  tableRows,
} from './helpers/markdown.ts';

const documents = readDocuments();
/** The changelog names commands and files as they were at the time of a release. */
const current = documents.filter(({ path }) => path !== 'CHANGELOG.md');
const { scripts, version } = JSON.parse(readFileSync(join(PROJECT, 'package.json'), 'utf8')) as {
  readonly scripts: Readonly<Record<string, string>>;
  readonly version: string;
};

/** Collects what `find` returns for each document, prefixed with the path of the document. */
const inEach = (among: readonly MarkdownFile[], find: (document: MarkdownFile) => readonly string[]) =>
  among.flatMap((document) => find(document).map((found) => `${document.path}: ${found}`));

const commandsOf = ({ blocks }: MarkdownFile): readonly string[] => blocks.flatMap(commandsIn);
const codeOf = (document: MarkdownFile): readonly string[] => [...document.spans, ...commandsOf(document)];

describe('the documents', () => {
  it('name every kind of file that is rejected, and which versions of ImageMagick read it', () => {
    const text = readFileSync(join(PROJECT, 'docs/formats.md'), 'utf8').replaceAll(/\s+/g, ' ');
    for (const { label, refused } of Object.values(KINDS)) {
      if (refused === 'on failure') continue;
      expect(text).to.include(label);
      const [, ...cells] = /\| ([^|]*) \| (rejected|read) \| (rejected|read) \|/.exec(
        text.slice(text.indexOf(`| ${label}`)),
      ) ?? [''];
      if (refused === 'always' || !label.endsWith('in a TIFF')) continue;
      expect(cells.slice(1), label).to.deep.equal(
        ([6, 7] as const).map((version) => (refused.includes(version) ? 'rejected' : 'read')),
      );
    }
  });

  it('have no relative link to a file or a heading that does not exist', () => {
    const isDead = (document: MarkdownFile, link: string): boolean => {
      const [file = '', anchor] = link.split('#');
      const target =
        file === '' ? document.path : relative(PROJECT, join(PROJECT, dirname(document.path), file));
      if (target.startsWith('..') || !existsSync(join(PROJECT, target))) return true;
      return anchor !== undefined && !documentAt(target).anchors.has(anchor);
    };
    const dead = (document: MarkdownFile) =>
      document.links.filter((link) => !/^\w+:/.test(link) && isDead(document, link));

    expect(inEach(documents, dead)).to.deep.equal([]);
  });

  it('link to other sites by well-formed HTTPS addresses', () => {
    const isWrong = (link: string): boolean => {
      if (!URL.canParse(link)) return true;
      const { protocol, hostname } = new URL(link);
      return protocol !== 'https:' && hostname !== 'localhost';
    };
    const wrong = ({ links }: MarkdownFile) => links.filter((link) => /^\w+:/.test(link) && isWrong(link));

    expect(inEach(documents, wrong)).to.deep.equal([]);
  });

  it('can all be reached from the README', () => {
    const reached = new Set(['README.md']);
    for (const path of reached) {
      for (const link of documentAt(path).links) {
        const target = join(dirname(path), link.split('#')[0] ?? '');
        if (documents.some((document) => document.path === target)) reached.add(target);
      }
    }

    expect(documents.map(({ path }) => path).filter((path) => !reached.has(path))).to.deep.equal([]);
  });

  it('have shell examples that a shell can parse', () => {
    const unparsable = (document: MarkdownFile) =>
      document.blocks
        .map((block) => commandsIn(block).join('\n'))
        .filter((text) => spawnSync('sh', ['-n'], { input: text }).status !== 0);

    expect(inEach(documents, unparsable)).to.deep.equal([]);
  });

  it('name only npm scripts that package.json has', () => {
    const unknown = ({ text }: MarkdownFile) =>
      [...text.matchAll(/npm run (?:--silent )?([\w:-]+)/g)]
        .map(([, name = '']) => name)
        .filter((name) => !Object.hasOwn(scripts, name));

    expect(inEach(current, unknown)).to.deep.equal([]);
  });

  it('name only commands and options that imagemill has', async () => {
    const calls = inEach(current, (document) => codeOf(document).flatMap(callsOfImagemill));
    expect(calls).to.have.length.above(20);

    const wrong = [];
    for (const call of calls) {
      const complaint = await complaintAbout(call.slice(call.indexOf(': ') + 2));
      if (complaint) wrong.push(`${call}: ${complaint}`);
    }
    expect(wrong).to.deep.equal([]);
  });

  it('list the options of `imagemill convert`, and no others', async () => {
    const listed = tableRows(documentAt('docs/cli.md').text, '### Options').flatMap(([cell = '']) =>
      [...cell.matchAll(/--[\w-]+/g)].map(([option]) => option),
    );
    const { options } = await helpOf(['convert']);

    // --output has a separate section, and every command has --help.
    expect([...listed, '--output', '--help'].sort()).to.deep.equal(
      [...options].filter((option) => option.startsWith('--')).sort(),
    );
  });

  it('name only files and folders that exist', () => {
    const missing = (document: MarkdownFile) =>
      codeOf(document)
        .flatMap(pathsIn)
        .filter((path) => !existsFor(document, path));

    expect(inEach(current, missing)).to.deep.equal([]);
  });

  it('contain a tree of src/ whose paths exist', () => {
    const tree = documentAt('docs/architecture.md').blocks.find(({ text }) => text.startsWith('src/\n'));
    const paths = treePaths(tree?.text ?? '');

    expect(paths).to.include('src/main.ts');
    expect(paths.filter((path) => !existsSync(join(PROJECT, path)))).to.deep.equal([]);
  });

  it('name the version of package.json', () => {
    const others = ({ text }: MarkdownFile) =>
      [...text.matchAll(/(?:imagemill[: ]|"version":")(\d+\.\d+\.\d+)/g)]
        .map(([, named = '']) => named)
        .filter((named) => named !== version);

    expect(inEach(current, others)).to.deep.equal([]);
  });
});

describe('the npm scripts', () => {
  it('name test files that exist, without braces, which mocha ignores with only a warning', () => {
    const patterns = Object.values(scripts).flatMap(
      (script) => script.match(/\btest\/[^\s']+\.test\.ts/g) ?? [],
    );
    expect(patterns.length).to.be.above(3);
    const missing = patterns.filter(
      (pattern) => pattern.includes('{') || globSync(pattern, { cwd: PROJECT }).length === 0,
    );
    expect(missing).to.deep.equal([]);
  });
});

describe('the README', () => {
  it('has at most 700 words', () => {
    expect(documentAt('README.md').text.trim().split(/\s+/)).to.have.length.at.most(700);
  });

  it('shows rows that imagemill doctor --attack prints', () => {
    const shown = documentAt('README.md').text.match(/(?<=^ ✓ ).*/gm) ?? [];
    const printed = ATTACKS.map(({ name, must, expected }) => [name, must, expected].join('  '));
    expect(shown).to.have.length(5);
    expect(printed).to.include.members(shown.map((row) => row.replaceAll(/ {2,}/g, '  ')));
  });
});

describe('docs/maintaining.md', () => {
  it('names workarounds, and tests or fixtures of them, that exist', () => {
    const [, ...rows] = tableRows(documentAt('docs/maintaining.md').text, '## Workarounds');
    const isThere = (cell: string): boolean => {
      const [, path = '', text = ''] = /^`([^`]+)`(?:: [`"](.+)[`"])?$/.exec(cell) ?? [];
      const file = join(PROJECT, path);
      return path !== '' && existsSync(file) && readFileSync(file, 'utf8').includes(text);
    };
    expect(rows).to.have.length.above(30);
    const missing = rows.flatMap(([, , place = '', test = '']) =>
      [place, test].filter((cell) => !isThere(cell)),
    );
    expect(missing).to.deep.equal([]);
  });

  it('has no long table cells, and neither have SECURITY.md and CONTRIBUTING.md', () => {
    const texts = ['docs/maintaining.md', 'SECURITY.md', 'CONTRIBUTING.md'].map(
      (path) => documentAt(path).text,
    );
    const cells = texts.flatMap((text) => tableRows(text).flat());
    expect(cells).to.have.length.above(300);
    expect(cells.filter((cell) => cell.length > 300)).to.deep.equal([]);
  });
});

describe('docs/api.md', () => {
  const { text, spans } = documentAt('docs/api.md');

  it('names every field of the forms', () => {
    const forms = Object.values(formSchemas(ALL_OUTPUT_TYPES));
    const fields = [...new Set(forms.flatMap((form) => Object.keys(form.shape)))];
    const named = spans.map((span) => span.split('=')[0]);

    expect(fields).to.include.members(['max_bytes', 'variants', 'reveal', 'loop']);
    expect(fields.filter((field) => !named.includes(field))).to.deep.equal([]);
  });

  it('states the range and the default of every option', () => {
    const rows = findSection(text, '### Fields of /convert').replaceAll('`', '');
    const differences = OPTION_NAMES.flatMap((name) => {
      const { type, default: fallback } = optionRow(name);
      const [, values = ''] = new RegExp(` ${fieldName(name)} \\(([^)]*)\\)`).exec(rows) ?? [];
      const range = 'min' in type ? `${type.min} to ${type.max}` : '';
      const stated = values.split('; ').at(-1);
      const isRight = values.includes(range) && (fallback === undefined || stated === `${fallback}`);
      return isRight ? [] : [`${name}: ${range}; ${fallback}`];
    });

    expect(differences).to.deep.equal([]);
  });
});

describe('docs/nextcloud.md', () => {
  it('has Compose files with settings and networks that exist and are valid', () => {
    const { text, blocks } = documentAt('docs/nextcloud.md');
    const files = blocks
      .filter(({ language }) => language === 'yaml')
      .map((block) => parse(block.text, { logLevel: 'error' }));
    expect(files).to.have.length(3);
    const settings: Record<string, string> = {};
    for (const { services, networks = {} } of files) {
      const [{ environment, networks: used = {} }] = Object.values<typeof services>(services);
      for (const [name, value] of Object.entries(environment)) settings[name] = `${value}`; // the third one has changes
      const config = loadConfig({ ...settings, IMAGINARY_KEY: 'a key' });
      expect(config).to.include.keys(Object.keys(settings));
      expect(config.ACCESS).to.equal('private');
      expect(Object.keys(used)).to.deep.equal(Object.keys(networks));
    }
    const [alias] = files[2].services.imagemill.networks['nextcloud-aio'].aliases;
    const { environment, tmpfs, ...override } = files[1].services[alias];
    const { environment: settingsAlone, tmpfs: tmpfsAlone, ...alone } = files[0].services.imagemill;
    expect(override).to.deep.include({
      image: alone.image,
      mem_limit: alone.mem_limit,
      cap_drop: alone.cap_drop,
    });
    expect(tmpfs).to.deep.equal(tmpfsAlone);
    expect(Object.keys(environment)).to.have.members(['PORT', ...Object.keys(settingsAlone)]);
    expect(text).to.include(`\`http://${alias}:${settings.PORT}\``);
  });
});

describe('docs/configuration.md', () => {
  const rows = new Map(
    tableRows(documentAt('docs/configuration.md').text)
      .filter(([name = '']) => name.startsWith('`'))
      .map(([name = '', text = '']) => [name.replaceAll('`', ''), text]),
  );
  const { maxSide: _, maxDrawnSide: __, ...settings } = loadConfig({});
  const defaults: Readonly<Record<string, unknown>> = settings;

  it('has a row for each setting of src/tables/config.ts, and no others', () => {
    const source = readFileSync(join(PROJECT, 'src/tables/config.ts'), 'utf8');
    const names = [...source.matchAll(/^ {2}([A-Z][A-Z_]+):/gm)].map(([, name = '']) => name);

    expect(names).to.include.members(Object.keys(defaults));
    expect([...rows.keys()].sort()).to.deep.equal(names.sort());
  });

  it('states the defaults of src/tables/config.ts', () => {
    /** Descriptions of missing defaults, and of defaults that depend on the machine. */
    const described: Readonly<Record<string, unknown>> = {
      none: undefined,
      'found on `PATH`': undefined,
      'processors available': availableParallelism(),
      "/dev/shm, or the system's": tmpdir(), // `imagemill serve` chooses
    };
    const stated = [...rows].map(([name, text]) => [
      name,
      String(Object.hasOwn(described, text) ? described[text] : text),
    ]);

    const isNone = (value: unknown): boolean => Array.isArray(value) && value.length === 0;
    const actual = [...rows.keys()].map((name) => {
      const value = defaults[name];
      return [name, String(isNone(value) ? undefined : value)];
    });

    expect(stated).to.deep.equal(actual);
  });
});

/**
 * Returns the arguments of each call of `imagemill` in code: at its start, after a pipe, or as a
 * container image.
 */
function callsOfImagemill(code: string): string[] {
  const call = /(?:(?:^|\| )imagemill|\bimagemill:[\d.]+)((?: +[^\s|>#&;]+)+)/g;
  return [...code.matchAll(call)].map(([, args = '']) => args.trim()).filter((args) => args !== '.');
}

/** Returns the first invalid command or option of a call, or undefined if all are valid. */
async function complaintAbout(call: string): Promise<string | undefined> {
  const command: string[] = [];
  const args = call.split(/\s+/);
  for (let help = await helpOf([]); help.commands.size > 0 && args.length > 0; help = await helpOf(command)) {
    if (args[0]?.startsWith('-')) break;
    const name = args.shift() as string;
    if (!help.commands.has(name)) return `no command ${name}`;
    command.push(name);
  }
  const { options } = await helpOf(command);
  const unknown = args.filter((arg) => /^--?\w/.test(arg) && !options.has(arg));
  return unknown.length > 0 ? `no option ${unknown.join(', ')}` : undefined;
}

interface Help {
  readonly commands: ReadonlySet<string>;
  readonly options: ReadonlySet<string>;
}

const helps = new Map<string, Promise<Help>>();

/** Returns the commands and options that `--help` lists. Runs each command only once. */
function helpOf(command: readonly string[]): Promise<Help> {
  const key = command.join(' ');
  const known = helps.get(key);
  if (known) return known;
  const help = runCli([...command, '--help', 'all']).then(({ status, stdout }) => {
    expect(status, `imagemill ${key} --help`).to.equal(0);
    const [, commands = ''] = /^Commands:\n((?: +.*\n)+)/m.exec(stdout) ?? [];
    return {
      commands: new Set([...commands.matchAll(/^ {2}(\w+)/gm)].map(([, name = '']) => name)),
      options: new Set([...stdout.matchAll(/(?<=^ {2}(?:-\w, )?)--?\w[\w-]*/gm)].map(([option]) => option)),
    };
  });
  helps.set(key, help);
  return help;
}

const TOP = readdirSync(PROJECT).filter((name) => !['dist', 'node_modules', 'traces'].includes(name));
/** Folders of src/. Documents may omit `src/` in front of them. */
const LAYERS = ['cli', 'conversion', 'files', 'process', 'regress', 'server', 'web'];

/**
 * Returns the words in code that look like paths of this project: with a slash, and starting with
 * the name of a folder.
 */
function pathsIn(code: string): string[] {
  return code
    .split(/[\s'"=@]+/)
    .filter((word) => /^[\w.][\w.*-]*\/[\w./*-]*$/.test(word))
    .filter((word) => [...TOP, ...LAYERS].includes(word.split('/')[0] ?? ''));
}

/**
 * Returns whether a path exists in the project, below src/, or next to the document. A pattern must
 * match a file.
 */
function existsFor(document: MarkdownFile, path: string): boolean {
  const folders = [PROJECT, join(PROJECT, 'src'), join(PROJECT, dirname(document.path))];
  return folders.some((cwd) =>
    path.includes('*') ? globSync(path, { cwd }).length > 0 : existsSync(join(cwd, path)),
  );
}

/**
 * Parses the paths of a tree that is indented by two spaces per level, with a description after
 * each name.
 */
function treePaths(tree: string): string[] {
  const folders: string[] = [];
  return tree
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const level = (line.length - line.trimStart().length) / 2;
      folders.splice(level, Number.POSITIVE_INFINITY, line.trimStart().split(' ')[0] ?? '');
      return folders.join('');
    });
}
