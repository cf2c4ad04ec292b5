// @registry: installs generators of clients
/**
 * @module Clients that generators make from the OpenAPI document, as docs/recipes.md shows. Needs
 * the npm registry.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { convert, fixture, fixturePath } from '../helpers/client.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { execute } from '../helpers/process.ts';
import { installPackages, readRecipe } from '../helpers/recipes.ts';
import { useService } from '../helpers/service.ts';

/** The generators, and the compiler of their code. openapi-typescript needs TypeScript 5. */
const PACKAGES = [
  'openapi-typescript@7.13.0',
  'openapi-fetch@0.17.0',
  '@hey-api/openapi-ts@0.99.0',
  'orval@8.38.0',
  'typescript@5.9.3',
  '@types/node@24.19.2',
];
const COMPILER_OPTIONS = {
  strict: true,
  target: 'es2023',
  lib: ['es2023', 'dom', 'dom.iterable'],
  module: 'node16',
  types: ['node'],
  outDir: 'js',
  skipLibCheck: true,
};

describe('the client that a generator makes from the OpenAPI document', () => {
  const service = useService();
  let folder: string;

  const run = async (program: string, ...args: string[]): Promise<string> =>
    (await execute(program, args, { cwd: folder })).stdout;
  const runInstalled = (program: string, ...args: string[]): Promise<string> =>
    run(process.execPath, join('node_modules/.bin', program), ...args);
  /** Returns the example below a heading. The photo has 120 pixels, so it reduces it to 60. */
  const example = async (heading: string, language: string): Promise<string> =>
    (await readRecipe(`### ${heading}`, language, service.base)).replaceAll('width: 800', 'width: 60');

  before(async () => {
    folder = await makeTempDir('generated');
    await installPackages(folder, PACKAGES);
    for (const heading of ['openapi-fetch', 'hey-api']) {
      const [, program = '', ...args] = (await example(heading, 'sh')).trim().split(' ');
      await runInstalled(program, ...args);
    }
    await writeFile(join(folder, 'orval.config.mjs'), await example('orval', 'js'));
    await runInstalled('orval');
    for (const heading of ['openapi-fetch', 'hey-api', 'orval'])
      await writeFile(join(folder, `with-${heading}.ts`), await example(heading, 'ts'));
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
