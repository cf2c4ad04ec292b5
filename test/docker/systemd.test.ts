/** @module Tests of the systemd unit with systemd-analyze and with its system call filter. */
import { spawnSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { loadConfig } from '../../src/tables/config.ts';
import { convert, fixture, sendForm } from '../helpers/client.ts';
import { makeTempDir, writeTempFile } from '../helpers/hooks.ts';
import { PROJECT } from '../helpers/markdown.ts';
import { startProcess } from '../helpers/process.ts';
import { eventually } from '../helpers/util.ts';

const UNIT = join(PROJECT, 'debian/imagemill.service');
/**
 * Maximum exposure level of `systemd-analyze security`, which rates 0 to 10 and reads OK up to 4.9.
 * The unit has 2.4 on Debian 12; newer versions check more.
 */
const MAX_EXPOSURE = 3;

/**
 * Runs a command and returns its status and output.
 *
 * @throws {Error} if the command is not installed
 */
function runTool(
  command: string,
  ...args: string[]
): { readonly status: number | null; readonly text: string } {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: 'utf8' });
  if (error) throw new Error(`${command} is not installed (${error.message})`);
  return { status, text: stdout + stderr };
}

/**
 * Returns a command prefix that runs a program as the user `nobody` without capabilities. As root,
 * it uses a user namespace where the kernel allows one; the program then keeps the file access of
 * root.
 */
function asNobody(): string[] {
  const nobody = ['unshare', '--user', '--map-user=65534', '--map-group=65534'];
  const possible = process.getuid?.() === 0 && runTool('unshare', ...nobody.slice(1), 'true').status === 0;
  return [...(possible ? nobody : []), 'setpriv', '--no-new-privs'];
}

/**
 * Returns a command prefix that applies SystemCallFilter with libseccomp, as systemd does: only the
 * given calls are allowed, for the program and its descendants.
 *
 * @param denied beginning of the names of calls that are denied nevertheless
 */
function filteredTo(calls: string, denied = '-'): string[] {
  const groups = runTool('systemd-analyze', '--no-pager', 'syscall-filter').text;
  const program = `
import errno, os, sys
try: import seccomp
except ImportError: sys.exit('python3-seccomp is not installed')
groups, name = {}, None
for line in sys.argv[1].splitlines():
    if line.startswith('@'): name = line.strip(); groups[name] = []
    elif name and line.strip() and not line.strip().startswith('#'): groups[name].append(line.strip())
def named(word): return [call for inner in groups[word] for call in named(inner)] if word[0] == '@' else [word]
allowed = seccomp.SyscallFilter(seccomp.ERRNO(errno.EPERM))
for call in {call for word in sys.argv[2].split() + ['@default', 'execve'] for call in named(word)}:
    if call.startswith(sys.argv[3]): continue
    try: allowed.add_rule(seccomp.ALLOW, call)
    except (ValueError, OSError, RuntimeError): pass # of another architecture
allowed.load()
os.execvp(sys.argv[4], sys.argv[4:])`;
  return [...asNobody(), '/usr/bin/python3', '-c', program, groups, calls, denied];
}

/** Starts the service with a command prefix and runs one conversion with each tool. */
async function tryService(before: readonly string[]) {
  const service = startProcess({ TEMP_DIR: await makeTempDir('filtered') }, before);
  try {
    const base = await service.base();
    const statuses = [];
    for (const name of ['scene.jpg', 'scene.svg'])
      statuses.push((await convert(base, await fixture(name), { format: 'pdf' })).status);
    const { body } = await sendForm(new URL('/readyz', base).href);
    return { statuses, sandbox: JSON.parse(body.toString()).sandbox };
  } catch (error) {
    throw new Error(`${error}: ${service.output()}`);
  } finally {
    service.child.kill('SIGKILL');
    await service.ended();
  }
}

