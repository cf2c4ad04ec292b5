import { spawnSync } from 'node:child_process';
import { chmod, mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { OWNER_FILE } from '../../src/files/instance.ts';
import { createWorkspaces } from '../../src/files/workspace.ts';
import { scratch } from '../helpers/hooks.ts';

const REMOVE = new URL('../../src/files/remove.ts', import.meta.url).href;

describe('a workspace', () => {
  it('is private to the user, and each request and each file has its own', async () => {
    const tempDir = await scratch('temp');
    const workspaces = createWorkspaces(tempDir);
    const [one, other] = [await workspaces.open(), await workspaces.open()];
    expect(one.path).to.not.equal(other.path);
    for (const path of [
      join(tempDir, (await readdir(tempDir))[0] as string),
      one.path,
      await one.folder('1'),
    ]) {
      expect((await stat(path)).mode & 0o777).to.equal(0o700);
    }
    await workspaces.close();
  });

  it('has no number of a process in its path, which tools can see', async () => {
    const workspaces = createWorkspaces(await scratch('temp'));
    const { path } = await workspaces.open();
    expect(path.split('/').slice(-2).join('/')).to.match(
      /^imagemill-instance-[A-Za-z0-9]{6}\/request-[A-Za-z0-9]{6}$/,
    );
    await workspaces.close();
  });

  it('is removed whole; and closing removes the rest, so that nothing is left', async () => {
    const tempDir = await scratch('temp');
    const workspaces = createWorkspaces(tempDir);
    const [one, other] = [await workspaces.open(), await workspaces.open()];
    await writeFile(join(await one.folder('1'), 'in'), 'x');
    await one.remove();
    await one.remove();
    expect(await readdir(join(one.path, '..'))).to.have.members([OWNER_FILE, other.path.split('/').at(-1)]);
    await workspaces.close();
    expect(await readdir(tempDir)).to.deep.equal([]);
  });

  it('is removed whole also when it holds much, or many', async () => {
    const workspaces = createWorkspaces(await scratch('temp'));
    const [heavy, crowded] = [await workspaces.open(), await workspaces.open()];
    await writeFile(join(await heavy.folder('1'), 'image.bmp'), Buffer.alloc(5_000_000));
    const folder = await crowded.folder('1');
    await Promise.all(Array.from({ length: 200 }, (_, at) => writeFile(join(folder, `${at}`), '')));
    await Promise.all([heavy.remove(), crowded.remove()]);
    expect(await readdir(await workspaces.home())).to.deep.equal([OWNER_FILE]);
    await workspaces.close();
  });

  it('is removed whole also when a tool has taken the rights on its folders away', async () => {
    const folder = await scratch('locked');
    const inner = join(folder, 'request', 'made', 'deep');
    await mkdir(inner, { recursive: true });
    await writeFile(join(inner, 'file'), 'left');
    for (const path of [inner, join(folder, 'request', 'made')]) await chmod(path, 0);
    // Rights on files do not hold for root, whose capabilities go here.
    const asOwner =
      process.getuid?.() === 0 ? ['setpriv', '--bounding-set=-all', '--inh-caps=-all'] : ['env'];
    const remove = `import('${REMOVE}').then((files) => files.removeFolder('${join(folder, 'request')}'))`;
    const [program = '', ...args] = [...asOwner, process.execPath, '--eval', remove];
    expect(spawnSync(program, args, { encoding: 'utf8' })).to.include({ status: 0, stderr: '' });
    expect(await readdir(folder)).to.deep.equal([]);
  });

  it('is not opened where there is no room for what is to come, and for what becomes of it', async () => {
    const MIB = 1024 ** 2;
    const tempDir = await scratch('temp');
    const workspaces = createWorkspaces(tempDir, async () => 28 * MIB);
    await (await workspaces.open(10 * MIB)).remove();
    const refused = await workspaces.open(10 * MIB + 1).catch((error) => error);
    expect(refused).to.include({ code: 'DISK_FULL', status: 503 });
    await workspaces.close();
    expect(await readdir(tempDir)).to.deep.equal([]);
  });

  it('is made again when somebody tidied up the temporary folder meanwhile', async () => {
    const tempDir = await scratch('temp');
    const workspaces = createWorkspaces(tempDir);
    await (await workspaces.open()).remove();
    await rm(tempDir, { recursive: true });
    await (await workspaces.open()).remove();
    await workspaces.close();
    expect(await readdir(tempDir)).to.deep.equal([]);
  });
});

describe('a workspace that cannot be made where it was', () => {
  it('is made in one new place, however many ask at once, and nothing stays behind', async () => {
    const tempDir = await scratch('temp');
    const workspaces = createWorkspaces(tempDir);
    await (await workspaces.open()).remove();
    await rm(tempDir, { recursive: true });
    const opened = await Promise.all(Array.from({ length: 6 }, () => workspaces.open()));
    expect(await readdir(tempDir)).to.have.length(1);
    await Promise.all(opened.map((workspace) => workspace.remove()));
    await workspaces.close();
    expect(await readdir(tempDir)).to.deep.equal([]);
  });

  it('can be made again once the trouble is over', async () => {
    const folder = await scratch('temp');
    await writeFile(join(folder, 'blocked'), '');
    const workspaces = createWorkspaces(join(folder, 'blocked'));
    expect(await workspaces.open().catch((error: Error) => error)).to.be.instanceOf(Error);
    await rm(join(folder, 'blocked'));
    await (await workspaces.open()).remove();
    await workspaces.close();
  });
});
