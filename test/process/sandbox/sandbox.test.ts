// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { realpathSync } from 'node:fs';
import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { FORK_SERVER_LIBRARY } from '../../../src/folders.ts';
import { CommandError, type RunCommand } from '../../../src/process/command.ts';
import type { ForkServers } from '../../../src/process/fork-server/servers.ts';
import { createRunner } from '../../../src/process/runner.ts';
import { findSandbox, type SandboxLayers } from '../../../src/process/sandbox/layers.ts';
import { buildBrokenCodec } from '../../helpers/broken-codec.ts';
import { convert, converted, expectSuccess, fixture, jsonOf, sendForm } from '../../helpers/client.ts';
import { startForkServers } from '../../helpers/fork-servers.ts';
import { makeTempDir } from '../../helpers/hooks.ts';
import { runInProcess } from '../../helpers/in-process.ts';
import { startEngine, useOwnServices } from '../../helpers/service.ts';
import { requires } from '../../helpers/skips.ts';
import { eventually, failure, processesWhere, writeScript } from '../../helpers/util.ts';

/** @module Attempts of a compromised codec. Python stands in for it, since it can make any system call. */

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

/** Trial that Python must pass under the allow-list. */
const WRITES = {
  files: {},
  args: ['-I', '-S', '-c', 'open("out", "w").write("image")'],
  result: 'out',
};

const CASES = (['allow-list', 'deny-list'] as const).flatMap((syscalls) =>
  [false, true].map((served) => ({ syscalls, served })),
);

