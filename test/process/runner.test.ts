import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { type Command, CommandError, MAX_OUTPUT_BYTES, type RunCommand } from '../../src/process/command.ts';
import { createRunner } from '../../src/process/runner.ts';
import { startWorker } from '../../src/process/workers/worker.ts';
import { failure } from '../helpers/failure.ts';
import { fakeWorker } from '../helpers/fake-worker.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { launchers } from '../helpers/launchers.ts';
import { atTimeLimit, eventually, isRunning, writeScript } from '../helpers/util.ts';

const SEARCH = { launchers, searchPath: '/usr/bin:/bin', policyFolder: '/policy' };
const run = createRunner(SEARCH);
const command = async (file: string, more: Partial<Command> = {}): Promise<Command> => ({
  file,
  args: [],
  cwd: await makeTempDir('job'),
  timeoutMs: 10_000,
  ...more,
});

describe('command runner', () => {
  it('passes arguments to the program unchanged, without shell expansion', async () => {
    const { stdout } = await run(await command('/bin/echo', { args: ['$HOME', '; ls', '*', "'"] }));
    expect(stdout).to.equal("$HOME ; ls * '\n");
  });

  it('gives the program no inherited environment variable except PATH', async () => {
    process.env.IMAGEMILL_SECRET = 'secret';
    const { cwd, ...rest } = await command('/usr/bin/env');
    const { stdout } = await run({ cwd, ...rest });
    delete process.env.IMAGEMILL_SECRET;
    // During `npm run coverage`, Node.js gives its children NODE_V8_COVERAGE.
    const { NODE_V8_COVERAGE: _, ...variables } = Object.fromEntries(
      stdout
        .trim()
        .split('\n')
        .map((line) => line.split(/=(.*)/, 2)),
    );
    expect(variables).to.deep.equal({
      PATH: '/usr/bin:/bin',
      HOME: '/nonexistent',
      LC_ALL: 'C.UTF-8',
      XDG_CONFIG_HOME: '/policy',
      MAGICK_CONFIGURE_PATH: '/policy/ImageMagick',
      MAGICK_THREAD_LIMIT: '1',
      MAGICK_TIME_LIMIT: '11',
      MAGICK_TEMPORARY_PATH: cwd,
      TMPDIR: cwd,
      XDG_CACHE_HOME: cwd,
      GLIBC_TUNABLES: 'glibc.malloc.hugetlb=1',
      MALLOC_MMAP_THRESHOLD_: '33554432',
      MALLOC_TRIM_THRESHOLD_: '67108864',
    });
  });

  it('connects standard input to the given file, and to an empty input without one', async () => {
    const cwd = await makeTempDir('stdin');
    const path = await writeScript('text', 'hello', cwd);
    expect((await run(await command('/bin/cat', { stdin: path }))).stdout).to.equal('#!/bin/sh\nhello\n');
    expect((await run(await command('/bin/cat'))).stdout).to.equal('');
  });

  it('reports a missing or non-executable program as spawn-failed', async () => {
    expect((await failure(run(await command('/nonexistent/tool')))).reason).to.equal('spawn-failed');
    expect((await failure(run(await command('/etc/passwd')))).reason).to.equal('spawn-failed');
  });

  it('reports spawn-failed when a program or file of the sandbox is missing', async () => {
    const confine = () => ({ fds: { 7: '/nonexistent/filter' } });
    const runInSandbox = createRunner({ ...SEARCH, confine });
    expect((await failure(runInSandbox(await command('/bin/true')))).reason).to.equal('spawn-failed');
  });
});

/** Runs the same shell script in a new process, and in a worker of each version. */
const MODES: Readonly<Record<string, RunCommand>> = {
  'a new process': run,
  'a worker of version 6': there(6),
  'a worker of version 7': there(7),
};

function there(major: 6 | 7): RunCommand {
  return async (given) => {
    const home = await makeTempDir('home');
    const magick = await fakeWorker(major);
    const worker = await startWorker({ ...SEARCH, home, magick, lifetimeMs: 60_000 });
    try {
      return await worker.run({ ...given, args: [`. ${given.file}`, 'output'] });
    } finally {
      await worker.end();
    }
  };
}

for (const [mode, perform] of Object.entries(MODES)) {
  describe(`command runner in ${mode}`, () => {
    it('reports the exit status and standard error of a command that fails', async () => {
      const error = await failure(perform(await command(await writeScript('fails', 'echo why >&2; exit 3'))));
      expect(error).to.be.instanceOf(CommandError);
      expect([error.reason, error.stderr]).to.deep.equal(['exit', 'why\n']);
      expect(error.message).to.include('3');
    });

    it('keeps the first 64 KiB of output, and still reports the exit status', async () => {
      const chatty = await writeScript('chatty', 'head -c 10000000 /dev/zero | tr "\\0" x >&2');
      const { stderr } = await perform(await command(chatty));
      expect(stderr).to.equal('x'.repeat(MAX_OUTPUT_BYTES));
    });

    it('reports the signal of a command that is killed', async () => {
      const error = await failure(perform(await command(await writeScript('crashes', 'kill -SEGV $$'))));
      expect(error.reason).to.equal('signal');
    });

    it('reports exit status 127 as a signal after abort(3), and as spawn-failed after an error of the dynamic linker', async () => {
      const aborted = await failure(perform(await command(await writeScript('aborts', 'exit 127'))));
      expect(aborted.reason).to.equal('signal');
      for (const words of [
        'tool: error while loading shared libraries: libtool.so.1: cannot open shared object file',
        '/usr/bin/tool: symbol lookup error: undefined symbol: AcquireImage',
        'sh: 1: exec: /opt/tool: not found',
        'setpriv: failed to execute /opt/tool: No such file or directory',
        'setpriv: activate capabilities: Operation not permitted',
      ]) {
        const bare = await writeScript('bare', `echo '${words}' >&2; exit 127`);
        expect((await failure(perform(await command(bare)))).reason, words).to.equal('spawn-failed');
      }
    });

    /** Writes a tool that ignores SIGTERM, starts a child that does, too, and writes both process IDs to a file. */
    const stubborn = (folder: string) =>
      writeScript(
        'stubborn',
        `trap '' TERM INT HUP\nsh -c 'trap "" TERM INT HUP; sleep 60' &\necho "$$ $!" > ${folder}/pids\nwait\nsleep 60`,
      );
    const pidsIn = async (cwd: string): Promise<number[] | undefined> => {
      const text = await readFile(join(cwd, 'pids'), 'utf8').catch(() => '');
      return text.endsWith('\n') ? text.trim().split(' ').map(Number) : undefined;
    };

    it('kills a command and its children at the time limit, even if they ignore SIGTERM', async () => {
      const cwd = await makeTempDir('timeout');
      const attempt = async (timeoutMs: number): Promise<void> => {
        const error = await failure(perform(await command(await stubborn(cwd), { cwd, timeoutMs })));
        expect(error.reason).to.equal('timeout');
      };
      for (const pid of await atTimeLimit(attempt, () => pidsIn(cwd)))
        await eventually(() => !isRunning(pid));
    });

    it('kills a command and its children when the client disconnects, even if they ignore SIGTERM', async () => {
      const cwd = await makeTempDir('cancel');
      const client = new AbortController();
      const failing = failure(perform(await command(await stubborn(cwd), { cwd, signal: client.signal })));
      const pids = await eventually(() => pidsIn(cwd));
      expect(pids.every(isRunning)).to.equal(true);
      client.abort();
      expect((await failing).reason).to.equal('cancelled');
      for (const pid of pids) await eventually(() => !isRunning(pid));
    });
  });
}