describe("systemd's unit", () => {
  it('passes systemd-analyze verify', async () => {
    const path = join(await makeTempDir('unit'), 'imagemill.service');
    // The service is not installed: verify the unit with another executable.
    const unit = (await readFile(UNIT, 'utf8')).replace('/usr/lib/imagemill/node', process.execPath);
    await writeFile(path, unit);
    expect(runTool('systemd-analyze', '--man=no', 'verify', path)).to.deep.equal({ status: 0, text: '' });
    await writeFile(path, unit.replace('ProtectHome=yes', 'ProtectHouse=yes'));
    const { text } = runTool('systemd-analyze', '--man=no', 'verify', path);
    expect(text, 'what it says of mistakes').to.include('ProtectHouse');
  });

  it('has an example of a path unit in the documents that passes systemd-analyze verify', async () => {
    const folder = await makeTempDir('path-unit');
    const text = await readFile(join(PROJECT, 'docs/cli.md'), 'utf8');
    const units = [...text.matchAll(/^```ini\n# \/etc\/systemd\/system\/(\S+)\n([\s\S]*?)^```$/gm)];
    expect(units.map(([, name]) => name)).to.deep.equal(['web-photos.path', 'web-photos.service']);
    const paths = units.map(([, name = '']) => join(folder, name));
    for (const [index, [, , unit = '']] of units.entries())
      await writeFile(paths[index] as string, unit.replace('/usr/bin/imagemill', process.execPath));
    expect(runTool('systemd-analyze', '--man=no', 'verify', ...paths)).to.deep.equal({ status: 0, text: '' });
  });

  it(`has an exposure level of at most ${MAX_EXPOSURE} in systemd-analyze security`, () => {
    const { text } = runTool('systemd-analyze', 'security', '--no-pager', '--offline=true', UNIT);
    const [, exposure, verdict] = /Overall exposure level for \S+: ([\d.]+) (\w+)/.exec(text) ?? [];
    expect(verdict, text).to.equal('OK');
    expect(Number(exposure)).to.be.at.most(MAX_EXPOSURE);
  });

  it('starts the built program, outwaits a graceful shutdown and writes to its runtime folder', async () => {
    const unit = await readFile(UNIT, 'utf8');
    const value = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? '';
    expect(value('ExecStart')).to.match(/ \/usr\/lib\/imagemill\/dist\/main\.js$/);
    const { SHUTDOWN_GRACE_MS } = loadConfig({});
    expect(Number(value('TimeoutStopSec')) * 1000).to.be.above(SHUTDOWN_GRACE_MS);
    expect(value('Environment')).to.include(`TEMP_DIR=/run/${value('RuntimeDirectory')}`);
  });

  it('reloads the API keys of a running service, and refuses to reload a service without them', async () => {
    const [, command = ''] = /^ExecReload=\/bin\/sh -c '(.*)'$/m.exec(await readFile(UNIT, 'utf8')) ?? [];
    const keys = await writeTempFile('keys', `shop:${'a'.repeat(64)}`);
    for (const [API_KEYS_FILE, expected] of [
      [keys, { status: 0, text: '', log: 'API keys were read again' }],
      ['', { status: 1, text: 'API_KEYS_FILE is not set\n', log: 'listening on' }],
    ] as const) {
      await using service = startProcess({ API_KEYS_FILE });
      await service.base();
      const env = ['env', `API_KEYS_FILE=${API_KEYS_FILE}`, `MAINPID=${service.pid}`];
      const { log, ...result } = expected;
      expect(
        runTool(env[0] as string, ...env.slice(1), 'sh', '-c', command.replaceAll('$$', '$')),
      ).to.deep.equal(result);
      await eventually(() => service.output().includes(log) || undefined);
      expect(service.child.exitCode).to.equal(null);
      expect(service.output()).not.to.include('shutting down');
    }
  });

  it('isolates IPC, keys and addresses of the service', async () => {
    const unit = await readFile(UNIT, 'utf8');
    for (const line of [
      'PrivateIPC=yes',
      'KeyringMode=private',
      'IPAddressDeny=any',
      'IPAddressAllow=localhost',
    ])
      expect(unit.split('\n'), line).to.include(line);
  });

  it('does not restart a service with invalid settings, and gives up after five failed starts', async () => {
    const lines = (await readFile(UNIT, 'utf8')).split('\n');
    expect(lines).to.include.members([
      'Restart=on-failure',
      'RestartPreventExitStatus=2',
      'StartLimitBurst=5',
    ]);
    const seconds = (name: string) =>
      Number(lines.find((line) => line.startsWith(`${name}=`))?.split('=')[1]);
    // A start takes less than 30 s.
    expect(seconds('StartLimitIntervalSec')).to.be.at.least(5 * (seconds('RestartSec') + 30));
  });

  it('allows all layers of the sandbox under the system call filter and without capabilities', async () => {
    const calls = /^SystemCallFilter=(.*)$/m.exec(await readFile(UNIT, 'utf8'))?.[1] ?? '';
    const plain = await tryService(asNobody());
    const filtered = await tryService(filteredTo(calls));
    expect(filtered).to.deep.equal(plain);
    expect(filtered.statuses).to.deep.equal([200, 200]);
    // @default of systemd 257 includes them.
    const without = await tryService(filteredTo(calls, 'landlock_'));
    expect(without.sandbox, 'what it is when calls are missing').not.to.deep.equal(plain.sandbox);
  });
});
