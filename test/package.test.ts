// @registry: installs the package
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import sharp from 'sharp';
import { convert, fixture, fixturePath, sendForm } from './helpers/client.ts';
import { makeTempDir } from './helpers/hooks.ts';
import { execute } from './helpers/process.ts';
import { installPackages } from './helpers/recipes.ts';
import { eventually } from './helpers/util.ts';

const ROOT = new URL('..', import.meta.url).pathname;
const QUIET = ['--no-audit', '--no-fund', '--loglevel=error'];

describe('the npm package', () => {
  let prefix: string;
  let archive: string;
  let files: readonly string[];
  const env = { PATH: process.env.PATH, HOME: process.env.HOME };
  const program = (): string => join(prefix, 'bin/imagemill');

  before(async () => {
    const folder = await makeTempDir('package');
    prefix = join(folder, 'prefix');
    await mkdir(prefix);
    const { stdout } = await execute(
      'npm',
      ['pack', '--ignore-scripts', '--json', '--pack-destination', folder],
      { cwd: ROOT },
    );
    // Without its build, which would replace the files that other tests serve.
    const [packed] = JSON.parse(stdout.slice(stdout.indexOf('[\n'))) as [
      { filename: string; files: { path: string }[] },
    ];
    files = packed.files.map(({ path }) => path);
    archive = join(folder, packed.filename);
    await execute('npm', ['install', '--global', '--prefix', prefix, '--prefer-offline', ...QUIET, archive]);
  });

  it('holds the build, the assets and the documents that npm adds, and nothing else', () => {
    const others = files.filter((path) => !/^(dist|assets)\/|^(package\.json|README\.md)$/.test(path));
    expect(others).to.deep.equal([]);
    expect(files)
      .to.include('dist/main.js')
      .and.include('dist/web/index.html')
      .and.include('dist/web/docs.html')
      .and.include('dist/client/index.js')
      .and.include('dist/licenses.md')
      .and.include('dist/web/licenses.md')
      .and.include('assets/srgb.icc');
    expect(files.filter((path) => /\.test\.|\.tsx?$|\.map$/.test(path))).to.have.members([
      'dist/client/error.d.ts',
      'dist/client/index.d.ts',
      'dist/client/retry.d.ts',
      'dist/client/transport.d.ts',
      'dist/client/types.d.ts',
    ]);
  });

  it('verifies results also as a dependency of a project, where its libraries are in another folder', async () => {
    const project = await makeTempDir('project');
    await execute('npm', ['install', '--prefix', project, '--prefer-offline', ...QUIET, archive]);
    const installed = join(project, 'node_modules/.bin/imagemill');
    const args = [
      'convert',
      fixturePath('scene.png'),
      '-o',
      join(project, 'scene.webp'),
      '--verify',
      'visual',
    ];
    const { stderr } = await execute(installed, args, { env });
    expect(stderr).to.equal('');
    expect((await sharp(join(project, 'scene.webp')).metadata()).format).to.equal('webp');
  });

  it('has a software bill of materials with each library, in the version of the lock file', async () => {
    const { stdout } = await execute('npm', ['run', '--silent', 'sbom'], { cwd: ROOT, maxBuffer: 2 ** 25 });
    const { components } = JSON.parse(stdout) as Record<
      'components',
      Record<'name' | 'version' | 'scope', string>[]
    >;
    const listed = components.map(({ name, version, scope }) => `${name} ${version} ${scope}`);
    const { dependencies } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
    const lock = JSON.parse(await readFile(join(ROOT, 'package-lock.json'), 'utf8'));
    const locked = Object.keys(dependencies).map(
      (name) => `${name} ${lock.packages[`node_modules/${name}`].version} required`,
    );
    expect(listed).to.include.members(locked);
    expect(listed.find((name) => name.startsWith('mocha '))).to.match(/ optional$/);
  });

  it('contains the licence of each library that is part of the build', async () => {
    const text = await readFile(join(prefix, 'lib/node_modules/imagemill/dist/licenses.md'), 'utf8');
    const entries = text.split(/^## (?=\S+ - \d)/m).slice(1);
    expect(entries.map((entry) => entry.split(' ')[0])).to.include.members([
      'express',
      'execa',
      '@redis/client',
    ]);
    const grants =
      /permission is hereby granted|redistribution and use|apache license|permission to use|blue oak model license/i;
    const without = entries.filter((entry) => !grants.test(entry)).map((entry) => entry.split('\n')[0]);
    expect(without).to.deep.equal([]);
  });

  for (const [where, options] of [
    ['browsers', ['--lib', 'es2022,dom']],
    ['Node.js', ['--lib', 'es2022', '--types', 'node', '--typeRoots', join(ROOT, 'node_modules/@types')]],
  ] as const) {
    it(`contains a client with types for ${where}`, async () => {
      const program = `import { createClient, ImagemillError, type Reason } from 'imagemill/client';
const { response } = await createClient('').convert(new Blob([]), { output_format: 'webp', width: 80 });
export const size: number = (await response.blob()).size;
export const reason: Reason | 'proxy_413' | undefined = new ImagemillError(502).reason;
// @ts-expect-error
await createClient('').convert(new Blob([]), { output_format: 'wbp' });
`;
      const path = join(prefix, 'lib/consumer.mts');
      await writeFile(path, program);
      const settings = ['--noEmit', '--strict', '--target', 'es2022', '--module', 'nodenext', ...options];
      await execute(join(ROOT, 'node_modules/.bin/tsc'), [...settings, path], { cwd: join(prefix, 'lib') });
    });
  }

  it('contains a client that imports only its own files, and that Node.js finds by its name', async () => {
    const folder = join(prefix, 'lib/node_modules/imagemill/dist/client');
    const imports = async (name: string) =>
      [...(await readFile(join(folder, name), 'utf8')).matchAll(/^(?:import|export) .*from (.*);$/gm)].map(
        ([, module]) => module,
      );
    expect(new Set(await imports('index.js'))).to.deep.equal(new Set(["'./error.js'", "'./transport.js'"]));
    expect(await imports('error.js')).to.deep.equal(["'./retry.js'"]);
    expect(await imports('retry.js')).to.deep.equal([]);
    const script =
      "import('imagemill/client').then(({ createClient }) => console.log(typeof createClient('').batch))";
    const { stdout } = await execute(process.execPath, ['-e', script], { env, cwd: join(prefix, 'lib') });
    expect(stdout).to.equal('function\n');
  });

  it('installs a program that prints its version', async () => {
    const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
    const { stdout } = await execute(program(), ['--version'], { env });
    expect(stdout.trim()).to.equal(version);
  });

  it('installs a program whose doctor finds the tools, the web page and the fonts', async () => {
    const { stdout } = await execute(program(), ['doctor'], { env });
    expect(stdout)
      .to.match(/ImageMagick/)
      .and.not.match(/not built/);
  });

  it('installs a program that attacks itself as a codec that was taken over', async () => {
    const { stdout } = await execute(program(), ['doctor', '--attack', '--only', 'codec'], { env });
    expect(stdout).to.include(' 9 of 9 stopped: 3 by Landlock, 5 by seccomp, 1 by limits');
  });

  it('installs a program that converts a file', async () => {
    const folder = await makeTempDir('converted');
    await execute(program(), ['convert', fixturePath('scene.jpg'), '-o', join(folder, 'scene.png')], { env });
    expect(await sharp(join(folder, 'scene.png')).metadata()).to.include({ format: 'png', width: 120 });
  });

  it('holds a program that converts without its npm packages, except with --verify and in regress', async () => {
    const folder = await makeTempDir('unpacked');
    await execute('tar', ['-xzf', archive, '-C', folder]);
    const run = (...args: string[]) =>
      execute(process.execPath, [join(folder, 'package/dist/main.js'), ...args], { env });
    const scene = fixturePath('scene.jpg');
    const result = join(folder, 'scene.png');
    await run('convert', scene, '-o', result);
    expect(await sharp(result).metadata()).to.include({ format: 'png', width: 120 });

    const needed = 'the npm packages of imagemill, such as sharp: run npm install.';
    for (const [command, args] of [
      ['--verify', ['convert', scene, '-o', result, '--force', '--verify', 'visual']],
      ['regress', ['regress', 'record', folder, '--to', join(folder, 'baseline')]],
    ] as const) {
      const { code, stderr } = await run(...args).then(
        () => ({ code: 0, stderr: '' }),
        (error) => error,
      );
      expect([code, stderr]).to.deep.equal([2, `imagemill: ${command} needs ${needed}\n`]);
    }
  });

  it('installs a program that converts a file with the oldest Node.js that it permits', async () => {
    const { engines } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
    const [oldest] = /\d+\.\d+/.exec(engines.node) ?? [];
    const folder = await makeTempDir('oldest');
    const name = `node-${process.platform}-${process.arch}`;
    await installPackages(folder, [`${name}@${oldest}.0`]);
    const node = join(folder, 'node_modules', name, 'bin/node');
    expect((await execute(node, ['--version'])).stdout).to.equal(`v${oldest}.0\n`);
    const main = join(prefix, 'lib/node_modules/imagemill/dist/main.js');
    const result = join(folder, 'scene.png');
    await execute(node, [main, 'convert', fixturePath('scene.jpg'), '-o', result], { env });
    expect(await sharp(result).metadata()).to.include({ format: 'png', width: 120 });
  });

  it('installs a program that serves the API, the web page and the reference', async () => {
    const child = spawn(program(), ['serve'], {
      env: { ...env, PORT: '0', HOST: '127.0.0.1', TEMP_DIR: await makeTempDir('serve') },
    });
    const ended = once(child, 'exit');
    try {
      let output = '';
      child.stdout.on('data', (data) => {
        output += data;
      });
      const [, origin = ''] = await eventually(() => /listening on (http:[^"]+)/.exec(output) ?? undefined);
      const answer = await convert(`${origin}/api/v1`, await fixture('scene.png'));
      expect(answer.status).to.equal(200);
      expect((await sharp(answer.body).metadata()).format).to.equal('webp');
      for (const path of ['/', '/docs', '/api/v1/openapi.json']) {
        expect((await sendForm(`${origin}${path}`)).status, path).to.equal(200);
      }
      const [, script = ''] = /src="([^"]+)"/.exec((await sendForm(`${origin}/docs`)).body.toString()) ?? [];
      const address = new URL(script, `${origin}/docs`).href;
      expect((await sendForm(address)).body.toString()).to.include('api/v1/openapi.json');
    } finally {
      child.kill('SIGTERM');
      await ended;
    }
  });
});