for (const { syscalls, served } of CASES) {
  describe(`sandbox with the ${syscalls} of system calls ${served ? 'in a fork server' : 'by single starts'}`, () => {
    let run: RunCommand;
    let layers: SandboxLayers;
    let servers: ForkServers | undefined;
    let folder: string;

    before(async () => {
      if (served) servers = await startForkServers([PYTHON]);
      const sandbox = await findSandbox({
        tools: [{ path: PYTHON, versionProbe: { args: ['--version'], pattern: /^Python 3/ }, trial: WRITES }],
        readable: [ASSETS],
        limits: { memoryBytes: 512 * MIB, fileBytes: MIB },
        filters: await filtersOf(syscalls),
        folder: await makeTempDir('trial'),
        createTrialRunner: (confine) => createRunner({ ...DEPS, confine, servers }),
      });
      layers = sandbox.layers;
      run = createRunner({ ...DEPS, confine: sandbox.confine, servers });
    });
    after(() => servers?.close());
    beforeEach(async () => {
      folder = join(await makeTempDir('jobs'), 'mine');
      await mkdir(folder);
    });

    /** Returns the output of the program, or how it ended. */
    const attempt = async (program: string, timeoutMs = 60_000): Promise<string> => {
      const isolated = ['-I', '-S', '-c', program];
      return run({ file: PYTHON, args: isolated, cwd: folder, timeoutMs }).then(
        ({ stdout }) => stdout.trim(),
        (error: CommandError) => `${error.reason}: ${error.stderr.trim().split('\n').at(-1)}`,
      );
    };

    it('has every layer', () => {
      expect(layers).to.deep.equal({
        limits: 'setrlimit',
        privileges: 'no-new-privs',
        files: 'landlock',
        network: 'seccomp',
        syscalls,
        processes: 'none',
      });
    });

    it('permits reading and writing in the folder of the job', async () => {
      await writeFile(join(folder, 'in'), 'image');
      expect(await attempt('open("out", "w").write(open("in").read()); print(open("out").read())')).to.equal(
        'image',
      );
      expect(await readdir(folder)).to.have.members(['in', 'out']);
    });

    it('denies running a shell or another program', async () => {
      for (const program of ['/bin/sh', '/usr/bin/env', '/usr/bin/id']) {
        const tried = await attempt(
          `import os; os.execv(${JSON.stringify(program)}, ["x", "-c", "echo ran"])`,
        );
        expect(tried, program).to.match(/^exit: .*(PermissionError|FileNotFoundError)/);
      }
    });

    it('denies running a program that the job has written', async () => {
      const tried = await attempt(
        'import os; open("evil", "w").write("#!/bin/sh\\necho ran"); os.chmod("evil", 0o755); os.execv("./evil", ["evil"])',
      );
      expect(tried).to.match(/^exit: .*(PermissionError|FileNotFoundError)/);
    });

    it('denies reading files of the machine and of other jobs', async () => {
      const neighbour = join(folder, '..', 'neighbour');
      await mkdir(neighbour);
      await writeFile(join(neighbour, 'in'), 'secret');
      await writeFile(join(folder, '..', 'above'), 'secret');
      for (const path of [
        join(neighbour, 'in'),
        '../neighbour/in',
        '../above',
        '/etc/passwd',
        '/etc/hostname',
        '/proc/1/environ',
        process.execPath,
        '/root/.bashrc',
      ]) {
        expect(await attempt(`print(open(${JSON.stringify(path)}, "rb").read(1))`), path).to.match(
          /^exit: .*(PermissionError|FileNotFoundError|NotADirectoryError)/,
        );
      }
    });

    it('denies writing and removing files outside the folder of the job', async () => {
      const neighbour = join(folder, '..', 'neighbour');
      await mkdir(neighbour);
      await writeFile(join(neighbour, 'in'), 'image');
      for (const [what, program] of [
        ['a file of another job', `open(${JSON.stringify(join(neighbour, 'new'))}, "w")`],
        ['a change in one', `open(${JSON.stringify(join(neighbour, 'in'))}, "a")`],
        ['its end', `import os; os.remove(${JSON.stringify(join(neighbour, 'in'))})`],
        ['a file of the project', `open(${JSON.stringify(`${ASSETS}/evil`)}, "w")`],
        ['a file of the system', 'open("/usr/share/evil", "w")'],
        ['a file beside everything', 'open("/evil", "w")'],
        ['a device', 'open("/dev/evil", "w")'],
      ] as const) {
        expect(await attempt(program), what).to.match(/^exit: .*(PermissionError|FileNotFoundError|OSError)/);
      }
      expect(await readdir(neighbour)).to.deep.equal(['in']);
    });

    it('denies sockets of every family, and all network connections', async () => {
      for (const family of ['AF_INET', 'AF_INET6', 'AF_UNIX', 'AF_NETLINK']) {
        const tried = await attempt(`import socket; socket.socket(socket.${family}, socket.SOCK_DGRAM)`);
        expect(tried, family).to.match(/^exit: .*PermissionError/);
      }
      const server = createServer((socket) => socket.end('reached')).listen(0, '127.0.0.1');
      await once(server, 'listening');
      try {
        const { port } = server.address() as { port: number };
        const connect = `import socket; print(socket.create_connection(("127.0.0.1", ${port}), 2).recv(9))`;
        expect(await attempt(connect)).to.match(/^exit: .*(PermissionError|OSError|ConnectionRefusedError)/);
      } finally {
        server.close();
      }
    });

    it('opens no file descriptor except the standard streams', async () => {
      const open =
        'import os\nfor fd in range(3, 20):\n  try: os.fstat(fd); print(fd)\n  except OSError: pass';
      expect(await attempt(open)).to.equal('');
    });

    it('denies signals to the service and to other processes', async () => {
      for (const pid of [process.pid, process.ppid]) {
        // Signal 0 only checks the permission: kill(2).
        expect(await attempt(`import os; os.kill(${pid}, 0)`)).to.match(
          /^exit: .*(PermissionError|ProcessLookupError)/,
        );
      }
    });

    it('limits memory', async () => {
      expect(await attempt(`x = bytearray(${700 * MIB}); print("got it")`)).to.equal('exit: MemoryError');
      expect(await attempt(`x = bytearray(${100 * MIB}); print("got it")`)).to.equal('got it');
    });

    it('limits CPU time independently of wall-clock time', async () => {
      const { reason } = (await run({
        file: PYTHON,
        args: ['-I', '-S', '-c', 'import resource; print(resource.getrlimit(resource.RLIMIT_CPU))'],
        cwd: folder,
        timeoutMs: 59_200,
      }).then(({ stdout }) => ({ reason: stdout.trim() }))) as { reason: string };
      // Soft limit: the time limit, rounded up, of each processor, plus one second. The hard limit (SIGKILL) is one second later.
      const seconds = 60 * availableParallelism();
      expect(reason).to.equal(`(${seconds + 1}, ${seconds + 2})`);
    });

    it('limits the size of a file, and writes no core dump', async () => {
      await attempt(`f = open("big", "wb")\nfor _ in range(100): f.write(b"x" * ${MIB / 16})`);
      expect(await attempt('import os; print(os.path.getsize("big"))')).to.equal(String(MIB));
      await attempt('import os; os.abort()');
      expect(await readdir(folder)).to.deep.equal(['big']);
    });

    it('denies new privileges', async () => {
      const PR_GET_NO_NEW_PRIVS = 39;
      const asked = await attempt(
        `import ctypes; print(ctypes.CDLL(None).prctl(${PR_GET_NO_NEW_PRIVS}, 0, 0, 0, 0))`,
      );
      expect(asked).to.equal('1');
    });

    for (const [how, program] of [
      ['a fork', 'if os.fork() == 0: time.sleep(60)'],
      ['a fork in a session of its own', 'if os.fork() == 0: os.setsid(); time.sleep(60)'],
      ['a double fork', 'if os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0: time.sleep(60)'],
    ] as const) {
      it(`denies ${how}`, async () => {
        const marker = `marker${process.hrtime.bigint()}`;
        const tried = await attempt(`import os, time # ${marker}\n${program}\nprint("forked")`);
        expect(tried).to.match(/^exit: PermissionError/);
        await eventually(() => processesWhere('cmdline', (text) => text.includes(marker)).length === 0);
      });
    }

    it('denies new namespaces', async () => {
      for (const [what, flag] of [
        ['users', 0x1000_0000],
        ['mounts', 0x0002_0000],
        ['processes', 0x2000_0000],
      ] as const) {
        expect(await attempt(`import ctypes; print(ctypes.CDLL(None).unshare(${flag}))`), what).to.equal(
          '-1',
        );
      }
    });

    it('denies changing the priority of other processes, and signals through files', async () => {
      for (const [what, program] of [
        ['limits', `import resource; resource.prlimit(${process.pid}, resource.RLIMIT_NOFILE, (9, 9))`],
        ['its own limits', 'import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (9, 9))'],
        ['scheduling', `import os; os.sched_setscheduler(${process.pid}, os.SCHED_IDLE, os.sched_param(0))`],
        ['processors', `import os; os.sched_setaffinity(${process.pid}, [0])`],
        ['priority', `import os; os.setpriority(os.PRIO_PROCESS, ${process.pid}, 19)`],
        ['owner', `import fcntl; fcntl.fcntl(open("f", "w"), fcntl.F_SETOWN, ${process.pid})`],
        ['signal', 'import fcntl; fcntl.fcntl(open("f", "w"), fcntl.F_SETSIG, 9)'],
      ] as const) {
        expect(await attempt(program), what).to.match(/^exit: .*(PermissionError|not permitted|not allowed)/);
      }
    });

    it('denies changing the permissions, times or names of files', async () => {
      await writeFile(join(folder, 'in'), 'image');
      for (const program of [
        ...['os.chmod("in", 0)', 'os.chown("in", 1, 1)', 'os.utime("in", (1, 1))'],
        ...['os.setxattr("in", "user.a", b"b")', 'os.link("in", "other")'],
        ...['os.symlink("/etc/passwd", "other")', 'os.mkfifo("other")'],
      ]) {
        expect(await attempt(`import os; ${program}`), program).to.match(/^exit: .*PermissionError/);
      }
    });

    it('reports a timeout as different from a failure', async () => {
      const error = await run({
        file: PYTHON,
        args: ['-c', 'while True: pass'],
        cwd: folder,
        timeoutMs: 500,
      }).catch((failure) => failure);
      expect(error).to.be.instanceOf(CommandError).and.include({ reason: 'timeout' });
    });
  });
}

