// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { spawnSync } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { FORK_SERVER_LIBRARY } from '../../../src/folders.ts';
import type { Command, CommandError, RunCommand } from '../../../src/process/command.ts';
import type { ForkServers } from '../../../src/process/fork-server/servers.ts';
import { createRunner, type RunnerDeps } from '../../../src/process/runner.ts';
import {
  findSandbox,
  type Sandbox,
  type SandboxLayers,
  type SandboxOptions,
} from '../../../src/process/sandbox/layers.ts';
import { buildBrokenCodec, buildThreadLibrary } from '../../helpers/broken-codec.ts';
import { convert, converted, expectSuccess, fixture, jsonOf, sendForm } from '../../helpers/client.ts';
import { startForkServers } from '../../helpers/fork-servers.ts';
import { makeTempDir } from '../../helpers/hooks.ts';
import { runInProcess } from '../../helpers/in-process.ts';
import { startEngine, useOwnServices } from '../../helpers/service.ts';
import { requires } from '../../helpers/skips.ts';
import { eventually, failure, processesWhere, writeScript } from '../../helpers/util.ts';

/** @module Attempts of a compromised codec. Python stands in for it, with any system call. */

const PYTHON = realpathSync('/usr/bin/python3');
const MIB = 1024 ** 2;
const ASSETS = new URL('../../../assets', import.meta.url).pathname;

const DEPS = { searchPath: '/usr/bin:/bin:/usr/sbin', policyFolder: ASSETS, library: FORK_SERVER_LIBRARY };

/** Creates a folder with the filters of one list, so that no other can be chosen. */
async function filtersOf(list: string): Promise<string> {
  const folder = await makeTempDir('filters');
  for (const name of (await readdir(`${ASSETS}/seccomp`)).filter((file) => file.startsWith(`${list}.`))) {
    await copyFile(`${ASSETS}/seccomp/${name}`, join(folder, name));
  }
  return folder;
}

const PICTURE = 'open("out", "w").write("image")';
/** Trial that Python must pass under the allow-list. */
const WRITES = { files: {}, args: programArgs(PICTURE), result: 'out' };

function commandOf(program: string, cwd: string, timeoutMs = 60_000): Command {
  return { file: PYTHON, args: programArgs(program), cwd, timeoutMs };
}

/** The tool to confine, with a trial that it passes. */
const TOOL = { path: PYTHON, versionProbe: { args: ['--version'], pattern: /^Python 3/ }, trial: WRITES };

/** Returns a confinement of {@link TOOL}, and how its jobs are run. */
async function confine(
  options: Partial<SandboxOptions> = {},
  deps: Partial<RunnerDeps> = {},
): Promise<{ sandbox: Sandbox; run: RunCommand }> {
  const sandbox = await findSandbox({
    tools: [TOOL],
    readable: [ASSETS],
    limits: { memoryBytes: 512 * MIB, fileBytes: MIB },
    filters: `${ASSETS}/seccomp`,
    folder: await makeTempDir('trial'),
    createTrialRunner: (confine) => createRunner({ ...DEPS, ...deps, confine }),
    ...options,
  });
  return { sandbox, run: createRunner({ ...DEPS, ...deps, confine: sandbox.confine }) };
}

/** Returns the arguments of Python for a program. */
function programArgs(program: string): string[] {
  return ['-I', '-S', '-c', program];
}

const CASES = [
  ...(['allow-list', 'deny-list'] as const).flatMap((syscalls) =>
    [false, true].map((served) => ({ syscalls, served, proven: false })),
  ),
  { syscalls: 'allow-list', served: false, proven: true },
] as const;

