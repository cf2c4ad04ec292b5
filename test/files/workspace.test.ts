import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, rm, stat, unlink, writeFile } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { expect } from 'chai';
import { bytesOfBatch, withWorkingFolder } from '../../src/cli/context.ts';
import { storeInput } from '../../src/conversion/input/store.ts';
import { isInMemory, workingFolder } from '../../src/files/system.ts';
import { Workspaces } from '../../src/files/workspace.ts';
import { ONE_PIXEL } from '../../src/process/policy.ts';
import { loadConfig } from '../../src/tables/config.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { startEngine } from '../helpers/service.ts';
import { requires } from '../helpers/skips.ts';
import { withoutPrivileges } from '../helpers/without-privileges.ts';

const PROJECT = new URL('../../', import.meta.url).pathname;
const source = (name: string): string => new URL(`../../src/files/${name}`, import.meta.url).href;

describe('workspace', () => {
  it('is private to the user, with one folder per request and per file, whose paths name no process', async () => {
    const workspaces = new Workspaces(await makeTempDir('temp'));
    const [one, other] = [await workspaces.open(), await workspaces.open()];
    expect(one.path).to.not.equal(other.path);
    // The tools can see the path.
    expect(one.path).to.match(/\/imagemill-instance-[A-Za-z0-9]{6}\/request-[A-Za-z0-9]{6}$/);
    for (const path of [await workspaces.root(), one.path, await one.folder('1')])
      expect((await stat(path)).mode & 0o777).to.equal(0o700);
    await workspaces.close();
  });

  it('is removed completely, and close() removes all others', async () => {
    const tempDir = await makeTempDir('temp');
    const workspaces = new Workspaces(tempDir);
    const [one, other] = [await workspaces.open(), await workspaces.open()];
    await writeFile(join(await one.folder('1'), 'in'), 'x');
    await one.remove();
    await one.remove();
    expect(await readdir(join(one.path, '..'))).to.have.members(['owner.json', other.path.split('/').at(-1)]);
    await workspaces.close();
    expect(await readdir(tempDir)).to.deep.equal([]);
  });

  it('is removed completely when something else removes its files at the same time', async () => {
    const workspaces = new Workspaces(await makeTempDir('temp'));
    for (let round = 0; round < 5; round += 1) {
      const workspace = await workspaces.open();
      const folder = await workspace.folder('1');
      const files = Array.from({ length: 60 }, (_, at) => join(folder, `${at}`));
      await Promise.all(files.map((file) => writeFile(file, '')));
      await Promise.allSettled([...files.map((file) => unlink(file)), workspace.remove()]);
      expect(await readdir(await workspaces.root())).to.deep.equal(['owner.json']);
    }
    await workspaces.close();
  });

  it('throws DISK_FULL when there is no space for the upload', async () => {
    const MIB = 1024 ** 2;
    const tempDir = await makeTempDir('temp');
    const workspaces = new Workspaces(tempDir, async () => 18 * MIB);
    await (await workspaces.open({ bytes: 10 * MIB })).remove();
    const refused = await workspaces.open({ bytes: 10 * MIB + 1 }).catch((error) => error);
    expect(refused).to.include({ code: 'DISK_FULL', status: 503 });
    expect(workspaces.reserved()).to.equal(0);
    await workspaces.close();
    expect(await readdir(tempDir)).to.deep.equal([]);
  });

  it('releases the space of discarded files, and all of it when it is removed', async () => {
    const workspaces = new Workspaces(await makeTempDir('temp'));
    const workspace = await workspaces.open({ bytes: 1000 });
    const folder = await workspace.folder('1');
    await workspace.disk.store(600);
    await writeFile(join(folder, 'in'), Buffer.alloc(600));
    expect(workspaces.reserved()).to.equal(1000);
    await workspace.discard(folder);
    expect(workspaces.reserved()).to.equal(400);
    expect(await readdir(workspace.path)).to.deep.equal([]);
    await workspace.remove();
    expect(workspaces.reserved()).to.equal(0);
    await workspaces.close();
  });

  it('throws the error of the work in preference to the error of its removal', async () => {
    const tempDir = await makeTempDir('temp');
    const code = `
      import { chmodSync } from 'node:fs';
      const { Workspaces } = await import('${source('workspace.ts')}');
      const workspaces = new Workspaces('${tempDir}');
      chmodSync(await workspaces.root(), 0o700);
      const lock = async () => chmodSync(await workspaces.root(), 0o500);
      const print = (error) => console.log(error.code ?? error.message, workspaces.reserved());
      await workspaces.use({ bytes: 10 }, async () => {
        await lock();
        throw new Error('of the work');
      }).catch(print);
      chmodSync(await workspaces.root(), 0o700);
      await workspaces.use({ bytes: 10 }, lock).catch(print);`;
    expect(withoutPrivileges(code)).to.equal('of the work 0\nEACCES 0\n');
  });
});

