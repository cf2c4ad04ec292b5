import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { readdir, readFile, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect } from 'chai';
import { type Command, MAX_OUTPUT_BYTES } from '../../../src/process/command.ts';
import { createLaunchers, type Launchers } from '../../../src/process/launcher/launcher.ts';
import type { Isolation } from '../../../src/process/launcher/shell.ts';
import { createRunner, measureUsage } from '../../../src/process/runner.ts';
import { CAN_ISOLATE } from '../../helpers/can-isolate.ts';
import { failure } from '../../helpers/failure.ts';
import { makeTempDir } from '../../helpers/hooks.ts';
import { requires } from '../../helpers/skips.ts';
import { atTimeLimit, eventually, isRunning, writeScript } from '../../helpers/util.ts';

const PYTHON = await realpath('/usr/bin/python3');

describe('launchers', () => {
  let home: string;
  let launchers: Launchers;
  beforeEach(async () => {
    home = await makeTempDir('launchers');
    launchers = createLaunchers(async () => home);
  });
  afterEach(() => launchers.close());

  const run = async (file: string, more: Partial<Command> = {}) =>
    createRunner({ launchers, searchPath: '/usr/bin:/bin', policyFolder: '/nonexistent' })({
      file,
      args: [],
      cwd: await makeTempDir('job'),
      timeoutMs: 10_000,
      ...more,
    });
  const parent = async () => (await run(await writeScript('parent', 'echo $PPID'))).stdout;

  it('reuse a launcher for the next program, and start as many launchers as programs run at once', async () => {
    expect(new Set([await parent(), await parent(), await parent()]).size).to.equal(1);
    const place = await makeTempDir('meeting');
    const wait = `echo > ${place}/$$; until [ $(ls ${place} | wc -l) = 3 ]; do sleep 0.01; done`;
    const meets = await writeScript('meets', `${wait}; echo $PPID`);
    const met = await Promise.all([run(meets), run(meets), run(meets)]);
    expect(new Set(met.map(({ stdout }) => stdout)).size).to.equal(3);
    expect(await readdir(home)).to.have.length(3);
  });

  it('give a program three open files and none of the files of the launcher', async () => {
    const list = 'import os\nfor n in range(256):\n try: os.fstat(n); print(n)\n except OSError: pass';
    const args = ['-I', '-S', '-c', list];
    // The parent of the tests may have left inheritable descriptors open.
    const { stdout: open } = spawnSync(PYTHON, args, { encoding: 'utf8' });
    expect(open).to.match(/^0\n1\n2\n/);
    expect((await run(PYTHON, { args })).stdout).to.equal(open);
  });

  it('pass every argument to a program unchanged, including special characters', async () => {
    const words = ['', ' ', "it's", '"', '$(id)', '`id`', 'two\nlines', '\\n', '-n', 'ä€😀', '*', '&&', '>x'];
    const { stdout } = await run(PYTHON, { args: ['-c', 'import sys; print(sys.argv[1:])', ...words] });
    expect(stdout).to.equal((await run(PYTHON, { args: ['-c', `print(${JSON.stringify(words)})`] })).stdout);
  });

  it('keep nothing of one program for the next: neither its folder, nor its limits, nor its output', async () => {
    const limits = ['-v 4000000', '-n 32'];
    const script = await writeScript('tells', 'pwd; env; ulimit -n');
    const bare = { launchers, searchPath: '/usr/bin:/bin', policyFolder: '/nonexistent' };
    const [cwd, timeoutMs] = [await makeTempDir('job'), 10_000];
    const limited = createRunner({ ...bare, confine: () => ({ limits }), environment: { SEEN: 'once' } });
    const before = (await limited({ file: script, args: [], cwd, timeoutMs })).stdout;
    expect(before)
      .to.match(/SEEN=once/)
      .and.match(/\n32\n$/);
    const after = (await run(script)).stdout;
    expect(after).to.not.include('SEEN').and.not.include(cwd);
    expect(after).to.not.match(/\n32\n$/);
  });

  it('report a missing input file as the exit of the program, and keep working', async () => {
    expect((await failure(run('/bin/cat', { stdin: '/nonexistent/in' }))).reason).to.equal('exit');
    expect((await run('/bin/echo', { args: ['on'] })).stdout).to.equal('on\n');
  });

  it('keep working after the temporary folder was removed', async () => {
    await parent();
    await rm(home, { recursive: true });
    home = await makeTempDir('launchers-anew');
    expect((await run('/bin/echo', { args: ['on'] })).stdout).to.equal('on\n');
  });

  it('remove the folder of a launcher that was killed before close() resolves', async () => {
    await failure(run('/bin/sleep', { args: ['60'], timeoutMs: 1 }));
    await launchers.close();
    expect(readdirSync(home)).to.deep.equal([]);
  });

  it('replace a launcher that was killed, kill its program, and report EAGAIN for it', async () => {
    const cwd = await makeTempDir('killed');
    const kills = await writeScript('kills', `echo $$ > ${cwd}/pid; kill -9 $PPID; sleep 60`);
    const error = await failure(run(kills, { cwd }));
    expect(error.reason).to.equal('spawn-failed');
    expect(error.cause).to.include({ code: 'EAGAIN' });
    const pid = Number(await readFile(join(cwd, 'pid'), 'utf8'));
    await eventually(() => !isRunning(pid));
    expect((await run('/bin/echo', { args: ['on'] })).stdout).to.equal('on\n');
  });

  it('report EAGAIN when a launcher is killed while it starts', async () => {
    const file = `/proc/${process.pid}/task/${process.pid}/children`;
    const children = async () => (await readFile(file, 'utf8')).split(' ').filter(Boolean).map(Number);
    const before = await children();
    const running = failure(run('/bin/sleep', { args: ['60'] }));
    let born: number | undefined;
    while (born === undefined) born = (await children()).find((pid) => !before.includes(pid));
    process.kill(born, 'SIGKILL');
    expect((await running).cause).to.include({ code: 'EAGAIN' });
  });

  it('release the output of a program that has ended', async () => {
    setFlagsFromString('--expose-gc');
    const collect: () => void = runInNewContext('gc');
    const pipes = await Promise.all(Array.from({ length: 5 }, once));
    await eventually(() => {
      collect();
      return pipes.every((pipe) => pipe.deref() === undefined);
    });

    async function once(): Promise<WeakRef<object>> {
      const { stdout, stderr, exit } = await launchers.spawn('/bin/echo', ['something'], {
        cwd: '/',
        env: {},
        stdin: '/dev/null',
      });
      stdout.resume();
      stderr.resume();
      expect(await exit).to.deep.equal({ exitCode: 0 });
      return new WeakRef(stdout);
    }
  });

  it('remove the folder of an idle launcher that was killed', async () => {
    process.kill(Number(await parent()), 'SIGKILL');
    await eventually(async () => {
      const started = await parent().catch(() => undefined); // its exit may not have been noticed yet
      return started && (await readdir(home)).length === 1;
    });
  });

  it('start no program after close(), and end the launchers that are starting', async () => {
    const starting = failure(run('/bin/echo'));
    await launchers.close();
    expect(await starting).to.include({ reason: 'spawn-failed' });
    expect(await readdir(home)).to.deep.equal([]);
    expect(await failure(run('/bin/echo'))).to.include({ reason: 'spawn-failed' });
    expect(await readdir(home)).to.deep.equal([]);
  });

  it('leave no process and no folder after close()', async () => {
    const pid = Number(await parent());
    await launchers.close();
    expect(isRunning(pid)).to.equal(false);
    expect(await readdir(home)).to.deep.equal([]);
  });
});

