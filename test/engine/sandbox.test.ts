import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { realpathSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { CommandFailed, type Run } from '../../src/engine/command.ts';
import { createRun } from '../../src/engine/run.ts';
import { findSandbox, type Layers } from '../../src/engine/sandbox.ts';
import { scratch } from '../helpers/hooks.ts';
import { launchers } from '../helpers/launchers.ts';

/** What a broken codec could do from inside: Python stands in for it, since it can try everything. */

const PYTHON = realpathSync('/usr/bin/python3');
const MIB = 1024 ** 2;
const ASSETS = new URL('../../assets', import.meta.url).pathname;

/** Neither way to hide files works where the kernel gives no namespaces, in a chroot for instance, and has no Landlock. */
const CAN_HIDE =
  spawnSync('bwrap', ['--unshare-all', '--ro-bind', '/', '/', 'true']).status === 0 ||
  /landlock/.test(spawnSync('setpriv', ['--help'], { encoding: 'utf8' }).stdout ?? '');

describe('inside the confinement', () => {
  let run: Run;
  let layers: Layers;
  let folder: string;

  before(async () => {
    const deps = { launchers, searchPath: '/usr/bin:/bin:/usr/sbin', policyFolder: ASSETS };
    const sandbox = await findSandbox({
      searchPath: deps.searchPath,
      tools: [{ path: PYTHON, question: { args: ['--version'], answer: /^Python 3/ } }],
      readable: [ASSETS],
      bounds: { memoryBytes: 512 * MIB, fileBytes: MIB },
      filters: `${ASSETS}/seccomp`,
      folder: await scratch('trial'),
      tryOut: (confine) => createRun({ ...deps, confine }),
    });
    layers = sandbox.layers;
    run = createRun({ ...deps, confine: sandbox.confine });
  });
  beforeEach(async () => {
    folder = join(await scratch('jobs'), 'mine');
    await mkdir(folder);
  });

  /** What the program printed, or how it ended. */
  const attempt = async (program: string, timeoutMs = 10_000): Promise<string> => {
    const isolated = ['-I', '-S', '-c', program];
    return run({ file: PYTHON, args: isolated, cwd: folder, timeoutMs }).then(
      ({ stdout }) => stdout.trim(),
      (error: CommandFailed) => `${error.reason}: ${error.stderr.trim().split('\n').at(-1)}`,
    );
  };

  it('is everything that this machine can do: limits, privileges, and mostly files and network', () => {
    expect([layers.limits, layers.privileges]).to.not.include('none');
    expect([layers.files === 'none', layers.network === 'none']).to.deep.equal([!CAN_HIDE, !CAN_HIDE]);
  });

  /** What holds only where files and network can be hidden; elsewhere it is said that it was not proven. */
  const hidden = (what: string, prove: () => Promise<void>): void => {
    it(what, async () => {
      if (CAN_HIDE) return prove();
      console.warn(`NOT PROVEN, since this machine hides no files: ${what}`);
    });
  };

  it('work in the own folder goes on as ever', async () => {
    await writeFile(join(folder, 'in'), 'picture');
    expect(await attempt('open("out", "w").write(open("in").read()); print(open("out").read())')).to.equal(
      'picture',
    );
    expect(await readdir(folder)).to.have.members(['in', 'out']);
  });

  hidden('no shell and no other program can be run', async () => {
    for (const program of ['/bin/sh', '/usr/bin/env', '/usr/bin/id']) {
      const tried = await attempt(`import os; os.execv(${JSON.stringify(program)}, ["x", "-c", "echo ran"])`);
      expect(tried, program).to.match(/^exit: .*(PermissionError|FileNotFoundError)/);
    }
  });

  hidden('no program that was written there can be run', async () => {
    const tried = await attempt(
      'import os; open("evil", "w").write("#!/bin/sh\\necho ran"); os.chmod("evil", 0o755); os.execv("./evil", ["evil"])',
    );
    expect(tried).to.match(/^exit: .*(PermissionError|FileNotFoundError)/);
  });

  hidden('nothing outside the own folder can be read: not the machine’s, not another job’s', async () => {
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

  hidden('nothing outside the own folder can be written or removed', async () => {
    const neighbour = join(folder, '..', 'neighbour');
    await mkdir(neighbour);
    await writeFile(join(neighbour, 'in'), 'picture');
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

  hidden('no socket of any family can be opened, and nobody be reached', async () => {
    for (const family of ['AF_INET', 'AF_INET6', 'AF_UNIX', 'AF_NETLINK']) {
      const tried = await attempt(`import socket; socket.socket(socket.${family}, socket.SOCK_DGRAM)`);
      if (layers.network === 'seccomp') expect(tried, family).to.match(/^exit: .*PermissionError/);
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

  it('nothing is open but the three streams that every program has', async () => {
    const open = 'import os\nfor fd in range(3, 20):\n  try: os.fstat(fd); print(fd)\n  except OSError: pass';
    expect(await attempt(open)).to.equal('');
  });

  hidden('no process outside can be signalled, not the service’s and not any other', async () => {
    for (const pid of [process.pid, process.ppid]) {
      // A signal of number 0 is only asked for: kill(2).
      expect(await attempt(`import os; os.kill(${pid}, 0)`)).to.match(
        /^exit: .*(PermissionError|ProcessLookupError)/,
      );
    }
  });

  it('memory ends where it should', async () => {
    expect(await attempt(`x = bytearray(${700 * MIB}); print("got it")`)).to.equal('exit: MemoryError');
    expect(await attempt(`x = bytearray(${100 * MIB}); print("got it")`)).to.equal('got it');
  });

  it('processor time ends where it should, whatever the clock says', async () => {
    const { reason } = (await run({
      file: PYTHON,
      args: ['-I', '-S', '-c', 'import resource; print(resource.getrlimit(resource.RLIMIT_CPU)[1])'],
      cwd: folder,
      timeoutMs: 4200,
    }).then(({ stdout }) => ({ reason: stdout.trim() }))) as { reason: string };
    expect(reason).to.equal('6'); // seconds: the time limit, rounded up, and one
  });

  it('a file grows no larger than it should, and leaves no core behind', async () => {
    await attempt(`f = open("big", "wb")\nfor _ in range(100): f.write(b"x" * ${MIB / 16})`);
    expect(await attempt('import os; print(os.path.getsize("big"))')).to.equal(String(MIB));
    await attempt('import os; os.abort()');
    expect(await readdir(folder)).to.deep.equal(['big']);
  });

  it('no new privileges are to be had', async () => {
    const status = await attempt(
      'print([l for l in open("/proc/self/status") if l.startswith("NoNewPrivs")])',
    );
    // Where /proc is not even there, it has been tried in vain.
    expect(status).to.match(/NoNewPrivs:\\t1|FileNotFoundError|PermissionError/);
  });

  it('a command that takes too long is told from one that fails', async () => {
    const error = await run({
      file: PYTHON,
      args: ['-c', 'while True: pass'],
      cwd: folder,
      timeoutMs: 500,
    }).catch((failure) => failure);
    expect(error).to.be.instanceOf(CommandFailed).and.include({ reason: 'timeout' });
  });
});
