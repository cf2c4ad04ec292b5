// @unit
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { expect } from 'chai';
import {
  cruise,
  type IConfiguration,
  type ICruiseResult,
  type IForbiddenRuleType,
  type IRegularForbiddenRuleType,
} from 'dependency-cruiser';
import { makeTempDir } from './helpers/hooks.ts';

const { href } = new URL('../.dependency-cruiser.js', import.meta.url);
const { default: config } = (await import(href)) as { default: IConfiguration };
const rules = config.forbidden as readonly IForbiddenRuleType[];

/**
 * For each rule on folders, an import that breaks it: the importing file and the imported one, or a
 * module.
 */
const VIOLATIONS: Readonly<Record<string, readonly [from: string, to: string]>> = {
  'plan-is-pure': ['src/conversion/plan/resize.ts', 'src/conversion/limits/limits.ts'],
  'images-know-bytes': ['src/images/png/png.ts', 'src/conversion/limits/limits.ts'],
  'containers-know-no-formats': ['src/images/containers/parts.ts', 'src/images/png/png.ts'],
  'process-knows-no-formats': ['src/process/runner.ts', 'src/tables/formats.ts'],
  'server-runs-no-process': ['src/server/app.ts', 'src/process/runner.ts'],
  'core-knows-no-server': ['src/files/workspace.ts', 'src/server/receive/upload.ts'],
  'cli-works-without-a-server': ['src/cli/convert.ts', 'src/server/app.ts'],
  'openapi-is-data': ['src/server/openapi/schemas.ts', 'src/files/workspace.ts'],
  'web-app-uses-the-api': ['src/web/main.ts', 'src/tables/config.ts'],
  'client-library-stands-alone': ['src/client/library/index.ts', 'src/tables/formats.ts'],
  'server-loads-no-regress': ['src/server/app.ts', 'src/regress/matrix.ts'],
  'redis-client-on-demand': ['src/server/service.ts', 'src/server/redis-store.ts'],
  'execa-starts-programs': ['src/process/start.ts', 'node:child_process'],
};

