import { spawnSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { loadConfig } from '../../src/config.ts';
import { scratch } from '../helpers/hooks.ts';

const FOLDER = new URL('../../docker/systemd/', import.meta.url).pathname;
const UNIT = join(FOLDER, 'imagemill.service');
/** systemd's own scale: from 0 to 10, where up to 4.9 reads OK. On Debian 12 it is 2.6; newer versions ask for more. */
const MOST_EXPOSED = 3;

/** What a command prints; a test fails aloud where there is no such command. */
function printed(
  command: string,
  ...args: string[]
): { readonly status: number | null; readonly text: string } {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: 'utf8' });
  if (error) throw new Error(`NOT PROVEN: ${command} is not here (${error.message})`);
  return { status, text: stdout + stderr };
}

describe("systemd's unit", () => {
  it('is right by systemd-analyze verify', async () => {
    const path = join(await scratch('unit'), 'imagemill.service');
    // Nobody has installed it: another program stands for the one it starts.
    const unit = (await readFile(UNIT, 'utf8')).replace('/opt/imagemill/node', process.execPath);
    await writeFile(path, unit);
    expect(printed('systemd-analyze', '--man=no', 'verify', path)).to.deep.equal({ status: 0, text: '' });
    await writeFile(path, unit.replace('ProtectHome=yes', 'ProtectHouse=yes'));
    const { text } = printed('systemd-analyze', '--man=no', 'verify', path);
    expect(text, 'what it says of mistakes').to.include('ProtectHouse');
  });

  it(`reads OK by systemd-analyze security, at most ${MOST_EXPOSED}`, () => {
    const { text } = printed('systemd-analyze', 'security', '--no-pager', '--offline=true', UNIT);
    const [, exposure, verdict] = /Overall exposure level for \S+: ([\d.]+) (\w+)/.exec(text) ?? [];
    expect(verdict, text).to.equal('OK');
    expect(Number(exposure)).to.be.at.most(MOST_EXPOSED);
  });

  it('starts what the build makes, waits longer than a drain, and has room where it may write', async () => {
    const unit = await readFile(UNIT, 'utf8');
    const value = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? '';
    expect(value('ExecStart')).to.match(/ \/opt\/imagemill\/dist\/main\.js$/);
    const { SHUTDOWN_GRACE_MS } = loadConfig({});
    expect(Number(value('TimeoutStopSec')) * 1000).to.be.above(SHUTDOWN_GRACE_MS);
    expect(value('Environment')).to.include(`TEMP_DIR=/run/${value('RuntimeDirectory')}`);
  });

  it('has an example of its settings that the service takes', async () => {
    const lines = (await readFile(join(FOLDER, 'imagemill.env'), 'utf8')).split('\n');
    const settings = lines.filter((line) => line !== '' && !line.startsWith('#'));
    const environment = Object.fromEntries(settings.map((line) => line.split('=', 2)));
    expect(loadConfig(environment)).to.deep.include({ HOST: '127.0.0.1', SANDBOX: 'on' });
  });
});
