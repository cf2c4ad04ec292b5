import { spawnSync } from 'node:child_process';
import { readdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { createFolders } from '../../src/files/system.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { requires } from '../helpers/skips.ts';

const MODULE = new URL('../../src/files/system.ts', import.meta.url).href;

describe('createFolders', () => {
  it('creates a folder and its parents, also when several calls do it at the same time', async () => {
    const folder = await makeTempDir('parents');
    const paths = ['a/b/c', 'a/b/d', 'a/b/c', 'a'].map((name) => join(folder, name));
    await Promise.all(paths.map(createFolders));
    expect((await readdir(folder, { recursive: true })).sort()).to.deep.equal(['a', 'a/b', 'a/b/c', 'a/b/d']);
  });

  it('throws EEXIST or ENOTDIR when a file has the name of a folder, or a link leads nowhere', async () => {
    const folder = await makeTempDir('file');
    const [file, link] = [join(folder, 'file'), join(folder, 'link')];
    await writeFile(file, '');
    await symlink('nowhere', link);
    for (const [path, expected, reason] of [
      [file, 'EEXIST', `${file} is not a folder`],
      [link, 'EEXIST', `${link} is not a folder`],
      [join(file, 'below'), 'ENOTDIR', 'not a directory'],
    ] as const) {
      const { code, message } = await createFolders(path).catch((error) => error);
      expect([code, message.includes(reason)], message).to.deep.equal([expected, true]);
    }
  });

  it('throws EROFS when a parent is missing on a read-only disk', async function () {
    const folder = await makeTempDir('read-only');
    const inNamespace = ['--user', '--map-root-user', '--mount', 'sh', '-ec'];
    const mount = `mount -t tmpfs -o ro tmpfs '${folder}'`;
    requires(this, 'mounts', spawnSync('unshare', [...inNamespace, mount]).status === 0);
    const program = `import('${MODULE}').then((m) => m.createFolders('${folder}/a/b')).catch((e) => console.log(e.code))`;
    const run = `${mount}; exec "$0" -e "$1"`;
    const { stdout } = spawnSync('unshare', [...inNamespace, run, process.execPath, program]);
    expect(stdout.toString()).to.equal('EROFS\n');
  });
});