describe('the import rules', () => {
  /**
   * Checks a tree of two files, of which the first imports the second, and returns the names of the
   * broken rules.
   */
  async function brokenRules(from: string, to: string, alsoBack = false): Promise<string[]> {
    const root = await makeTempDir('import-rules');
    await writeImport(root, from, to, alsoBack);
    return check(root);
  }

  /** Writes two files, of which the first imports the second. */
  async function writeImport(root: string, from: string, to: string, alsoBack = false): Promise<void> {
    const write = async (path: string, text: string): Promise<void> => {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), text);
    };
    const isFile = to.startsWith('src/');
    const specifier = isFile ? `./${relative(dirname(from), to)}` : to;
    await write(from, `import * as imported from '${specifier}';\nexport const value = imported;\n`);
    const back = alsoBack ? `import * as imported from './${relative(dirname(to), from)}';\n` : '';
    if (isFile) await write(to, `${back}export const value = ${alsoBack ? 'imported' : 1};\n`);
    else if (!to.startsWith('node:')) {
      await write(
        `node_modules/${to}/package.json`,
        JSON.stringify({ name: to, exports: { import: './module.js' } }),
      );
      await write(`node_modules/${to}/module.js`, 'module.exports = {};\n');
      await write('package.json', JSON.stringify({ dependencies: { [to]: '*' } }));
    }
  }

  /** Returns the names of the rules that a tree breaks. */
  async function check(root: string): Promise<string[]> {
    const { output } = await cruise(['src'], {
      ...config.options,
      baseDir: root,
      ruleSet: { forbidden: [...rules] },
      validate: true,
    });
    const { violations } = (output as ICruiseResult).summary;
    return violations.map(({ rule }) => rule.name);
  }

  for (const [name, [from, to]] of Object.entries(VIOLATIONS)) {
    it(`rejects an import of ${to} by ${from} (${name})`, async () => {
      expect(await brokenRules(from, to)).to.include(name);
    });
  }

  it('reject two files that import each other (no-circles)', async () => {
    expect(await brokenRules('src/cli/one.ts', 'src/cli/two.ts', true)).to.include('no-circles');
  });

  for (const depth of ['', 'deeper/', 'deeper/still/']) {
    it(`reject two folders "${depth}" that import each other through other files (no-circles-of-folders)`, async () => {
      const root = await makeTempDir('import-rules');
      const [one, other] = [`src/${depth}one`, `src/${depth}other`];
      await writeImport(root, `${one}/first.ts`, `${other}/first.ts`);
      await writeImport(root, `${other}/second.ts`, `${one}/second.ts`);
      expect(await check(root)).to.deep.equal(['no-circles-of-folders', 'no-circles-of-folders']);
    });
  }

  const order = rules.filter(({ name }) => name?.startsWith('order-of-')) as IRegularForbiddenRuleType[];
  for (const { name = '', to } of order) {
    const folder = name.replace('order-of-', '');
    for (const later of /\((.+)\)/.exec(String(to.path))?.[1]?.split('|') ?? []) {
      it(`reject an import of src/${later} by src/${folder} (${name})`, async () => {
        expect(await brokenRules(`src/${folder}/deeper/a.ts`, `src/${later}/deeper/b.ts`)).to.include(name);
      });
    }
  }

  it('order all folders of the program', async () => {
    const folders = (await readdir(new URL('../src/', import.meta.url), { withFileTypes: true }))
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
    const ordered = order.map(({ name = '' }) => name.replace('order-of-', ''));
    expect([...ordered.filter((name) => !name.includes('/')), 'workers']).to.have.members(folders);
  });

  for (const { name = '' } of rules.filter((rule) => rule.name?.startsWith('one-owner-of-'))) {
    const library = name.replace('one-owner-of-', '');
    it(`reject an import of ${library} by a file that does not own it (${name})`, async () => {
      expect(await brokenRules('src/other.ts', library)).to.deep.equal([name]);
    });
  }

  it('each have a violation that this file tests', () => {
    const proven = [...Object.keys(VIOLATIONS), 'no-circles', 'no-circles-of-folders'];
    const others = rules
      .map(({ name = '' }) => name)
      .filter((name) => !/^(?:one-owner|order)-of-/.test(name));
    expect(others).to.have.members(proven);
  });

  /** Returns the files of the program, without the web page, whose text matches a pattern. */
  async function filesWith(pattern: RegExp): Promise<string[]> {
    const root = new URL('../src/', import.meta.url);
    const files = (await readdir(root, { recursive: true })).filter((path) => /^(?!web\/).*\.ts$/.test(path));
    const texts = await Promise.all(files.map((path) => readFile(new URL(path, root), 'utf8')));
    return files.filter((_, at) => pattern.test(texts[at] ?? ''));
  }

  it('are not the only rule for files: at most two have the same name, except index.ts', async () => {
    const names = (await readdir(new URL('../src/', import.meta.url), { recursive: true }))
      .map((path) => basename(path))
      .filter((name) => /\.tsx?$/.test(name) && name !== 'index.ts');
    const counts = Map.groupBy(names, (name) => name);
    expect([...counts.values()].filter((same) => same.length > 2).map(([name]) => name)).to.deep.equal([]);
  });

  it('are not the only rule for files: a line of a comment has at most 100 columns, unless it is for the linter', async () => {
    const root = new URL('../', import.meta.url);
    const names = ['src', 'test', 'scripts'].map(async (folder) =>
      (await readdir(new URL(folder, root), { recursive: true })).map((name) => `${folder}/${name}`),
    );
    const files = (await Promise.all(names)).flat().filter((name) => /(?<!\.d)\.tsx?$/.test(name));
    expect(files).to.not.be.empty;
    const tooLong = /^(?= *(?:\*|\/\/(?! biome-)|\/\*)).{101}/mu;
    const texts = await Promise.all(files.map((name) => readFile(new URL(name, root), 'utf8')));
    expect(files.filter((_, at) => tooLong.test(texts[at] ?? ''))).to.deep.equal([]);
  });

  it('allow import.meta only in files whose folder the build keeps', async () => {
    expect(await filesWith(/[^`]import\.meta/)).to.have.members(['folders.ts']); // not in comments
  });

  it('allow only types to be imported from node:http, because an import loads HTTP/2 and undici, too', async () => {
    expect(await filesWith(/import (?!type )[^;]* from '(node:)?http'/)).to.deep.equal([]);
  });

  it('accept an import that every layer may make', async () => {
    expect(await brokenRules('src/server/app.ts', 'src/conversion/convert.ts')).to.deep.equal([]);
  });
});