for (const { syscalls, served, proven } of CASES) {
  const how = `${served ? 'in a fork server' : 'by single starts'}${proven ? ' without trials' : ''}`;
  describe(`sandbox with the ${syscalls} of system calls ${how}`, () => {
    let run: RunCommand;
    let layers: SandboxLayers;
    let servers: ForkServers | undefined;
    let folder: string;

    before(async () => {
      if (served) servers = await startForkServers([PYTHON]);
      const confined = await confine({ filters: await filtersOf(syscalls), proven }, { servers });
      layers = confined.sandbox.layers;
      run = confined.run;
    });
    after(() => servers?.close());
    beforeEach(async () => {
      folder = join(await makeTempDir('jobs'), 'mine');
      await mkdir(folder);
    });

    /** Returns the output of the program, or how it ended. */
    const attempt = (program: string, timeoutMs = 60_000): Promise<string> =>
      run(commandOf(program, folder, timeoutMs)).then(
        ({ stdout }) => stdout.trim(),
        (error: CommandError) => `${error.reason}: ${error.stderr.trim().split('\n').at(-1)}`,
      );

    it('has every layer', () => {
      const others = {
        limits: 'setrlimit',
        privileges: 'no-new-privs',
        files: 'landlock',
        network: 'seccomp',
      };
      expect(layers).to.deep.equal({ ...others, syscalls, processes: 'none' });
    });

    it('permits reading and writing in the folder of the job', async () => {
      await writeFile(join(folder, 'in'), 'image');
      const copy = 'open("out", "w").write(open("in").read()); print(open("out").read())';
      expect(await attempt(copy)).to.equal('image');
      expect(await readdir(folder)).to.have.members(['in', 'out']);
    });

    /** Attempts for each layer. broken-codec.test.ts has all of them. */
    it('denies what only an attacker needs', async () => {
      const neighbour = join(folder, '..', 'neighbour');
      await mkdir(neighbour);
      await writeFile(join(neighbour, 'in'), 'secret');
      await writeFile(join(folder, 'in'), 'image');
      const marker = `marker${process.hrtime.bigint()}`;
      for (const [what, program] of [
        ['a shell', 'os.execv("/bin/sh", ["sh", "-c", "echo ran"])'],
        ['reading the file of another job', 'open("../neighbour/in")'],
        ['a new file in the folder of another job', 'open("../neighbour/new", "w")'],
        ['a socket', 'socket.create_connection(("127.0.0.1", 9), 2)'],
        ['a signal to the service', `os.kill(${process.pid}, 0)`], // only checks the permission: kill(2)
        ['a process', `os.fork() # ${marker}`],
      ] as const) {
        const tried = await attempt(`import os, socket; ${program}`);
        expect(tried, what).to.match(/^exit: .*(PermissionError|FileNotFoundError|OSError|not permitted)/);
      }
      expect(await readdir(neighbour)).to.deep.equal(['in']);
      await eventually(() => processesWhere('cmdline', (text) => text.includes(marker)).length === 0);
    });

    it('limits memory', async () => {
      expect(await attempt(`x = bytearray(${700 * MIB}); print("got it")`)).to.equal('exit: MemoryError');
      expect(await attempt(`x = bytearray(${100 * MIB}); print("got it")`)).to.equal('got it');
    });

    it('limits CPU time independently of wall-clock time', async () => {
      const limits = await attempt('import resource; print(resource.getrlimit(resource.RLIMIT_CPU))', 59_200);
      // Soft limit: the time limit, rounded up, of each processor, plus one second. The hard limit
      // (SIGKILL) is one second later.
      const seconds = 60 * availableParallelism();
      expect(limits).to.equal(`(${seconds + 1}, ${seconds + 2})`);
    });

    it('limits the size of a file, and writes no core dump', async () => {
      await attempt(`f = open("big", "wb")\nfor _ in range(100): f.write(b"x" * ${MIB / 16})`);
      expect(await attempt('import os; print(os.path.getsize("big"))')).to.equal(String(MIB));
      await attempt('import os; os.abort()');
      expect(await readdir(folder)).to.deep.equal(['big']);
    });

    it('denies new privileges', async () => {
      const PR_GET_NO_NEW_PRIVS = 39;
      const ask = `import ctypes; print(ctypes.CDLL(None).prctl(${PR_GET_NO_NEW_PRIVS}, 0, 0, 0, 0))`;
      expect(await attempt(ask)).to.equal('1');
    });
  });
}

/** Builds a library that reports version 2 of Landlock, without the right to truncate. */
async function buildOlderLandlock(): Promise<string> {
  const source = join(await makeTempDir('landlock'), 'older.c');
  await writeFile(
    source,
    `#define _GNU_SOURCE
#include <dlfcn.h>
long syscall(long call, long a, long b, long c, long d, long e, long f) {
  if (call == 444 && a == 0 && c == 1) return 2;
  return ((long (*)(long, ...))dlsym(RTLD_NEXT, "syscall"))(call, a, b, c, d, e, f);
}
`,
  );
  const library = source.replace('.c', '.so');
  expect(spawnSync('cc', ['-shared', '-fPIC', '-o', library, source]).status).to.equal(0);
  return library;
}

