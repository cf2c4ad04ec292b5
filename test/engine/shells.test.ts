import { spawnSync } from 'node:child_process';
import { readdir, readFile, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect } from 'chai';
import type { Command } from '../../src/engine/command.ts';
import { createRun } from '../../src/engine/run.ts';
import { createShells, type Shells } from '../../src/engine/shells.ts';
import { failure } from '../helpers/failure.ts';
import { scratch } from '../helpers/hooks.ts';
import { eventually, isRunning, script } from '../helpers/scripts.ts';

const PYTHON = await realpath('/usr/bin/python3');

describe('the shells that start programs', () => {
  let home: string;
  let shells: Shells;
  beforeEach(async () => {
    home = await scratch('shells');
    shells = createShells(async () => home);
  });
  afterEach(() => shells.close());

  const run = async (file: string, more: Partial<Command> = {}) =>
    createRun({ shells, searchPath: '/usr/bin:/bin', policyFolder: '/nonexistent' })({
      file,
      args: [],
      cwd: await scratch('job'),
      timeoutMs: 10_000,
      ...more,
    });
  const parent = async () => (await run(await script('parent', 'echo $PPID'))).stdout;

  it('are used again, one program at a time, and several when several run', async () => {
    expect(new Set([await parent(), await parent(), await parent()]).size).to.equal(1);
    const place = await scratch('meeting');
    const wait = `echo > ${place}/$$; until [ $(ls ${place} | wc -l) = 3 ]; do sleep 0.01; done`;
    const meets = await script('meets', `${wait}; echo $PPID`);
    const met = await Promise.all([run(meets), run(meets), run(meets)]);
    expect(new Set(met.map(({ stdout }) => stdout)).size).to.equal(3);
    expect(await readdir(home)).to.have.length(3);
  });

  it('give a program three open files and no other of theirs', async () => {
    const list = 'import os\nfor n in range(256):\n try: os.fstat(n); print(n)\n except OSError: pass';
    const args = ['-I', '-S', '-c', list];
    // Whoever started the tests may have left some open for everybody.
    const { stdout: open } = spawnSync(PYTHON, args, { encoding: 'utf8' });
    expect(open).to.match(/^0\n1\n2\n/);
    expect((await run(PYTHON, { args })).stdout).to.equal(open);
  });

  it('give it words as they are, whatever they hold', async () => {
    const words = ['', ' ', "it's", '"', '$(id)', '`id`', 'two\nlines', '\\n', '-n', 'ä€😀', '*', '&&', '>x'];
    const { stdout } = await run(PYTHON, { args: ['-c', 'import sys; print(sys.argv[1:])', ...words] });
    expect(stdout).to.equal((await run(PYTHON, { args: ['-c', `print(${JSON.stringify(words)})`] })).stdout);
  });

  it('keep nothing of one program for the next: neither folder, nor limits, nor what it printed', async () => {
    const limits = ['-v 4000000', '-n 32'];
    const told = await script('tells', 'pwd; env; ulimit -n');
    const bare = { shells, searchPath: '/usr/bin:/bin', policyFolder: '/nonexistent' };
    const [cwd, timeoutMs] = [await scratch('job'), 10_000];
    const limited = createRun({ ...bare, confine: () => ({ limits }), environment: { SEEN: 'once' } });
    const before = (await limited({ file: told, args: [], cwd, timeoutMs })).stdout;
    expect(before)
      .to.match(/SEEN=once/)
      .and.match(/\n32\n$/);
    const after = (await run(told)).stdout;
    expect(after).to.not.include('SEEN').and.not.include(cwd);
    expect(after).to.not.match(/\n32\n$/);
  });

  it('do not take a program for ended while a child of it could still print', async () => {
    const cwd = await scratch('leaves');
    const leaves = await script('leaves', `(sleep 60) & echo $! > ${cwd}/pid; exit 0`);
    expect((await failure(run(leaves, { cwd, timeoutMs: 500 }))).reason).to.equal('timeout');
    const pid = Number(await readFile(join(cwd, 'pid'), 'utf8'));
    await eventually(() => !isRunning(pid));
  });

  it('say so when what a program is to read is not there, and go on', async () => {
    expect((await failure(run('/bin/cat', { stdin: '/nonexistent/in' }))).reason).to.equal('exit');
    expect((await run('/bin/echo', { args: ['on'] })).stdout).to.equal('on\n');
  });

  it('go on when somebody has tidied up the temporary folder', async () => {
    await parent();
    await rm(home, { recursive: true });
    home = await scratch('shells-anew');
    expect((await run('/bin/echo', { args: ['on'] })).stdout).to.equal('on\n');
  });

  it('are replaced when they are killed, and what they ran is for want of a process', async () => {
    const cwd = await scratch('killed');
    const kills = await script('kills', `echo $$ > ${cwd}/pid; kill -9 $PPID; sleep 60`);
    const error = await failure(run(kills, { cwd, timeoutMs: 5_000 }));
    expect(error.reason).to.equal('unrunnable');
    expect(error.cause).to.include({ code: 'EAGAIN' });
    const pid = Number(await readFile(join(cwd, 'pid'), 'utf8'));
    await eventually(() => !isRunning(pid));
    expect((await run('/bin/echo', { args: ['on'] })).stdout).to.equal('on\n');
  });

  it('fail for want of a process when they end before they have started anything', async () => {
    const file = `/proc/${process.pid}/task/${process.pid}/children`;
    const children = async () => (await readFile(file, 'utf8')).split(' ').filter(Boolean).map(Number);
    const before = await children();
    const running = failure(run('/bin/sleep', { args: ['60'] }));
    const born = await eventually(async () => (await children()).find((pid) => !before.includes(pid)));
    process.kill(born, 'SIGKILL');
    expect((await running).cause).to.include({ code: 'EAGAIN' });
  });

  it('forget a program that has ended, with what it printed', async () => {
    setFlagsFromString('--expose-gc');
    const collect: () => void = runInNewContext('gc');
    const pipes = await Promise.all(Array.from({ length: 5 }, once));
    await eventually(() => {
      collect();
      return pipes.every((pipe) => pipe.deref() === undefined);
    });

    async function once(): Promise<WeakRef<object>> {
      const { shell, stdout, stderr, status } = await shells.start('echo something', '/dev/null');
      stdout.resume();
      stderr.resume();
      expect(await status).to.equal(0);
      shells.giveBack(shell);
      return new WeakRef(stdout);
    }
  });

  it('leave no folder behind when they are killed while they wait', async () => {
    process.kill(Number(await parent()), 'SIGKILL');
    await eventually(async () => {
      const started = await parent().catch(() => undefined); // its end may not be known yet
      return started && (await readdir(home)).length === 1;
    });
  });

  it('are not started any more once all are to end, and those that are being started end, too', async () => {
    const starting = failure(run('/bin/echo'));
    await shells.close();
    expect(await starting).to.include({ reason: 'unrunnable' });
    expect(await readdir(home)).to.deep.equal([]);
    expect(await failure(run('/bin/echo'))).to.include({ reason: 'unrunnable' });
    expect(await readdir(home)).to.deep.equal([]);
  });

  it('leave nothing behind', async () => {
    const pid = Number(await parent());
    await shells.close();
    expect(isRunning(pid)).to.equal(false);
    expect(await readdir(home)).to.deep.equal([]);
  });
});
