// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { spawn, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { copyFile, open, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { FORK_SERVER_LIBRARY } from '../../../src/folders.ts';
import type { RunCommand } from '../../../src/process/command.ts';
import type { ForkServers } from '../../../src/process/fork-server/servers.ts';
import { buildThreadLibrary } from '../../helpers/broken-codec.ts';
import { confinedRunner, LIMITS, startForkServers } from '../../helpers/fork-servers.ts';
import { makeTempDir } from '../../helpers/hooks.ts';
import { requires } from '../../helpers/skips.ts';
import {
  eventually,
  failure,
  isRunning,
  numberIn,
  PATIENCE_MS,
  processesWhere,
  writeScript,
} from '../../helpers/util.ts';

const SH = '/bin/sh';
const HELPER = new URL('../../helpers/served-sleep.ts', import.meta.url).pathname;
const SOURCE = new URL('../../../src/process/fork-server/fork-server.c', import.meta.url).pathname;

const hasCompiler = (): boolean => spawnSync('cc', ['--version']).status === 0;

/** Returns the processes that are fork servers, by the marker in their environment. */
const serversWith = (marker: string) => processesWhere('environ', (text) => text.includes(marker));

/** Kills processes with SIGKILL. Some can end before their turn, with one before them. */
function killAll(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

describe('fork servers', () => {
  let servers: ForkServers;
  let renewals: string[];
  let run: RunCommand;
  let marker: string;
  const start = async (more: Parameters<typeof startForkServers>[1] = {}, files = [SH]): Promise<void> => {
    renewals = [];
    marker = `MARKER=${process.hrtime.bigint()}`;
    servers = await startForkServers(files, {
      onRenewal: (reason) => void renewals.push(reason),
      env: { PATH: '/usr/bin:/bin', [marker.split('=')[0] as string]: marker.split('=')[1] as string },
      ...more,
    });
    run = confinedRunner(servers);
  };
  afterEach(() => servers.close());

  const script = async (body: string, more: object = {}) =>
    run({
      file: SH,
      args: [await writeScript('script', body)],
      cwd: await makeTempDir('job'),
      timeoutMs: 60_000,
      ...more,
    });

  it('run a hundred confined jobs at once, each in a process of its own that may open 64 files only', async () => {
    await start();
    const confine = () => ({ ...LIMITS, files: 64, readable: ['/usr/lib', '/etc/ld.so.cache'] });
    run = confinedRunner(servers, { confine });
    const cwd = await makeTempDir('meeting');
    spawnSync('mkfifo', [`${cwd}/gate`]);
    const jobs = Array.from({ length: 100 }, (_, id) => {
      const args = ['-c', `echo > begun-$$; read line < gate; echo ${id}`];
      return run({ file: SH, args, cwd, timeoutMs: PATIENCE_MS });
    });
    const ended = Promise.all(jobs);
    const all = eventually(() => readdirSync(cwd).length === 101);
    await Promise.race([all, ended]);
    // Opened for both, because a job that has begun may not have opened it yet.
    await using gate = await open(`${cwd}/gate`, 'r+');
    await gate.write('\n'.repeat(jobs.length));
    expect((await ended).map(({ stdout }) => stdout)).to.deep.equal(jobs.map((_, id) => `${id}\n`));
    expect(renewals).to.deep.equal([]);
  });

  it('let the jobs that a full server has no place for wait, in the order of their arrival', async () => {
    await start({ concurrency: 2 });
    const cwd = await makeTempDir('places');
    const body = (id: number) => `echo > ${id}; until [ -e open ]; do sleep 0.01; done; ls [0-9]`;
    const jobs = [0, 1, 2, 3].map((id) =>
      run({ file: SH, args: ['-c', body(id)], cwd, timeoutMs: PATIENCE_MS }),
    );
    await eventually(() => readdirSync(cwd).length === 2);
    expect(readdirSync(cwd).sort()).to.deep.equal(['0', '1']);
    await writeFile(join(cwd, 'open'), '');
    await Promise.all(jobs);
    expect(readdirSync(cwd).sort()).to.deep.equal(['0', '1', '2', '3', 'open']);
  });

  it('have PID, IPC and network namespaces of their own, where the kernel permits it', async function () {
    const kinds = ['pid', 'ipc', 'net'];
    const unshare = spawnSync('unshare', ['--fork', '--pid', '--ipc', '--net', 'true']);
    requires(this, 'mounts', unshare.status === 0);
    await start();
    expect(servers.isolated).to.equal(true);
    const { stdout } = await script(kinds.map((kind) => `readlink /proc/self/ns/${kind}`).join('\n'));
    const links = stdout.trim().split('\n');
    for (const [at, kind] of kinds.entries()) {
      expect(links[at]).to.match(new RegExp(`^${kind}:`));
      expect(links[at]).to.not.equal(readlinkSync(`/proc/self/ns/${kind}`));
    }
  });

  it('keep nothing of one job for the next: neither its arguments, nor its environment, nor its output', async () => {
    await start(undefined, ['/usr/bin/python3']);
    const find = `
import re
found = 0
for line in open('/proc/self/maps'):
  bounds = re.match('([0-9a-f]+)-([0-9a-f]+) rw', line)
  if not bounds: continue
  first, last = (int(bound, 16) for bound in bounds.groups())
  memory = open('/proc/self/mem', 'rb', 0)
  memory.seek(first)
  try: found += memory.read(last - first).count(bytes.fromhex(WHAT))
  except OSError: pass
print(found)`;
    const python = async (program: string) => {
      const args = ['-I', '-S', '-c', program];
      return run({ file: '/usr/bin/python3', args, cwd: await makeTempDir('job'), timeoutMs: 60_000 });
    };
    const hex = Buffer.from('a secret of another client').toString('hex');
    // The job that prints the secret finds it in its own memory, so the search works.
    const own = `secret = bytes.fromhex('${hex}').decode(); print(secret)\n${find.replace('WHAT', `'${hex}'`)}`;
    const [, count] = (await python(own)).stdout.split('\n');
    expect(Number(count)).to.be.greaterThan(0);
    await python("print('a secret of another client')");
    expect((await python(find.replace('WHAT', `'${hex}'`))).stdout).to.equal('0\n');
  });

  it('compress with the level of zlib that a job asks for, in forks and in new starts', async () => {
    const file = '/usr/bin/python3';
    await start(undefined, [file]);
    const args = ['-I', '-c', 'import zlib; print(len(zlib.compress(bytes(100_000), 9)))'];
    const cwd = await makeTempDir('job');
    for (const runner of [run, confinedRunner()]) {
      const compress = async (more: { deflateLevel?: number } = {}): Promise<number> =>
        Number((await runner({ file, args, cwd, timeoutMs: 60_000, ...more })).stdout);
      expect(await compress({ deflateLevel: 0 })).to.be.greaterThan(100_000);
      expect(await compress()).to.be.within(1, 200);
    }
  });

  it('replace a server after a number of jobs, without an interruption', async () => {
    await start({ maxJobs: 10 });
    for (let jobs = 0; renewals.length < 3; jobs += 1) {
      expect(renewals.length).to.be.at.most(jobs / 10);
      expect((await script('echo on')).stdout).to.equal('on\n');
    }
    expect(new Set(renewals)).to.deep.equal(new Set(['jobs']));
  });

  it('replace a server that is too old', async () => {
    await start({ maxAgeMs: 0 });
    await script('echo on');
    await script('echo on');
    expect(renewals).to.include('age');
  });

  it('replace a server when its program changes on disk', async () => {
    const program = join(await makeTempDir('program'), 'sh');
    await copyFile(SH, program);
    await start(undefined, [program]);
    await writeFile(`${program}.new`, await readFile(program), { mode: 0o755 });
    await rename(`${program}.new`, program);
    await eventually(async () => {
      await run({ file: program, args: ['-c', ':'], cwd: '/tmp', timeoutMs: 60_000 });
      return renewals.includes('changed');
    });
  });

  it('replace a server at once after a job that crashed, but not after one that the service killed', async () => {
    await start();
    expect((await failure(script('sleep 60', { timeoutMs: 100 }))).reason).to.equal('timeout');
    expect((await failure(script('exit 1'))).reason).to.equal('exit');
    expect(renewals).to.deep.equal([]);
    const before = serversWith(marker);
    expect((await failure(script('kill -SEGV $$'))).reason).to.equal('signal');
    expect(renewals).to.deep.equal(['crash']);
    expect((await script('echo on')).stdout).to.equal('on\n');
    await eventually(() => before.every((pid) => !isRunning(pid)));
  });

  it('end a job that has used its processor time, but no job after it', async () => {
    await start();
    run = confinedRunner(servers, { confine: () => ({ ...LIMITS, cpuSeconds: 1 }) });
    for (const time of [1, 2]) {
      const error = await failure(script('while :; do :; done', { timeoutMs: PATIENCE_MS }));
      expect([error.reason, error.signal], `job ${time}`).to.deep.equal(['signal', 'SIGXCPU']);
      expect((await script('echo on')).stdout).to.equal('on\n');
    }
  });

  it('report EAGAIN for the jobs of a server that was killed, and start another one', async () => {
    await start();
    const processes = serversWith(marker); // before the job, which has a copy of this environment
    const cwd = await makeTempDir('lost');
    const running = failure(script('echo > begun; sleep 60', { cwd }));
    await eventually(() => readdirSync(cwd).length > 0);
    killAll(processes);
    const error = await running;
    expect(error.reason).to.equal('spawn-failed');
    expect(error.cause).to.include({ code: 'EAGAIN' });
    expect((await script('echo on')).stdout).to.equal('on\n');
    expect(renewals).to.deep.equal(['ended']);
  });

  it('repeat the jobs that a killed server had not started in another one', async () => {
    await start({ concurrency: 2 });
    const processes = serversWith(marker);
    for (const pid of processes) process.kill(pid, 'SIGSTOP');
    const jobs = [1, 2, 3, 4].map((id) => script(`echo ${id}`)); // the last two have no place
    await new Promise(setImmediate);
    killAll(processes);
    expect((await Promise.all(jobs)).map(({ stdout }) => stdout)).to.deep.equal(['1\n', '2\n', '3\n', '4\n']);
    expect(renewals).to.deep.equal(['ended']);
  });

  it('back off before they replace a server whose jobs crash again and again, and fail no other job', async () => {
    const waits: number[] = [];
    await start({ wait: async (ms) => waits.push(ms) });
    for (let round = 0; round < 6; round += 1) {
      const crash = failure(script('kill -SEGV $$'));
      const others = Array.from({ length: 8 }, () => script('echo on'));
      expect((await crash).reason).to.equal('signal');
      const later = Array.from({ length: 8 }, () => script('echo on'));
      for (const { stdout } of await Promise.all([...others, ...later])) expect(stdout).to.equal('on\n');
    }
    expect(waits).to.deep.equal([10, 20, 40, 80, 80]);
    expect(renewals).to.deep.equal(Array(6).fill('crash'));
  });

  it('end with their jobs when they are closed, and run no job afterwards', async () => {
    await start();
    const cwd = await makeTempDir('closing');
    const running = script('echo > begun; sleep 0.2; echo on', { cwd });
    await eventually(() => readdirSync(cwd).length > 0);
    await servers.close();
    expect((await running).stdout).to.equal('on\n');
    expect(serversWith(marker)).to.deep.equal([]);
    expect((await failure(script('echo on'))).reason).to.equal('spawn-failed');
  });

  it('end with all processes of their jobs when the service is killed with SIGKILL', async () => {
    await start();
    const cwd = await makeTempDir('killed');
    const service = spawn(process.execPath, [HELPER, cwd]);
    const pid = await eventually(() => numberIn(join(cwd, 'pid')));
    const parent = Number(/^PPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
    expect([isRunning(pid), isRunning(parent)]).to.deep.equal([true, true]);
    service.kill('SIGKILL');
    await eventually(() => !isRunning(pid) && !isRunning(parent));
  });

  it('refuse a program that has started threads, and one that cannot be prepared or ignores the library', async function () {
    requires(this, 'compiler', hasCompiler());
    const refused: string[] = [];
    const library = await buildThreadLibrary();
    const static_ = `${library}.static`;
    spawnSync('cc', ['-static', '-o', static_, '-x', 'c', '-'], { input: 'int main(void) { return 0; }\n' });
    const onRefused = (_: string, { message }: Error) => void refused.push(message);
    await start({ library: `${FORK_SERVER_LIBRARY}:${library}`, onRefused }, [SH, static_]);
    await servers.close();
    await start({ tools: [{ file: SH, prepare: 'magick PNG', dependencies: [] }], onRefused });
    expect(refused.sort()).to.deep.equal([
      'the program ended before it was ready',
      'the program has started threads',
      'the program lacks a function of its preparation',
    ]);
    expect(servers.serves(SH)).to.equal(false);
    expect((await script('echo on')).stdout).to.equal('on\n');
  });
});

describe('the source of the fork server', () => {
  it('has at most 485 lines, and no finding of cppcheck', async function () {
    expect((await readFile(SOURCE, 'utf8')).split('\n').length - 1).to.be.at.most(485);
    requires(this, 'compiler', hasCompiler());
    const checks = ['--std=c11', '--library=posix,gnu', '--enable=warning,performance,portability'];
    // cppcheck 2.11 and later report that they did not analyse all branches, which is no finding.
    const quiet = ['--quiet', '--suppress=normalCheckLevelMaxBranches'];
    const { status, stderr } = spawnSync('cppcheck', [...checks, ...quiet, '--error-exitcode=1', SOURCE]);
    expect([status, stderr?.toString()]).to.deep.equal([0, '']);
  });
});
