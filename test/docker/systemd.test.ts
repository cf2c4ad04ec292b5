import { spawnSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { loadConfig } from '../../src/config.ts';
import { convert, fixture, sendForm } from '../helpers/client.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { startProcess } from '../helpers/process.ts';

const FOLDER = new URL('../../docker/systemd/', import.meta.url).pathname;
const UNIT = join(FOLDER, 'imagemill.service');
/** systemd's own scale: from 0 to 10, where up to 4.9 reads OK. On Debian 12 it is 2.4; newer versions ask for more. */
const MAX_EXPOSURE = 3;

/** What a command prints; a test fails aloud where there is no such command. */
function printed(
  command: string,
  ...args: string[]
): { readonly status: number | null; readonly text: string } {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: 'utf8' });
  if (error) throw new Error(`NOT PROVEN: ${command} is not here (${error.message})`);
  return { status, text: stdout + stderr };
}

/** To be nobody, without a capability: also for root, where the kernel lets it, with root's rights on files. */
function asNobody(): string[] {
  const nobody = ['unshare', '--user', '--map-user=65534', '--map-group=65534'];
  const possible = process.getuid?.() === 0 && printed('unshare', ...nobody.slice(1), 'true').status === 0;
  return [...(possible ? nobody : []), 'setpriv', '--no-new-privs'];
}

/**
 * What systemd does with SystemCallFilter, by libseccomp: those calls and no others, for the program and all that
 * it starts.
 */
function filteredTo(calls: string): string[] {
  const groups = printed('systemd-analyze', '--no-pager', 'syscall-filter').text;
  const program = `
import errno, os, sys
try: import seccomp
except ImportError: sys.exit('NOT PROVEN: python3-seccomp is not here')
groups, name = {}, None
for line in sys.argv[1].splitlines():
    if line.startswith('@'): name = line.strip(); groups[name] = []
    elif name and line.strip() and not line.strip().startswith('#'): groups[name].append(line.strip())
def named(word): return [call for inner in groups[word] for call in named(inner)] if word[0] == '@' else [word]
allowed = seccomp.SyscallFilter(seccomp.ERRNO(errno.EPERM))
for call in {call for word in sys.argv[2].split() + ['@default', 'execve'] for call in named(word)}:
    try: allowed.add_rule(seccomp.ALLOW, call)
    except (ValueError, OSError, RuntimeError): pass # of another architecture
allowed.load()
os.execvp(sys.argv[3], sys.argv[3:])`;
  return [...asNobody(), '/usr/bin/python3', '-c', program, groups, calls];
}

/** Starts the service behind these words, and has it convert something with each tool. */
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
  it('is right by systemd-analyze verify', async () => {
    const path = join(await makeTempDir('unit'), 'imagemill.service');
    // Nobody has installed it: another program stands for the one it starts.
    const unit = (await readFile(UNIT, 'utf8')).replace('/opt/imagemill/node', process.execPath);
    await writeFile(path, unit);
    expect(printed('systemd-analyze', '--man=no', 'verify', path)).to.deep.equal({ status: 0, text: '' });
    await writeFile(path, unit.replace('ProtectHome=yes', 'ProtectHouse=yes'));
    const { text } = printed('systemd-analyze', '--man=no', 'verify', path);
    expect(text, 'what it says of mistakes').to.include('ProtectHouse');
  });

  it(`reads OK by systemd-analyze security, at most ${MAX_EXPOSURE}`, () => {
    const { text } = printed('systemd-analyze', 'security', '--no-pager', '--offline=true', UNIT);
    const [, exposure, verdict] = /Overall exposure level for \S+: ([\d.]+) (\w+)/.exec(text) ?? [];
    expect(verdict, text).to.equal('OK');
    expect(Number(exposure)).to.be.at.most(MAX_EXPOSURE);
  });

  it('starts what the build makes, waits longer than a drain, and has room where it may write', async () => {
    const unit = await readFile(UNIT, 'utf8');
    const value = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? '';
    expect(value('ExecStart')).to.match(/ \/opt\/imagemill\/dist\/main\.js$/);
    const { SHUTDOWN_GRACE_MS } = loadConfig({});
    expect(Number(value('TimeoutStopSec')) * 1000).to.be.above(SHUTDOWN_GRACE_MS);
    expect(value('Environment')).to.include(`TEMP_DIR=/run/${value('RuntimeDirectory')}`);
  });

  it('gives the service memory, keys and addresses that no other service has, and settings that only it can read', async () => {
    const unit = await readFile(UNIT, 'utf8');
    for (const line of [
      'PrivateIPC=yes',
      'KeyringMode=private',
      'IPAddressDeny=any',
      'IPAddressAllow=localhost',
    ])
      expect(unit.split('\n'), line).to.include(line);
    const settings = await readFile(join(FOLDER, 'imagemill.env'), 'utf8');
    expect(settings, 'addresses that the unit allows').to.match(/^HOST=127\.0\.0\.1$/m);
    const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8');
    expect(readme).to.match(
      /^install -m 640 -g imagemill docker\/systemd\/imagemill\.env \/etc\/imagemill\.env/m,
    );
  });

  it('lets the service shut its tools in as it would without, by its system calls and without a capability', async function () {
    this.timeout(60_000);
    const calls = /^SystemCallFilter=(.*)$/m.exec(await readFile(UNIT, 'utf8'))?.[1] ?? '';
    const plain = await tryService(asNobody());
    const filtered = await tryService(filteredTo(calls));
    expect(filtered).to.deep.equal(plain);
    expect(filtered.statuses).to.deep.equal([200, 200]);
    const without = await tryService(filteredTo(calls.replace('@mount', '').replace(/landlock_\w+/g, '')));
    expect(without.sandbox, 'what it is when calls are missing').not.to.deep.equal(plain.sandbox);
  });

  it('has an example of its settings that the service takes', async () => {
    const lines = (await readFile(join(FOLDER, 'imagemill.env'), 'utf8')).split('\n');
    const settings = lines.filter((line) => line !== '' && !line.startsWith('#'));
    const environment = Object.fromEntries(settings.map((line) => line.split('=', 2)));
    expect(loadConfig(environment)).to.deep.include({ HOST: '127.0.0.1', SANDBOX: 'on' });
  });
});
