import { chmod, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { replaceFile } from '../../src/files/system.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { withoutPrivileges } from '../helpers/without-privileges.ts';

describe('replaceFile', () => {
  it('keeps the permissions of the older file', async () => {
    const folder = await makeTempDir('replaced');
    const path = join(folder, 'report.json');
    await writeFile(path, 'old', { mode: 0o600 });
    await replaceFile(path, 'new');
    expect(await readFile(path, 'utf8')).to.equal('new');
    expect((await stat(path)).mode & 0o777).to.equal(0o600);
    expect(await readdir(folder)).to.deep.equal(['report.json']);
  });

  it('writes to a file that cannot be replaced, because its folder is read-only', async () => {
    const folder = await makeTempDir('read-only');
    const path = join(folder, 'report.json');
    await writeFile(path, 'older');
    await chmod(folder, 0o500);
    const module = new URL('../../src/files/system.ts', import.meta.url).href;
    withoutPrivileges(`await (await import('${module}')).replaceFile('${path}', 'new')`);
    await chmod(folder, 0o700);
    expect(await readFile(path, 'utf8')).to.equal('new');
  });
});