describe('removeFolder', () => {
  it('removes thousands of files without listing them in the thread of the service', async () => {
    const folder = await makeTempDir('crowded');
    const inner = join(folder, 'request', '1');
    await mkdir(inner, { recursive: true });
    for (let at = 0; at < 5000; at += 1) fs.writeFileSync(join(inner, `${at}`), '');
    // What this thread does to the files: requests to the threads of Node.js, one for each file if
    // it removes them itself, and calls that block it.
    const code = `
      import { createHook } from 'node:async_hooks';
      import fs from 'node:fs';
      import { syncBuiltinESMExports } from 'node:module';
      let calls = 0;
      createHook({ init: (_, type) => { calls += type.startsWith('FS') ? 1 : 0; } }).enable();
      const blocking = [];
      for (const name of Object.keys(fs).filter((key) => key.endsWith('Sync') && key !== 'existsSync')) {
        const call = fs[name];
        fs[name] = (...args) => {
          if (String(args[0]).startsWith('${folder}')) blocking.push(name);
          return call(...args);
        };
      }
      syncBuiltinESMExports();
      const { removeFolder } = await import('${source('workspace.ts')}');
      calls = 0;
      await removeFolder('${join(folder, 'request')}');
      console.log(JSON.stringify({ calls, blocking }));`;
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8' });
    expect(await readdir(folder)).to.deep.equal([]);
    const { calls, blocking } = JSON.parse(stdout);
    expect(calls).to.be.within(1, 200);
    expect(blocking).to.deep.equal([]);
  });

  it('restores the permissions that a tool has removed from its folders', async () => {
    const folder = await makeTempDir('locked');
    const inner = join(folder, 'request', 'job', 'deep');
    await mkdir(inner, { recursive: true });
    await writeFile(join(inner, 'file'), '');
    await chmod(inner, 0);
    await chmod(join(inner, '..'), 0o500);
    const code = `await (await import('${source('workspace.ts')}')).removeFolder('${join(folder, 'request')}')`;
    expect(withoutPrivileges(code)).to.equal('');
    expect(await readdir(folder)).to.deep.equal([]);
  });
});