/** Shell code of a process that a program leaves behind: writes its process ID to `pid`, then sleeps. */
const LEAVES = 'read pid rest < /proc/self/stat; echo $pid > pid; exec sleep 60';
const QUIET = '< /dev/null > /dev/null 2>&1';
const ESCAPES: Readonly<Record<string, string>> = {
  'a child': `(${LEAVES}) &`,
  'a child that has closed its output': `(${LEAVES}) ${QUIET} &`,
  'a grandchild': `( (${LEAVES}) ${QUIET} & )`,
};
const BY_SESSION: Readonly<Record<string, string>> = {
  'a child in its own session': `setsid sh -c '${LEAVES}' ${QUIET} &`,
  'a grandchild in its own session': `(setsid sh -c '${LEAVES}' ${QUIET} &)`,
};
const ISOLATIONS: readonly (readonly [Isolation, string, Readonly<Record<string, string>>])[] = [
  ['none', 'a launcher', ESCAPES],
  ['namespace', 'a launcher in its own namespaces', { ...ESCAPES, ...BY_SESSION }],
];

const SLEEPING = new URL('../../helpers/sleeping-launcher.ts', import.meta.url).pathname;

for (const [isolation, name, escapes] of ISOLATIONS) {
  describe(name, () => {
    let launchers: Launchers;
    let home: string;
    let cwd: string;
    before(async () => {
      home = await makeTempDir('home');
      launchers = createLaunchers(async () => home, isolation);
    });
    beforeEach(async () => {
      cwd = await makeTempDir('job');
    });
    after(() => launchers.close());

    const run = async (body: string, more: Partial<Command> = {}) =>
      createRunner({ launchers, searchPath: '/usr/bin:/bin', policyFolder: '/nonexistent' })({
        file: await writeScript('tool', body),
        args: [],
        cwd,
        timeoutMs: 10_000,
        ...more,
      });
    const written = async (name: string): Promise<number> => Number(await readFile(join(cwd, name), 'utf8'));
    /** Runs a program until its time limit. Returns the process ID that it has written to `pid`. */
    const outlasted = (body: string): Promise<number> =>
      atTimeLimit(
        async (timeoutMs) => {
          expect(await failure(run(body, { timeoutMs }))).to.include({ reason: 'timeout' });
        },
        async () => (await written('pid').catch(() => 0)) || undefined,
      );
    const prove = (title: string, test: () => Promise<void>): void => {
      it(title, async function () {
        requires(this, 'process-namespace', isolation === 'none' || CAN_ISOLATE);
        await test();
      });
    };

    for (const [what, body] of Object.entries(escapes)) {
      prove(`kills ${what} when the program ends, and runs the next`, async () => {
        await run(`${body}\nuntil [ -s pid ]; do sleep 0.01; done; echo $pid`);
        const pid = await written('pid');
        expect(pid).to.be.greaterThan(1);
        if (isolation === 'namespace') expect(isRunning(pid)).to.equal(false);
        else await eventually(() => !isRunning(pid));
        expect((await run('echo next')).stdout).to.equal('next\n');
      });

      prove(`kills ${what} when the time limit of the program expires`, async () => {
        const pid = await outlasted(`${body}\nsleep 60`);
        await eventually(() => !isRunning(pid));
      });
    }

    prove('ends with its program when the server is killed with SIGKILL', async () => {
      const sleeps = await writeScript(
        'sleeps',
        'read pid rest < /proc/self/stat; echo $pid > pid; exec sleep 60',
      );
      const server = spawn(process.execPath, [SLEEPING, isolation, cwd, sleeps]);
      const pid = await eventually(async () => (await written('pid').catch(() => 0)) || undefined);
      const parent = Number(/^PPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
      expect([isRunning(pid), isRunning(parent)]).to.deep.equal([true, true]);
      server.kill('SIGKILL');
      await eventually(() => !isRunning(pid) && !isRunning(parent));
    });

    prove('kills a program that ignores SIGTERM', async () => {
      const ignores =
        "trap '' TERM INT HUP; read pid rest < /proc/self/stat; echo $pid > pid; while :; do sleep 1; done";
      const pid = await outlasted(ignores);
      await eventually(() => !isRunning(pid));
    });

    prove('waits until its time limit for a program that closes its output and keeps running', async () => {
      await run('exec >&- 2>&-; sleep 0.3; echo > done');
      expect(await readdir(cwd)).to.deep.equal(['done']);
      const goesOn = 'exec >&- 2>&-; read pid rest < /proc/self/stat; echo $pid > pid; exec sleep 60';
      const pid = await outlasted(goesOn);
      await eventually(() => !isRunning(pid));
    });

    prove(
      'keeps 64 KiB of the output of a program that prints endlessly, and kills it at its time limit',
      async () => {
        let stderr = '';
        const attempt = async (timeoutMs: number): Promise<void> => {
          const error = await failure(run('exec yes >&2', { timeoutMs }));
          expect(error).to.include({ reason: 'timeout' });
          stderr = error.stderr;
        };
        await atTimeLimit(attempt, async () => stderr.length >= MAX_OUTPUT_BYTES || undefined);
        expect(stderr).to.have.length(MAX_OUTPUT_BYTES);
      },
    );

    prove('reports the exit code and the signal of a program in two fields', async () => {
      const exited = await failure(run('exit 3'));
      expect([exited.reason, exited.exitCode, exited.signal]).to.deep.equal(['exit', 3, undefined]);
      const killed = await failure(run('kill -SEGV $$'));
      expect([killed.reason, killed.exitCode, killed.signal]).to.deep.equal(['signal', undefined, 'SIGSEGV']);
    });

    prove('reports a program that does not exist', async () => {
      expect(await failure(run('', { file: '/nonexistent/tool' }))).to.include({ reason: 'spawn-failed' });
    });

    prove('reports the resident memory of its program', async () => {
      const { file, env } = { file: PYTHON, env: {} };
      const code = 'x = bytearray(100 * 2**20); import sys; print("there", flush=True); sys.stdin.read()';
      const launched = await launchers.spawn(file, ['-I', '-S', '-c', code], {
        cwd,
        env,
        stdin: 'pipe',
        readyMarker: ' ',
      });
      launched.stderr.resume();
      await eventually(() => measureUsage(launched.pid).memoryBytes > 100 * 1024 ** 2);
      expect(measureUsage(launched.pid).memoryBytes).to.be.lessThan(200 * 1024 ** 2);
      launched.stdout.resume();
      launched.stdin?.end();
      await launched.exit;
    });
  });
}

describe('launchers of a process that has reached a limit', () => {
  const STARVED = new URL('../../helpers/starved-launchers.ts', import.meta.url).pathname;
  /** User ID without other processes. Only root can start processes as this user. */
  const USER = process.getuid?.() || 61_234;
  const AS_USER =
    process.getuid?.() === 0
      ? (['setpriv', `--reuid=${USER}`, `--regid=${USER}`, '--clear-groups', '--'] as const)
      : (['env'] as const);
  const rows = [
    ['nproc', 'EAGAIN'],
    ['nofile', 'EMFILE'],
  ] as const;
  for (const [limit, code] of rows) {
    it(`report ${code} at the limit of ${limit}, leave no folder, and work again when the limit is lifted`, async () => {
      const child = spawn(process.execPath, [STARVED, String(USER)], { stdio: ['pipe', 'pipe', 'inherit'] });
      const ended = once(child, 'exit');
      const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
      const next = async (): Promise<string> => (await lines.next()).value ?? 'the process has ended';
      /** Sets the limit of the process and of its launchers, as their user. */
      const setLimit = (value: string): void => {
        const children = `/proc/${child.pid}/task/${child.pid}/children`;
        for (const pid of [String(child.pid), ...readFileSync(children, 'utf8').split(' ').filter(Boolean)]) {
          const { status, stderr } = spawnSync(AS_USER[0], [
            ...AS_USER.slice(1),
            'prlimit',
            '--pid',
            pid,
            `--${limit}=${value}:`,
          ]);
          expect(status, String(stderr)).to.equal(0);
        }
      };
      after(() => child.kill('SIGKILL'));
      const home = await next();
      setLimit('1');
      child.stdin.write('\n');
      const short = `spawn-failed ${code}`;
      expect(JSON.parse(await next())).to.deep.equal([short, short]);
      expect(await readdir(home)).to.deep.equal([]);
      setLimit('4096');
      child.stdin.write('\n');
      expect(JSON.parse(await next())).to.deep.equal(['ran', 'ran']);
      expect(await ended).to.deep.equal([0, null]);
    });
  }
});