/** Builds a library that reports version 2 of Landlock, which lacks the right to truncate: that of Linux before 6.2. */
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
      const deps = { ...DEPS, library: `${FORK_SERVER_LIBRARY}:${await buildOlderLandlock()}` };
      const [readable, cwd] = [await makeTempDir('readable'), await makeTempDir('job')];
      const file = join(readable, 'policy.xml');
      await writeFile(file, 'policy');
      const { confine, layers } = await findSandbox({
        tools: [{ path: PYTHON, versionProbe: { args: ['--version'], pattern: /^Python 3/ }, trial: WRITES }],
        readable: [ASSETS, readable],
        limits: { memoryBytes: 512 * MIB, fileBytes: MIB },
        filters: await filtersOf(syscalls),
        folder: await makeTempDir('trial'),
        createTrialRunner: (confine) => createRunner({ ...deps, confine }),
      });
      expect(layers).to.include({ files: 'landlock', syscalls });
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
        const args = ['-I', '-S', '-c', program];
        const run = createRunner({ ...deps, confine });
        const tried = await failure(run({ file: PYTHON, args, cwd, timeoutMs: 60_000 }));
        expect(tried.stderr, attempt).to.match(/PermissionError|Function not implemented|Errno 38/);
        expect(await readFile(file, 'utf8'), attempt).to.equal('policy');
      }
      const changes =
        'open("out", "w").write("one"); open("out", "w").write("two"); print(open("out").read())';
      const args = ['-I', '-S', '-c', changes];
      const { stdout } = await createRunner({ ...deps, confine })({
        file: PYTHON,
        args,
        cwd,
        timeoutMs: 60_000,
      });
      expect(stdout).to.equal('two\n');
    });
  }
});

