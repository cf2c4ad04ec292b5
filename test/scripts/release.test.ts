import { spawnSync } from 'node:child_process';
import { cp, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { makeTempDir } from '../helpers/hooks.ts';
import { PROJECT } from '../helpers/markdown.ts';

describe('npm run release', () => {
  /** Makes a checkout without dependencies, whose changelog has version 1.2.3. */
  async function makeCheckout(version: string): Promise<string> {
    const folder = await makeTempDir('release');
    await mkdir(join(folder, 'scripts'));
    await cp(join(PROJECT, 'scripts/release.sh'), join(folder, 'scripts/release.sh'));
    await writeFile(join(folder, 'package.json'), `{\n  "version": "${version}",\n  "private": true\n}\n`);
    await writeFile(join(folder, 'CHANGELOG.md'), '## [1.2.3] - 2026-01-01\n\n- A change.\n');
    for (const args of [
      ['init', '--quiet'],
      ['add', '.'],
      ['commit', '--quiet', '--message', 'all'],
    ])
      spawnSync('git', ['-c', 'user.name=Test', '-c', 'user.email=test@example.org', ...args], {
        cwd: folder,
      });
    return folder;
  }
  const release = (cwd: string, settings: Readonly<Record<string, string>> = {}) => {
    const env = { PATH: process.env.PATH, HOME: cwd, DOCKER_HOST: 'unix:///nowhere', ...settings };
    const { status, stdout, stderr } = spawnSync('sh', ['scripts/release.sh'], {
      cwd,
      env,
      encoding: 'utf8',
    });
    return { status, stdout, stderr };
  };

  it('ends before it builds if the checkout has changes', async () => {
    const folder = await makeCheckout('1.2.3');
    await writeFile(join(folder, 'new.txt'), '');
    const stderr = 'imagemill: this checkout has changes: commit or remove them\n';
    expect(release(folder)).to.deep.equal({ status: 1, stdout: '', stderr });
  });

  it('ends before it builds if the changelog does not have the version', async () => {
    const stderr = 'imagemill: CHANGELOG.md has no version 1.2.4\n';
    expect(release(await makeCheckout('1.2.4'))).to.deep.equal({ status: 1, stdout: '', stderr });
  });

  it('ends before it builds without Docker, and makes no image with WITHOUT_IMAGE', async () => {
    const folder = await makeCheckout('1.2.3');
    const stderr =
      'imagemill: the image needs a running Docker, and skopeo: WITHOUT_IMAGE=yes leaves it out\n';
    expect(release(folder)).to.deep.equal({ status: 1, stdout: '', stderr });
    // The next step is a script that this checkout does not have.
    expect(release(folder, { WITHOUT_IMAGE: 'yes' }).stderr).to.include('scripts/bootstrap.sh');
  });

  it('ends before it builds if a tool is missing', async () => {
    const folder = await makeCheckout('1.2.3');
    await mkdir(join(folder, '.git/bin'));
    const programs = ['git', 'sed', 'awk', 'dirname'].map((name) => `$(command -v ${name})`).join(' ');
    spawnSync('sh', ['-c', `ln -s ${programs} .git/bin/ && ln -s "$(command -v sh)" .git/bin/`], {
      cwd: folder,
    });
    const stderr = 'imagemill: apt-get is missing: release on Debian 12\n';
    expect(release(folder, { PATH: join(folder, '.git/bin') })).to.deep.equal({
      status: 1,
      stdout: '',
      stderr,
    });
  });
});
