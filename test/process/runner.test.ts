// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { type Command, CommandError, MAX_OUTPUT_BYTES, type RunCommand } from '../../src/process/command.ts';
import type { ForkServers } from '../../src/process/fork-server/servers.ts';
import { createRunner } from '../../src/process/runner.ts';
import { confinedRunner, LIMITS, SEARCH, startForkServers } from '../helpers/fork-servers.ts';
import { makeTempDir, writeTempFile } from '../helpers/hooks.ts';
import { atTimeLimit, eventually, failure, isRunning, writeScript } from '../helpers/util.ts';

/** Programs that the tests run. A fork server of `sh` runs their scripts. */
const [SH, CAT, ENV, ECHO, PYTHON] = ['/bin/sh', '/bin/cat', '/usr/bin/env', '/bin/echo', '/usr/bin/python3'];
const MODES = ['without confinement', 'by single starts', 'in a fork server'] as const;

for (const mode of MODES) {
  describe(`command runner ${mode}`, () => {
    let servers: ForkServers | undefined;
    let run: RunCommand;
    before(async () => {
      if (mode === 'in a fork server') servers = await startForkServers([SH, CAT, ENV, ECHO, PYTHON]);
      run = mode === 'without confinement' ? createRunner(SEARCH) : confinedRunner(servers);
    });
    after(() => servers?.close());

    const command = async (file: string, more: Partial<Command> = {}): Promise<Command> => ({
      file,
      args: [],
      cwd: await makeTempDir('job'),
      timeoutMs: 60_000,
      ...more,
    });
    const script = async (body: string, more: Partial<Command> = {}): Promise<Command> =>
      command(SH, { ...more, args: [await writeScript('script', body)] });

    it('passes arguments to the program unchanged, including special characters', async () => {
      const words = ['', ' ', "it's", '"', '$(id)', '`id`', 'a\nb', '\\n', '-n', 'ä€😀', '*', '&&', '>x'];
      const program = 'import json, sys; print(json.dumps(sys.argv[1:]))';
      const { stdout } = await run(await command(PYTHON, { args: ['-I', '-c', program, ...words] }));
      expect(JSON.parse(stdout)).to.deep.equal(words);
    });

    it('gives the program no inherited environment variable except PATH', async () => {
      process.env.IMAGEMILL_SECRET = 'secret';
      const printing = await command(ENV);
      const { cwd } = printing;
      const { stdout } = await run(printing);
      delete process.env.IMAGEMILL_SECRET;
      const lines = stdout.trim().split('\n');
      // During `npm run coverage`, Node.js gives its children NODE_V8_COVERAGE.
      const { NODE_V8_COVERAGE: _, ...variables } = Object.fromEntries(
        lines.map((line) => line.split(/=(.*)/, 2)),
      );
      expect(variables).to.deep.equal({
        PATH: '/usr/bin:/bin',
        HOME: '/nonexistent',
        LC_ALL: 'C.UTF-8',
        LANGUAGE: 'en',
        XDG_CONFIG_HOME: '/policy',
        MAGICK_CONFIGURE_PATH: '/policy/ImageMagick',
        MAGICK_THREAD_LIMIT: '1',
        MAGICK_TIME_LIMIT: '61',
        MAGICK_TEMPORARY_PATH: cwd,
        TMPDIR: cwd,
        XDG_CACHE_HOME: cwd,
        GLIBC_TUNABLES: 'glibc.malloc.hugetlb=1',
        MALLOC_MMAP_THRESHOLD_: '33554432',
        MALLOC_TRIM_THRESHOLD_: '67108864',
      });
    });

    it('runs the program in the folder of the job', async () => {
      const cwd = await makeTempDir('here');
      expect((await run(await script('pwd', { cwd }))).stdout).to.equal(`${cwd}\n`);
    });

    it('connects standard input to the given file, and to an empty input without one', async () => {
      const stdin = await writeTempFile('text', 'hello\n');
      expect((await run(await command(CAT, { stdin }))).stdout).to.equal('hello\n');
      expect((await run(await command(CAT))).stdout).to.equal('');
    });

    it('writes standard output to the file that gets it, instead of what was there, and returns none of it', async () => {
      const cwd = await makeTempDir('printing');
      for (const words of ['some words', 'less']) {
        const { stdout } = await run(
          await command(ECHO, { cwd, args: [words], outputs: ['out'], stdout: 'out' }),
        );
        expect([stdout, await readFile(join(cwd, 'out'), 'utf8')]).to.deep.equal(['', `${words}\n`]);
      }
    });

    if (mode !== 'without confinement')
      it('ends a program whose standard output is a file and exceeds its limit, or is a link', async () => {
        const cwd = await makeTempDir('printing');
        const stdin = await writeTempFile('text', 'x'.repeat(10_000));
        const printing = await command(CAT, { cwd, stdin, stdout: 'out' });
        const limited = confinedRunner(servers, { confine: () => ({ ...LIMITS, fileBytes: 4096 }) });
        expect((await failure(limited(printing))).signal).to.equal('SIGXFSZ');
        expect(await readFile(join(cwd, 'out'), 'utf8')).to.equal('x'.repeat(4096));
        await symlink(stdin, join(cwd, 'link'));
        const { stderr } = await failure(run({ ...printing, stdout: 'link' }));
        expect(stderr).to.include('standard output');
      });

    it('reports a missing or non-executable program as spawn-failed', async () => {
      expect((await failure(run(await command('/nonexistent/tool')))).reason).to.equal('spawn-failed');
      expect((await failure(run(await command('/etc/passwd')))).reason).to.equal('spawn-failed');
    });

    it('reports the exit status and standard error of a command that fails', async () => {
      const error = await failure(run(await script('echo why >&2; exit 3')));
      expect(error).to.be.instanceOf(CommandError);
      expect(error).to.include({ reason: 'exit', exitCode: 3, signal: undefined, stderr: 'why\n' });
    });

    it('keeps the first 64 KiB of output, and still reports the exit status', async () => {
      const { stderr } = await run(await script('head -c 10000000 /dev/zero | tr "\\0" x >&2'));
      expect(stderr).to.equal('x'.repeat(MAX_OUTPUT_BYTES));
    });

    it('reports the signal of a command that is killed', async () => {
      const error = await failure(run(await script('kill -SEGV $$')));
      expect([error.reason, error.exitCode, error.signal]).to.deep.equal(['signal', undefined, 'SIGSEGV']);
    });

    it('reports exit status 127 as a signal after abort(3), and as spawn-failed after a linker error', async () => {
      expect((await failure(run(await script('exit 127')))).reason).to.equal('signal');
      for (const words of [
        'tool: error while loading shared libraries: libtool.so.1: cannot open shared object file',
        '/usr/bin/tool: symbol lookup error: undefined symbol: AcquireImage',
        'sh: 1: exec: /opt/tool: not found',
      ]) {
        const bare = await script(`echo '${words}' >&2; exit 127`);
        expect((await failure(run(bare))).reason, words).to.equal('spawn-failed');
      }
    });

    it('waits until its time limit for a program that closes its output and keeps running', async () => {
      const cwd = await makeTempDir('silent');
      await run(await script('exec >&- 2>&-; sleep 0.3; echo > done', { cwd }));
      expect(await readdir(cwd)).to.deep.equal(['done']);
      const endless = await script('exec >&- 2>&-; sleep 60', { timeoutMs: 300 });
      expect((await failure(run(endless))).reason).to.equal('timeout');
    });

    /** Ignores SIGTERM, as does its child, and writes the IDs of both, as seen here, to a file. */
    const STUBBORN = `trap '' TERM INT HUP
sh -c 'trap "" TERM INT HUP; read pid rest < /proc/self/stat; echo $pid >> pids; sleep 60' &
read pid rest < /proc/self/stat; echo $pid >> pids
wait
sleep 60`;
    const pidsIn = async (cwd: string): Promise<number[] | undefined> => {
      const lines = (await readFile(join(cwd, 'pids'), 'utf8').catch(() => '')).trim().split('\n');
      return lines.length === 2 ? lines.map(Number) : undefined;
    };

    it('kills a command and its children at the time limit, even if they ignore SIGTERM', async () => {
      const cwd = await makeTempDir('timeout');
      const attempt = async (timeoutMs: number): Promise<void> => {
        await writeFile(join(cwd, 'pids'), '');
        expect((await failure(run(await script(STUBBORN, { cwd, timeoutMs })))).reason).to.equal('timeout');
      };
      for (const pid of await atTimeLimit(attempt, () => pidsIn(cwd)))
        await eventually(() => !isRunning(pid));
    });

    for (const [what, limits] of [
      ['files', { maxNames: 50, maxBytes: 1e9 }],
      ['bytes', { maxNames: 1e9, maxBytes: 1000 }],
    ] as const) {
      it(`kills a command that writes more ${what} than it may`, async () => {
        const body = 'i=0; while :; do echo 0123456789 > file-$i; i=$((i + 1)); done';
        const error = await failure(run(await script(body, limits)));
        expect(error).to.be.instanceOf(CommandError).with.property('reason', 'files');
      });
    }

    it('kills a command and its children when the client disconnects, even if they ignore SIGTERM', async () => {
      const cwd = await makeTempDir('cancel');
      const client = new AbortController();
      const failing = failure(run(await script(STUBBORN, { cwd, signal: client.signal })));
      const pids = await eventually(() => pidsIn(cwd));
      expect(pids.every(isRunning)).to.equal(true);
      client.abort();
      expect((await failing).reason).to.equal('cancelled');
      for (const pid of pids) await eventually(() => !isRunning(pid));
    });

    it('does not start a command whose client has disconnected already', async () => {
      const touch = await command('/usr/bin/touch', { args: ['touched'], signal: AbortSignal.abort() });
      expect(await failure(run(touch))).to.include({
        reason: 'cancelled',
        message: '/usr/bin/touch was cancelled before its start',
      });
      expect(await readdir(touch.cwd)).to.deep.equal([]);
    });

    it('kills the children that a command leaves behind', async () => {
      const cwd = await makeTempDir('left');
      const leave = 'read pid rest < /proc/self/stat; echo $pid > pid; exec sleep 60';
      const body = `(${leave}) < /dev/null > /dev/null 2>&1 &\nuntil [ -s pid ]; do sleep 0.01; done`;
      await run(await script(body, { cwd }));
      const pid = Number(await readFile(join(cwd, 'pid'), 'utf8'));
      expect(pid).to.be.greaterThan(1);
      await eventually(() => !isRunning(pid));
    });

    if (mode !== 'without confinement') {
      it('opens no file descriptor except the standard streams', async () => {
        const list = 'import os\nfor n in range(3, 256):\n try: os.fstat(n); print(n)\n except OSError: pass';
        expect((await run(await command(PYTHON, { args: ['-I', '-S', '-c', list] }))).stdout).to.equal('');
      });

      it('can read no file if no rule permits one', async () => {
        const secret = await writeTempFile('secret', 'secret');
        const stdin = await writeTempFile('text', 'hello');
        const confined = confinedRunner(servers, { confine: () => ({ ...LIMITS, readable: [] }) });
        for (const path of [secret, '/etc/hostname', '/proc/self/status']) {
          const error = await failure(confined(await command(CAT, { args: [path] })));
          expect(error.stderr, path).to.include('Permission denied');
        }
        expect((await confined(await command(CAT, { stdin }))).stdout).to.equal('hello');
      });

      it('reports spawn-failed when the filter of system calls is missing', async () => {
        const filter = '/nonexistent/filter';
        const confined = confinedRunner(servers, { confine: () => ({ ...LIMITS, filter }) });
        expect(await failure(confined(await command(ECHO)))).to.include({
          reason: 'spawn-failed',
          stderr: 'imagemill: cannot start the job: /nonexistent/filter: No such file or directory\n',
        });
      });

      it('reports spawn-failed when an argument does not fit into a message', async () => {
        const long = await command(ECHO, { args: ['x'.repeat(2 ** 21)] });
        expect((await failure(run(long))).reason).to.equal('spawn-failed');
        expect((await failure(run(await command(ECHO, { args: ['a\0b'] })))).reason).to.equal('spawn-failed');
      });
    }

    if (mode === 'by single starts')
      it('reports spawn-failed, and passes no arguments, when the library of the confinement is missing', async () => {
        const once = createRunner({ ...SEARCH, library: '/nonexistent.so', confine: () => LIMITS });
        const touch = await command('/usr/bin/touch', { args: ['touched'] });
        expect((await failure(once(touch))).reason).to.equal('spawn-failed');
        expect(await readdir(touch.cwd)).to.deep.equal([]);
      });
  });
}