describe('files of single tools', () => {
  it('are readable for the tool that needs them, and for no other tool', async () => {
    const [python, env] = [await makeTempDir('python'), await makeTempDir('env')];
    for (const folder of [python, env]) await writeFile(join(folder, 'file'), 'content');
    const { confine } = await findSandbox({
      tools: [
        {
          path: PYTHON,
          versionProbe: { args: ['--version'], pattern: /^Python 3/ },
          trial: WRITES,
          reads: [python],
        },
        {
          path: '/usr/bin/env',
          versionProbe: { args: ['--version'], pattern: /^env/ },
          trial: WRITES,
          reads: [env],
        },
      ],
      readable: [ASSETS],
      limits: { memoryBytes: 512 * MIB, fileBytes: MIB },
      filters: `${ASSETS}/seccomp`,
      folder: await makeTempDir('trial'),
      createTrialRunner: (confine) => createRunner({ ...DEPS, confine }),
    });
    const read = async (path: string): Promise<string> => {
      const args = ['-I', '-S', '-c', `print(open("${path}").read())`];
      const command = { file: PYTHON, args, cwd: await makeTempDir('job'), timeoutMs: 60_000 };
      return createRunner({ ...DEPS, confine })(command).then(
        ({ stdout }) => stdout.trim(),
        ({ stderr }: CommandError) => (/Permission|No such file/.test(stderr) ? 'refused' : stderr),
      );
    };
    expect(await read(join(python, 'file'))).to.equal('content');
    expect(await read(join(env, 'file'))).to.equal('refused');
  });
});

describe('choice of the seccomp filter', () => {
  /** Number of times that a tool has run. */
  let runs = 0;
  const layersFor = async (...trials: readonly string[]): Promise<SandboxLayers> => {
    runs = 0;
    const sandbox = await findSandbox({
      tools: trials.map((program) => ({
        path: PYTHON,
        versionProbe: { args: ['--version'], pattern: /^Python 3/ },
        trial: { ...WRITES, args: ['-I', '-S', '-c', program] },
      })),
      readable: [ASSETS],
      limits: { memoryBytes: 512 * MIB, fileBytes: MIB },
      filters: `${ASSETS}/seccomp`,
      folder: await makeTempDir('choice'),
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
  const PICTURE = 'open("out", "w").write("image")';

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
    const { confine, layers, refused } = await findSandbox({
      tools: [PYTHON, script].map((path) => ({
        ...{ path, trial: WRITES },
        versionProbe: { args: ['--version'], pattern: /./ },
      })),
      readable: [ASSETS],
      limits: { memoryBytes: 512 * MIB, fileBytes: MIB },
      filters: `${ASSETS}/seccomp`,
      folder: await makeTempDir('trial'),
      createTrialRunner: (confine) => createRunner({ ...DEPS, confine }),
    });
    expect([layers.files, refused]).to.deep.equal(['none', []]);
    const run = createRunner({ ...DEPS, confine });
    const job = { cwd: await makeTempDir('job'), timeoutMs: 60_000 };
    await run({ file: script, args: [], ...job });
    const args = ['-I', '-S', '-c', 'open("/etc/hostname")'];
    expect((await failure(run({ file: PYTHON, args, ...job }))).stderr).to.include('PermissionError');
  });
});

describe('a tool that cannot be a fork server', () => {
  const { start, current } = useOwnServices();

  it('runs without namespaces, and /readyz says so', async function () {
    const thread = join(await makeTempDir('thread'), 'thread.c');
    await writeFile(
      thread,
      '#include <pthread.h>\n#include <unistd.h>\nstatic void *rest(void *p) { for (;;) pause(); return p; }\n' +
        '__attribute__((constructor)) static void begin(void) { pthread_t t; pthread_create(&t, 0, rest, 0); }\n',
    );
    const RSVG_BIN = await buildBrokenCodec('threaded', thread);
    if (!RSVG_BIN) return requires(this, 'compiler', false);
    await start({ RSVG_BIN });
    const { sandbox } = jsonOf(await sendForm(current().base.replace('/api/v1', '/readyz')));
    expect(sandbox).to.include({ files: 'landlock', processes: 'none' });
  });
});