describe('workspaces after the loss of their folder', () => {
  it('leave no files when the process exits without closing them', async () => {
    const tempDir = await makeTempDir('temp');
    const code = `
      import { Workspaces } from ${JSON.stringify(source('workspace.ts'))};
      import { writeFileSync } from 'node:fs';
      const { path } = await new Workspaces(${JSON.stringify(tempDir)}).open();
      writeFileSync(path + '/in', 'x');
      console.log(path);
      process.exit(3);`;
    const args = ['--input-type=module', '-e', code];
    const { status, stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    expect(status).to.equal(3);
    expect(stdout).to.include(tempDir);
    expect(await readdir(tempDir)).to.deep.equal([]);
  });

  it('are created in one new folder, even concurrently, and leave no files', async () => {
    const tempDir = await makeTempDir('temp');
    const workspaces = new Workspaces(tempDir);
    await (await workspaces.open()).remove();
    await rm(tempDir, { recursive: true });
    const opened = await Promise.all(Array.from({ length: 6 }, () => workspaces.open()));
    expect(await readdir(tempDir)).to.have.length(1);
    await Promise.all(opened.map((workspace) => workspace.remove()));
    await workspaces.close();
    expect(await readdir(tempDir)).to.deep.equal([]);
  });

  it('are created again after the cause of a failure is fixed', async () => {
    const folder = await makeTempDir('temp');
    await writeFile(join(folder, 'blocked'), '');
    const workspaces = new Workspaces(join(folder, 'blocked'));
    expect(await workspaces.open().catch((error: Error) => error)).to.be.instanceOf(Error);
    await rm(join(folder, 'blocked'));
    await (await workspaces.open()).remove();
    await workspaces.close();
  });
});

describe('the folder for working files', () => {
  const type = (folder: string): string =>
    spawnSync('stat', ['-f', '-c', '%T', folder], { encoding: 'utf8' }).stdout.trim();

  it('is in memory if that has room for a full batch, and the temporary folder of the system otherwise', async () => {
    const memory = type('/dev/shm') === 'tmpfs' ? '/dev/shm' : tmpdir();
    expect(workingFolder(1)).to.equal(memory);
    expect(workingFolder(1e15)).to.equal(tmpdir());
    expect(workingFolder(process.availableMemory() / 2)).to.equal(tmpdir());
    expect(workingFolder(1, '/nonexistent')).to.equal(tmpdir());
    expect(workingFolder(1, '/proc')).to.equal(tmpdir());
  });

  it('is the folder of TEMP_DIR or TMPDIR where one of them is set', () => {
    const config = loadConfig({});
    for (const env of [{ TEMP_DIR: '/x' }, { TMPDIR: '/x' }])
      expect(withWorkingFolder(config, env)).to.equal(config);
    expect(withWorkingFolder(config, {}).TEMP_DIR).to.equal(workingFolder(bytesOfBatch(config)));
  });
});

describe('working files on a disk', () => {
  it('are created, renamed and removed without a call that blocks the event loop', async function () {
    const home = [await makeTempDir('disk'), PROJECT].find((folder) => !isInMemory(folder));
    requires(this, 'disk', home !== undefined);
    const tempDir = await mkdtemp(join(home as string, '.disk-'));
    const folder = join(tempDir, 'of-test');
    await mkdir(folder);
    const calls: string[] = [];
    const { mkdirSync, mkdtempSync, renameSync, rmSync, openSync, lstatSync } = fs;
    const original = { mkdirSync, mkdtempSync, renameSync, rmSync, openSync, lstatSync };
    for (const [name, call] of Object.entries(original))
      Object.assign(fs, {
        [name](...args: unknown[]) {
          const creates = name !== 'openSync' || String(args[1]).includes('w');
          if (creates && String(args[0]).startsWith(tempDir)) calls.push(`${name} ${args[0]}`);
          return (call as (...args: unknown[]) => unknown)(...args);
        },
      });
    syncBuiltinESMExports();
    try {
      const engine = await startEngine({ TEMP_DIR: tempDir });
      await engine.workspaces.use({}, async (workspace) => {
        const source = { folder: await workspace.folder('1'), type: 'png', label: 'It' } as const;
        const { signal } = new AbortController();
        const rules = { label: 'It', types: ['png'], maxBytes: () => 1000 } as const;
        const options = { ...rules, signal, disk: workspace.disk };
        await storeInput(Readable.from([ONE_PIXEL]), join(source.folder, 'in'), options);
        await engine.convert(source, { format: 'webp', quality: 80, metadata: 'none' }, signal);
        await workspace.discard(source.folder);
      });
      await engine.close();
    } finally {
      Object.assign(fs, original);
      syncBuiltinESMExports();
      await rm(tempDir, { recursive: true });
    }
    expect(calls).to.deep.equal([]);
  });
});
