/** @module Clients that generators make from the OpenAPI document, as docs/recipes.md shows. Needs the npm registry. */
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { convert, fixture, fixturePath } from '../helpers/client.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { PROJECT } from '../helpers/markdown.ts';
import { useService } from '../helpers/service.ts';

/** The generators, and the compiler of their code. openapi-typescript needs TypeScript 5. */
const PACKAGES = [
  ...['openapi-typescript@7.13.0', 'openapi-fetch@0.17.0', '@hey-api/openapi-ts@0.99.0', 'orval@8.38.0'],
  ...['typescript@5.9.3', '@types/node@24.19.2'],
];
/** Without a connection, npm gives up after a few seconds. */
const NPM_OPTIONS = ['--no-audit', '--no-fund', '--ignore-scripts', '--prefer-offline', '--fetch-retries=1'];
const INSTALL_TIMEOUT_MS = 300_000;

const COMPILER_OPTIONS = {
  ...{ strict: true, target: 'es2023', lib: ['es2023', 'dom', 'dom.iterable'], module: 'node16' },
  ...{ types: ['node'], outDir: 'js' },
};

describe('the client that a generator makes from the OpenAPI document', () => {
  const service = useService();
  let folder: string;
  let recipes: string;

  const run = async (program: string, ...args: string[]): Promise<string> =>
    (await promisify(execFile)(program, args, { cwd: folder, timeout: INSTALL_TIMEOUT_MS })).stdout;
  const runInstalled = (program: string, ...args: string[]): Promise<string> =>
    run(process.execPath, join('node_modules/.bin', program), ...args);
  /** Returns the example below a heading of the recipes that is in a language. It requests the service of the test. */
  const example = (heading: string, language: string): string => {
    const [, section = ''] = new RegExp(`^### ${heading}\\n(.*?)^##`, 'ms').exec(recipes) ?? [];
    const [, text = ''] = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'ms').exec(section) ?? [];
    return text
      .replaceAll('http://localhost:3000', service.base.replace('/api/v1', ''))
      .replaceAll('width: 800', 'width: 60'); // the photo has 120
  };

  before(async () => {
    folder = await makeTempDir('generated');
    recipes = await readFile(join(PROJECT, 'docs/recipes.md'), 'utf8');
    await writeFile(join(folder, 'package.json'), '{"private":true}');
    await run('npm', 'install', ...NPM_OPTIONS, ...PACKAGES).catch(({ message }: Error) => {
      throw new Error(`npm cannot install the generators, which needs its registry: ${message}`);
    });
    for (const heading of ['openapi-fetch', 'hey-api']) {
      const [, program = '', ...args] = example(heading, 'sh').trim().split(' ');
      await runInstalled(program, ...args);
    }
    await writeFile(join(folder, 'orval.config.mjs'), example('orval', 'js'));
    await runInstalled('orval');
    for (const heading of ['openapi-fetch', 'hey-api', 'orval'])
      await writeFile(join(folder, `with-${heading}.ts`), example(heading, 'ts'));
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: COMPILER_OPTIONS }));
    await runInstalled('tsc').catch(({ stdout }: { stdout: string }) => {
      throw new Error(stdout);
    });
  });

  for (const [heading, name] of [
    ['openapi-fetch', 'toWebp'],
    ['hey-api', 'toWebp'],
    ['orval', 'toWebp'],
    ['orval', 'formToWebp'],
  ] as const) {
    it(`converts a photo to the exact bytes with ${heading}: ${name}`, async () => {
      const program = `
        const { openAsBlob } = require('node:fs');
        const client = require('./js/with-${heading}.js');
        (async () => {
          const result = await client.${name}(await openAsBlob(${JSON.stringify(fixturePath('scene.jpg'))}));
          console.log(Buffer.from(await result.arrayBuffer()).toString('base64'));
        })();`;
      const converted = Buffer.from(await run(process.execPath, '-e', program), 'base64');
      const { body } = await convert(service.base, await fixture('scene.jpg'), { width: '60' });
      expect(converted.equals(body)).to.equal(true);
    });
  }
});