describe('sandbox on a kernel whose Landlock has no right to truncate', () => {
  for (const syscalls of ['allow-list', 'deny-list'] as const) {
    it(`denies emptying files that the tool can read, with the ${syscalls}`, async function () {
      requires(this, 'compiler', spawnSync('cc', ['--version']).status === 0);
      const [readable, cwd] = [await makeTempDir('readable'), await makeTempDir('job')];
      const file = join(readable, 'policy.xml');
      await writeFile(file, 'policy');
      const { sandbox, run } = await confine(
        { readable: [ASSETS, readable], filters: await filtersOf(syscalls) },
        { library: `${FORK_SERVER_LIBRARY}:${await buildOlderLandlock()}` },
      );
      expect(sandbox.layers).to.include({ files: 'landlock', syscalls });
      const attempts = [
        'os.open(path, os.O_RDONLY | os.O_TRUNC)',
        'os.open(path, 3 | os.O_TRUNC)',
        'os.open(path, os.O_WRONLY | os.O_TRUNC)',
        'os.truncate(path, 1)',
        ...(process.arch === 'x64' ? ['libc.syscall(2, path.encode(), os.O_TRUNC) == -1 and fail()'] : []),
        'libc.syscall(437, -100, path.encode(), struct.pack("QQQ", os.O_TRUNC, 0, 0), 24) == -1 and fail()',
      ];
      for (const attempt of attempts) {
        const program = `import ctypes, os, struct
libc = ctypes.CDLL(None, use_errno=True)
def fail(): raise OSError(ctypes.get_errno(), 'refused')
path = ${JSON.stringify(file)}
${attempt}`;
        const tried = await failure(run(commandOf(program, cwd)));
        expect(tried.stderr, attempt).to.match(/PermissionError|Function not implemented|Errno 38/);
        expect(await readFile(file, 'utf8'), attempt).to.equal('policy');
      }
      const write = (text: string) => `open("out", "w").write("${text}")`;
      const changes = `${write('one')}; ${write('two')}; print(open("out").read())`;
      expect((await run(commandOf(changes, cwd))).stdout).to.equal('two\n');
    });
  }
});

describe('files of single tools', () => {
  it('are readable for the tool that needs them, and for no other tool', async () => {
    const [python, env] = [await makeTempDir('python'), await makeTempDir('env')];
    for (const folder of [python, env]) await writeFile(join(folder, 'file'), 'content');
    const other = { ...TOOL, path: '/usr/bin/env', versionProbe: { args: ['--version'], pattern: /^env/ } };
    const { run } = await confine({
      tools: [
        { ...TOOL, reads: [python] },
        { ...other, reads: [env] },
      ],
    });
    const read = async (path: string): Promise<string> =>
      run(commandOf(`print(open("${path}").read())`, await makeTempDir('job'))).then(
        ({ stdout }) => stdout.trim(),
        ({ stderr }: CommandError) => (/Permission|No such file/.test(stderr) ? 'refused' : stderr),
      );
    expect(await read(join(python, 'file'))).to.equal('content');
    expect(await read(join(env, 'file'))).to.equal('refused');
  });
});

describe('choice of the seccomp filter', () => {
  /** Number of times that a tool has run. */
  let runs = 0;
  const layersFor = async (...trials: readonly string[]): Promise<SandboxLayers> => {
    runs = 0;
    const { sandbox } = await confine({
      tools: trials.map((program) => ({ ...TOOL, trial: { ...WRITES, args: programArgs(program) } })),
      createTrialRunner: (confine) => {
        const run = createRunner({ ...DEPS, confine });
        return (command) => {
          if (command.file === PYTHON) runs += 1;
          return run(command);
        };
      },
    });
    return sandbox.layers;
  };

  it('selects the deny-list when a tool makes a system call that is not on the allow-list', async () => {
    const waits = `import signal; signal.setitimer(signal.ITIMER_REAL, 60); ${PICTURE}`;
    expect((await layersFor(PICTURE, waits)).syscalls).to.equal('deny-list');
  });

  it('keeps the allow-list when a tool also fails without a filter', async () => {
    expect((await layersFor(PICTURE, 'raise SystemExit(1)')).syscalls).to.equal('allow-list');
  });

  it('runs each tool only once when all of them convert under the strongest layers', async () => {
    expect(await layersFor(PICTURE, PICTURE)).to.include({ limits: 'setrlimit', syscalls: 'allow-list' });
    expect(runs).to.equal(2);
  });
});

