// @registry: installs the package in other JavaScript runtimes
/**
 * @module The package of the client, in a project that has nothing else. Needs the npm registry for
 * other JavaScript runtimes.
 */
import { globSync } from 'node:fs';
import { copyFile, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { launchChromium, openPage } from '../helpers/chromium.ts';
import { convert, fixture, fixturePath } from '../helpers/client.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { PROJECT } from '../helpers/markdown.ts';
import { execute } from '../helpers/process.ts';
import { installPackages } from '../helpers/recipes.ts';
import { useService } from '../helpers/service.ts';
import { useServers } from '../helpers/stub-server.ts';

const MAX_BYTES = 30_000;
/** Packages with the programs: they have no installation script, and one for each system. */
const RUNTIMES = [`node-${process.platform}-${process.arch}@20`, 'bun@1.4.5', 'deno@2.9.6'];
/**
 * What each program runs: module system, then the program and its options below `node_modules/`, or
 * none for this Node.js.
 */
const RUNS = [
  ['Node.js 24', 'mjs', []],
  ['Node.js 24', 'cjs', []],
  ['Node.js 20', 'mjs', ['node-*-*/bin/node']],
  ['Node.js 20', 'cjs', ['node-*-*/bin/node']],
  ['Bun', 'mjs', ['@oven/bun-*/bin/bun']],
  ['Bun', 'cjs', ['@oven/bun-*/bin/bun']],
  ['Deno', 'mjs', ['@deno/*/deno', 'run', '--allow-all']],
] as const;

describe('the package imagemill-client', () => {
  const service = useService();
  const servers = useServers();
  let project: string;
  let archive: string;

  const build = async (): Promise<string> => {
    const folder = await makeTempDir('client-package');
    const { stdout } = await execute('sh', ['scripts/client-package.sh', folder], { cwd: PROJECT });
    return stdout.trim();
  };

  before(async () => {
    archive = await build();
    project = await makeTempDir('client-project');
    await installPackages(project, [archive, ...RUNTIMES]);
    await copyFile(fixturePath('scene.jpg'), join(project, 'photo.jpg'));
  });

  it('has the version of the program, no dependencies, and less than 30 kB', async () => {
    const read = async (path: string) => JSON.parse(await readFile(path, 'utf8'));
    const { version } = await read(join(PROJECT, 'package.json'));
    const packed = await read(join(project, 'node_modules/imagemill-client/package.json'));
    expect([packed.version, packed.dependencies]).to.deep.equal([version, undefined]);
    expect((await stat(archive)).size).to.be.within(5_000, MAX_BYTES);
  });

  it('has the same bytes if it is built again', async () => {
    expect((await readFile(await build())).equals(await readFile(archive))).to.equal(true);
  });

  for (const [extension, module, types] of [
    ['mts', 'nodenext', 'node'],
    ['cts', 'node16', 'browsers'],
  ] as const) {
    it(`has types for .${extension} files with the option module ${module}, for ${types}`, async () => {
      const path = join(project, `consumer.${extension}`);
      await writeFile(
        path,
        `import { createClient, ImagemillError, type Reason, type Result } from 'imagemill-client';
export async function sizeOf(image: Blob): Promise<number> {
  const result: Result = await createClient('').convert(image, { output_format: 'webp', width: 80 });
  return (await result.response.blob()).size;
}
export const reason: Reason | 'proxy_413' | undefined = new ImagemillError(502).reason;
// @ts-expect-error
void createClient('').convert(new Blob([]), { output_format: 'wbp' });
`,
      );
      const library =
        types === 'node'
          ? ['--lib', 'es2022', '--types', 'node', '--typeRoots', join(PROJECT, 'node_modules/@types')]
          : ['--lib', 'es2022,dom'];
      const options = ['--noEmit', '--strict', '--target', 'es2022', '--module', module, ...library];
      const tsc = execute(join(PROJECT, 'node_modules/.bin/tsc'), [...options, path], { cwd: project });
      await tsc.catch(({ stdout }) => expect(stdout).to.equal(''));
    });
  }

  for (const [name, extension, [pattern, ...options]] of RUNS) {
    it(`converts a photo to the exact bytes in ${name}, from a .${extension} file`, async () => {
      const load =
        extension === 'mjs'
          ? ["import { readFile } from 'node:fs/promises';", "import * as client from 'imagemill-client';"]
          : [
              "const { readFile } = require('node:fs/promises');",
              "const client = require('imagemill-client');",
            ];
      const path = join(project, `convert.${extension}`);
      await writeFile(
        path,
        `${load.join('\n')}
(async () => {
  const images = client.createClient(${JSON.stringify(service.base)});
  const photo = await readFile('photo.jpg');
  const { name, response } = await images.convert(photo, { output_format: 'webp', width: 60 }, { name: 'é.jpg' });
  const bytes = Buffer.from(await response.arrayBuffer()).toString('base64');
  const error = await images.convert(photo, { quality: 101 }).catch((error) => error);
  console.log(JSON.stringify([name, error instanceof client.ImagemillError, error.reason, bytes]));
})();
`,
      );
      const program = pattern
        ? join(project, 'node_modules', globSync(pattern, { cwd: join(project, 'node_modules') })[0] ?? '')
        : process.execPath;
      const { stdout } = await execute(program, [...options, path], { cwd: project });
      const { body } = await convert(service.base, await fixture('scene.jpg'), { width: '60' });
      expect(JSON.parse(stdout)).to.deep.equal(['é.webp', true, 'field_invalid', body.toString('base64')]);
    });
  }

  it('converts a photo to the exact bytes in a browser, from a page of another origin', async () => {
    const modules = join(project, 'node_modules/imagemill-client/esm');
    const origin = await servers.serve(async ({ url = '' }, response) => {
      if (url === '/') response.setHeader('content-type', 'text/html').end('<!doctype html>');
      else response.setHeader('content-type', 'text/javascript').end(await readFile(join(modules, url)));
    });
    const browser = await launchChromium();
    after(() => browser.close());
    const page = await openPage(browser);
    await page.goto(origin);
    const photo = [...(await fixture('scene.jpg'))];
    const result = await page.evaluate(
      async ([base, bytes, path]) => {
        const { createClient } = await import(path);
        const image = new File([new Uint8Array(bytes)], 'é.jpg');
        const { name, width, response } = await createClient(base).convert(image, { width: 60 });
        return { name, width, bytes: [...new Uint8Array(await response.arrayBuffer())] };
      },
      [service.base, photo, '/index.js'] as const,
    );
    const { body } = await convert(service.base, await fixture('scene.jpg'), { width: '60' });
    expect(result).to.deep.equal({ name: 'é.webp', width: 60, bytes: [...body] });
  });
});
