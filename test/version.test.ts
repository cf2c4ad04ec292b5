/**
 * @module The version of package.json. `test/docs.test.ts` checks that of the documents,
 * `test/container/` that of the image.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { jsonOf, sendForm } from './helpers/client.ts';
import { runCli } from './helpers/command-line.ts';
import { PROJECT } from './helpers/markdown.ts';
import { useProcesses } from './helpers/process.ts';

const read = (path: string): string => readFileSync(join(PROJECT, path), 'utf8');
const { version } = JSON.parse(read('package.json')) as { readonly version: string };
/**
 * What states the version in a file of `docker/`: the name of the image, the tag of kustomize, and
 * the label of the image.
 */
const STATED = /(?:\bimagemill:|newTag: |ARG VERSION=)(\d+\.\d+\.\d+)/g;

describe('the version of package.json', () => {
  const start = useProcesses();

  it('is that of the lock file, and of the first section of the changelog', () => {
    const lock = JSON.parse(read('package-lock.json'));
    const [, released] = /^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d$/m.exec(read('CHANGELOG.md')) ?? [];
    expect([lock.version, lock.packages[''].version, released]).to.deep.equal([version, version, version]);
  });

  it('is that of the image in every file for containers and clusters', () => {
    const files = globSync('docker/**/*', { cwd: PROJECT, withFileTypes: true }).filter((file) =>
      file.isFile(),
    );
    const stated = files.flatMap(({ parentPath, name }) =>
      [...readFileSync(join(parentPath, name), 'utf8').matchAll(STATED)].map(
        ([, found]) => `${name} ${found}`,
      ),
    );
    const names = ['Dockerfile', 'compose.yaml', 'swarm.yaml', 'kustomization.yaml', 'bulk-job.yaml'];
    expect(stated).to.include.members(names.map((name) => `${name} ${version}`));
    expect(stated.filter((text) => !text.endsWith(` ${version}`))).to.deep.equal([]);
  });

  it('is what the program, /health and the API reference state', async () => {
    expect((await runCli(['--version'])).stdout).to.equal(`${version}\n`);
    const base = await start({}).base();
    expect(jsonOf(await sendForm(`${base}/health`)).version).to.equal(version);
    expect(jsonOf(await sendForm(`${base}/openapi.json`)).info.version).to.equal(version);
  });
});