describe('a tool that cannot be confined', () => {
  const { start, current } = useOwnServices();
  const sandboxOf = async () => jsonOf(await sendForm(current().base.replace('/api/v1', '/readyz'))).sandbox;
  const draw = async () =>
    convert(current().base, await fixture('scene.svg'), { format: 'png' }, 'scene.svg');

  it('is refused with a sentence, its formats are not offered, and the others stay confined', async function () {
    const RSVG_BIN = await buildBrokenCodec('static', '-static');
    if (!RSVG_BIN) return requires(this, 'compiler', false);
    await start({ RSVG_BIN });
    const sentence = `${RSVG_BIN} cannot be confined, and is not used (no SVG)`;
    expect(current().logged.filter(({ msg }) => String(msg).startsWith(sentence))).to.have.length(1);
    expect(await sandboxOf()).to.include({ files: 'landlock', network: 'seccomp', syscalls: 'allow-list' });
    expect(jsonOf(await sendForm(`${current().base}/formats`)).input)
      .to.include('png')
      .and.not.include('svg');
    expect((await draw()).status).to.equal(415);
    await converted(current().base, await fixture('scene.png'));
    const { lines } = await runInProcess(['doctor', '--json'], {
      env: { RSVG_BIN, TEMP_DIR: await makeTempDir('doctor') },
    });
    const { checks } = JSON.parse(lines.join('\n'));
    const row = (name: string) => checks.find((check: { name: string }) => check.name === name);
    expect(row('rsvg-convert')).to.include({ state: 'warn' });
    expect(row('rsvg-convert').found).to.include(sentence);
    expect(row('sandbox').state).to.equal('ok');
  });

  it('is used, as every other tool without confinement, with SANDBOX=off', async function () {
    const RSVG_BIN = await buildBrokenCodec('static', '-static');
    if (!RSVG_BIN) return requires(this, 'compiler', false);
    await start({ RSVG_BIN, SANDBOX: 'off' });
    await expectSuccess(draw());
    expect(await sandboxOf()).to.include({ files: 'none' });
  });

  it('ends the start with a sentence if it is ImageMagick', async function () {
    const program = join(await makeTempDir('magick'), 'magick');
    await writeFile(
      `${program}.c`,
      '#include <stdio.h>\nint main(void) { puts("Version: ImageMagick 6.9.11-60 Q16\\n  PNG* PNG rw+ x"); }\n',
    );
    requires(this, 'compiler', spawnSync('cc', ['-static', '-o', program, `${program}.c`]).status === 0);
    const error = await startEngine({ MAGICK_BIN: program }).catch(({ message }: Error) => message);
    expect(error).to.match(new RegExp(`^${program} cannot be confined, and is not used`));
  });

  it('gets the limits of a script if it is one, and the others stay confined', async () => {
    const script = await writeScript('rsvg', 'cat /etc/hostname');
    const { sandbox, run } = await confine({
      tools: [PYTHON, script].map((path) => ({
        path,
        trial: WRITES,
        versionProbe: { args: ['--version'], pattern: /./ },
      })),
    });
    expect([sandbox.layers.files, sandbox.refused]).to.deep.equal(['none', []]);
    const reading = commandOf('open("/etc/hostname")', await makeTempDir('job'));
    await run({ ...reading, file: script, args: [] });
    expect((await failure(run(reading))).stderr).to.include('PermissionError');
  });
});

describe('a tool that cannot be a fork server', () => {
  const { start, current } = useOwnServices();

  it('runs without namespaces, and /readyz says so', async function () {
    const RSVG_BIN = await buildBrokenCodec('threaded', '-Wl,--no-as-needed', await buildThreadLibrary());
    if (!RSVG_BIN) return requires(this, 'compiler', false);
    await start({ RSVG_BIN });
    const { sandbox } = jsonOf(await sendForm(current().base.replace('/api/v1', '/readyz')));
    expect(sandbox).to.include({ files: 'landlock', processes: 'none' });
  });
});
