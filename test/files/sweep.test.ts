// @unit
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdir, readdir, readFile, symlink, utimes, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { expect } from 'chai';
import { makeInstanceFolder, readInstanceFolder, removeStaleWorkspaces } from '../../src/files/stale.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { requires } from '../helpers/skips.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const SOURCE = new URL('../../src/files/stale.ts', import.meta.url);

/** Starts a process that creates the folder of an instance, and returns its name. */
async function startInstance(tempDir: string) {
  const code = `const { makeInstanceFolder } = await import('${SOURCE}');
    console.log(await makeInstanceFolder('${tempDir}'));
    setTimeout(() => {}, 60_000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', code]);
  const [printed] = await once(child.stdout, 'data');
  return { child, name: basename(String(printed).trim()) };
}

/** Creates the folder of an instance whose owner differs from this process, with a request. */
async function instanceFolder(tempDir: string, differences: object = {}): Promise<string> {
  const folder = await makeInstanceFolder(tempDir);
  const owner = { ...(await readInstanceFolder(folder))?.owner, ...differences };
  await writeFile(join(folder, 'owner.json'), JSON.stringify(owner));
  await mkdir(join(folder, 'request-1'));
  return basename(folder);
}

/** An earlier process with the ID of this one. */
const DEAD = { started: '1' };

async function age(path: string, now: number): Promise<void> {
  const seconds = (now - DAY_MS) / 1000 - 60;
  await utimes(path, seconds, seconds);
}

describe('removeStaleWorkspaces', () => {
  let tempDir: string;
  beforeEach(async () => {
    tempDir = await makeTempDir('sweep');
  });

  it('removes folders of dead processes, and keeps those of running processes and other files', async () => {
    const [killed, other] = [await startInstance(tempDir), await startInstance(tempDir)];
    killed.child.kill('SIGKILL');
    await once(killed.child, 'exit');
    const [own, reused] = [await instanceFolder(tempDir), await instanceFolder(tempDir, DEAD)];
    await mkdir(join(tempDir, 'imagemill-notes'));
    await writeFile(join(tempDir, 'other.txt'), '');

    expect((await removeStaleWorkspaces(tempDir)).sort()).to.deep.equal([killed.name, reused].sort());
    expect(await readdir(tempDir)).to.have.members(['imagemill-notes', other.name, own, 'other.txt']);
    other.child.kill('SIGKILL');
  });

  for (const [where, owner] of [
    ['container', { namespace: '1' }],
    ['machine, which shares the disk,', { ...DEAD, boot: 'another machine' }],
  ] as const)
    it(`keeps folders of another ${where} for a day after their last change`, async () => {
      const now = Date.now();
      const recent = await instanceFolder(tempDir, owner);
      const stale = await instanceFolder(tempDir, owner);
      await age(join(tempDir, stale), now);
      expect(await removeStaleWorkspaces(tempDir, now)).to.deep.equal([stale]);
      expect(await readdir(tempDir)).to.deep.equal([recent]);
    });

  it('keeps a folder that another instance is creating, before and while it writes the owner', async () => {
    const making = ['imagemill-instance-aaaaaa', 'imagemill-instance-bbbbbb'];
    for (const name of making) await mkdir(join(tempDir, name));
    await writeFile(join(tempDir, making[1] as string, 'owner.json'), '{"pid":');
    expect(await removeStaleWorkspaces(tempDir)).to.deep.equal([]);
    expect(await readdir(tempDir)).to.have.members(making);
  });

  it('removes a folder without an owner after a day, only if it is empty', async () => {
    const now = Date.now();
    const [empty, full] = ['imagemill-instance-aaaaaa', 'imagemill-instance-bbbbbb'] as const;
    for (const name of [empty, full]) await mkdir(join(tempDir, name));
    await writeFile(join(tempDir, full, 'notes.txt'), 'kept');
    for (const name of [empty, full]) await age(join(tempDir, name), now);
    expect(await removeStaleWorkspaces(tempDir, now)).to.deep.equal([empty]);
    expect(await readFile(join(tempDir, full, 'notes.txt'), 'utf8')).to.equal('kept');
  });

  it('does not follow links or remove files with the name of a folder', async () => {
    const elsewhere = await makeTempDir('elsewhere');
    const gone = await instanceFolder(elsewhere, DEAD);
    await symlink(join(elsewhere, gone), join(tempDir, 'imagemill-instance-aaaaaa'));
    await writeFile(join(tempDir, 'imagemill-instance-bbbbbb'), '');
    expect(await removeStaleWorkspaces(tempDir)).to.deep.equal([]);
    expect(await readdir(elsewhere)).to.deep.equal([gone]);
    expect(await readdir(tempDir)).to.have.length(2);
  });

  it('keeps folders of other users, even as root', async function () {
    requires(this, 'root', process.getuid?.() === 0); // only root can give a folder away
    const name = await instanceFolder(tempDir, DEAD);
    await chown(join(tempDir, name), 65_534, 65_534);
    expect(await removeStaleWorkspaces(tempDir)).to.deep.equal([]);
    expect(await readdir(tempDir)).to.deep.equal([name]);
  });

  it('returns an empty list when the folder does not exist', async () => {
    expect(await removeStaleWorkspaces('/nonexistent')).to.deep.equal([]);
  });
});
