import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdir, readdir, readFile, symlink, utimes, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { expect } from 'chai';
import {
  currentProcess,
  makeInstanceFolder,
  OWNER_FILE,
  type ProcessIdentity,
  removeStaleWorkspaces,
} from '../../src/files/stale.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { requires } from '../helpers/skips.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

/** Creates the folder of an instance, with a request in it. */
async function instanceFolder(tempDir: string, owner: ProcessIdentity): Promise<string> {
  const folder = await makeInstanceFolder(tempDir, owner);
  await mkdir(join(folder, 'request-1'));
  return basename(folder);
}

/** Returns the identity of a process that has exited. */
async function deadProcess(): Promise<ProcessIdentity> {
  const child = spawn(process.execPath, ['--version']);
  const ended = once(child, 'exit');
  const dead = { ...(await currentProcess(child.pid as number)), started: '1' };
  await ended;
  return dead;
}

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
    const other = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 60_000)']);
    const gone = await instanceFolder(tempDir, await deadProcess());
    const live = await instanceFolder(tempDir, await currentProcess(other.pid));
    const own = await instanceFolder(tempDir, await currentProcess());
    const reused = await instanceFolder(tempDir, { ...(await currentProcess(other.pid)), started: '12345' });
    await mkdir(join(tempDir, 'imagemill-notes'));
    await writeFile(join(tempDir, 'other.txt'), '');

    expect((await removeStaleWorkspaces(tempDir)).sort()).to.deep.equal([gone, reused].sort());
    expect(await readdir(tempDir)).to.have.members(['imagemill-notes', live, own, 'other.txt']);
    other.kill('SIGKILL');
  });

  it('keeps folders of another container for a day after their last change', async () => {
    const now = Date.now();
    const recent = await instanceFolder(tempDir, { pid: 7, started: '99', namespace: '1' });
    const stale = await instanceFolder(tempDir, { pid: 8, started: '99', namespace: '1' });
    await age(join(tempDir, stale), now);
    expect(await removeStaleWorkspaces(tempDir, now)).to.deep.equal([stale]);
    expect(await readdir(tempDir)).to.deep.equal([recent]);
  });

  it('keeps folders of another machine, which shares the disk, for a day after their last change', async () => {
    const dead = await deadProcess();
    const elsewhere = await instanceFolder(tempDir, { ...dead, boot: 'another machine' });
    const here = await instanceFolder(tempDir, dead);
    expect(await removeStaleWorkspaces(tempDir)).to.deep.equal([here]);
    expect(await readdir(tempDir)).to.deep.equal([elsewhere]);
  });

  it('keeps a folder that another instance is creating, before and while it writes the owner', async () => {
    const making = ['imagemill-instance-aaaaaa', 'imagemill-instance-bbbbbb'];
    for (const name of making) await mkdir(join(tempDir, name));
    await writeFile(join(tempDir, making[1] as string, OWNER_FILE), '{"pid":');
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
    const gone = await instanceFolder(elsewhere, await deadProcess());
    await symlink(join(elsewhere, gone), join(tempDir, 'imagemill-instance-aaaaaa'));
    await writeFile(join(tempDir, 'imagemill-instance-bbbbbb'), '');
    expect(await removeStaleWorkspaces(tempDir)).to.deep.equal([]);
    expect(await readdir(elsewhere)).to.deep.equal([gone]);
    expect(await readdir(tempDir)).to.have.length(2);
  });

  it('keeps folders of other users, even as root', async function () {
    requires(this, 'root', process.getuid?.() === 0); // only root can give a folder away
    const dead = await deadProcess();
    const names = [
      await instanceFolder(tempDir, dead),
      `imagemill-${dead.pid}-${dead.started}-${dead.namespace}-abcdef`,
    ];
    await mkdir(join(tempDir, names[1] as string), { recursive: true });
    for (const name of names) await chown(join(tempDir, name), 65_534, 65_534);
    expect(await removeStaleWorkspaces(tempDir)).to.deep.equal([]);
    expect(await readdir(tempDir)).to.have.members(names);
  });

  it('returns an empty list when the folder does not exist', async () => {
    expect(await removeStaleWorkspaces('/nonexistent')).to.deep.equal([]);
  });
});
