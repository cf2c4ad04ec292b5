// @full: all attacks, without each of the protections
// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { ATTACKS } from '../../src/cli/doctor/attacks.ts';
import { findToolchain } from '../../src/process/toolchain.ts';
import { type CommandOptions, runCommand } from '../helpers/command.ts';
import { makeTempDir, writeTempFile } from '../helpers/hooks.ts';
import { runInProcess } from '../helpers/in-process.ts';
import { eventually, processesWhere, writeScript } from '../helpers/util.ts';

interface Row {
  readonly name: string;
  readonly expected: string;
  readonly stoppedBy?: string;
  readonly state: 'ok' | 'warn' | 'fail';
  readonly found: string;
}

/** Runs the attacks in a process of its own, and checks that nothing is left. */
async function attack({ env = {}, launcher = [] }: CommandOptions, ...args: string[]) {
  const TEMP_DIR = await makeTempDir('attack');
  const run = await runCommand(['doctor', '--attack', '--json', ...args], {
    // Less than the four seconds after which an attack is killed by default.
    env: { TEMP_DIR, CONVERT_TIMEOUT_MS: '3000', ...env },
    launcher,
  });
  expect(run.complaints).to.deep.equal([]);
  const { held, attacks } = JSON.parse(run.lines.join('\n')) as { held: boolean; attacks: Row[] };
  expect(run.status).to.equal(held ? 0 : 1);
  expect(await readdir(TEMP_DIR)).to.deep.equal([]);
  expect(processesWhere('cmdline', (line) => /broken-codec\.(?:x64|arm64)/.test(line))).to.deep.equal([]);
  const inState = (state: Row['state']) => attacks.filter((row) => row.state === state);
  return { attacks, failed: inState('fail').map(({ name }) => name), warned: inState('warn') };
}

/** Returns the names of the attacks that one of these layers stops. */
const dependingOn = (...layers: string[]): string[] =>
  ATTACKS.filter(({ expected }) => layers.includes(expected)).map(({ name }) => name);

const CODEC = dependingOn('Landlock', 'seccomp');

/** Makes Landlock look absent: landlock_create_ruleset(2), number 444, returns ENOSYS. */
const WITHOUT_LANDLOCK = [
  'python3',
  '-c',
  `import ctypes, os, struct, sys
filter = struct.pack('HBBI' * 4, 0x20, 0, 0, 0, 0x15, 0, 1, 444, 6, 0, 0, 0x50026, 6, 0, 0, 0x7fff0000)
kept = ctypes.create_string_buffer(filter)
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 # PR_SET_NO_NEW_PRIVS
assert libc.prctl(22, 2, struct.pack('HxxxxxxP', 4, ctypes.addressof(kept))) == 0 # PR_SET_SECCOMP
os.execv(sys.argv[1], sys.argv[1:])`,
];

/** Writes an ImageMagick whose policy permits everything, except when the service tests it. */
async function permissiveMagick(): Promise<string> {
  const folder = await makeTempDir('policy');
  await mkdir(join(folder, 'ImageMagick'));
  const rules = ['delegate', 'module', 'coder', 'path'].map(
    (domain) => `<policy domain="${domain}" rights="read|write|execute" pattern="*"/>`,
  );
  await writeFile(join(folder, 'ImageMagick/policy.xml'), `<policymap>${rules.join('')}</policymap>`);
  const { magick } = await findToolchain({ path: process.env.PATH ?? '' });
  return writeScript(
    'magick',
    `case "$*" in
  xc:red*|*allowed.pdf|-list*) ;;
  *) export XDG_CONFIG_HOME=${folder} MAGICK_CONFIGURE_PATH=${folder}/ImageMagick ;;
esac
exec ${magick?.path} "$@"`,
  );
}

describe('imagemill doctor --attack', () => {
  for (const [which, env] of [
    ['the default settings', { CONVERT_TIMEOUT_MS: '' }],
    ['all formats', { EXTRA_INPUTS: 'all', EXTRA_OUTPUTS: 'all' }],
    [
      'FORK_SERVER=off, Redis and a rate limit',
      { FORK_SERVER: 'off', RATE_LIMIT_PER_MINUTE: '1', REDIS_URL: 'redis://127.0.0.1:1' },
    ],
  ] as const)
    it(`stops every attack by the expected layer with ${which}`, async () => {
      const { attacks, failed, warned } = await attack({ env });
      expect([failed, warned]).to.deep.equal([[], []]);
      expect(attacks.map(({ name }) => name)).to.deep.equal(ATTACKS.map(({ name }) => name));
    });

  it('fails exactly for the attacks of a codec with SANDBOX=off', async () => {
    const { failed, warned } = await attack({ env: { SANDBOX: 'off' } });
    expect([failed, warned]).to.deep.equal([[...CODEC, ...dependingOn('memory limit')], []]);
  });

  it('fails exactly for the attacks that Landlock and seccomp stop if the kernel has no Landlock', async () => {
    const { failed, warned } = await attack({ launcher: WITHOUT_LANDLOCK });
    expect([failed, warned]).to.deep.equal([CODEC, []]);
  });

  it('fails exactly for the attacks that the policy stops if ImageMagick ignores it', async () => {
    const { failed, warned } = await attack({ env: { MAGICK_BIN: await permissiveMagick() } });
    expect([failed, warned]).to.deep.equal([dependingOn('policy'), []]);
  });

  it('fails exactly for the attacks by pixels if MAX_PIXELS and MAX_TOTAL_PIXELS are absurdly high', async () => {
    const env = { MAX_PIXELS: String(16_384 ** 2), MAX_TOTAL_PIXELS: String(2 ** 31) };
    const { failed, warned } = await attack({ env });
    expect([failed, warned]).to.deep.equal([dependingOn('MAX_PIXELS', 'MAX_TOTAL_PIXELS'), []]);
  });

  it('warns if another layer than the expected one stops an attack', async () => {
    const { warned } = await attack({ env: { MAX_FRAMES: '100' } }, '--only', 'GIF of 400');
    expect(warned.map(({ expected, stoppedBy }) => [expected, stoppedBy])).to.deep.equal([
      ['MAX_TOTAL_PIXELS', 'MAX_FRAMES'],
    ]);
  });

  it('ends by a signal during a conversion, and leaves nothing', async () => {
    const TEMP_DIR = await makeTempDir('attack');
    const { outcome } = await runCommand(['doctor', '--attack'], {
      env: { TEMP_DIR },
      async meanwhile(pid, printed) {
        await eventually(() => printed().includes('SVG of nested entities')); // the next one runs until its time limit
        process.kill(pid, 'SIGINT');
      },
    });
    expect(outcome).to.equal('130');
    expect(await readdir(TEMP_DIR)).to.deep.equal([]);
  });

  it('prints a row for each attack of --only, and their number', async () => {
    const env = { TEMP_DIR: await makeTempDir('attack') };
    const { status, lines } = await runInProcess(['doctor', '--attack', '--only', 'PNG of'], { env });
    expect(status).to.equal(0);
    expect(lines).to.have.length(3);
    expect(lines[0]).to.match(/^ ✓ PNG of 144 megapixels .* stopped before a tool started +MAX_PIXELS$/);
    expect(lines[2]).to.equal(' 1 of 1 stopped: 1 by limits');
  });

  it('reads the settings of --env, and ends with 2 for an unknown name or without --attack or a service', async () => {
    const file = await writeTempFile('service.env', 'MAX_PIXELS=x\n');
    const outcomeOf = async (...args: string[]) => (await runInProcess(['doctor', ...args])).outcome;
    expect(await outcomeOf('--attack', '--env', file)).to.match(/^2 imagemill: MAX_PIXELS="x": /);
    const unknown = await outcomeOf('--attack', '--only', 'x-ray');
    expect(unknown).to.equal('2 imagemill: No attack has the name "x-ray".');
    expect(await outcomeOf('--only', 'codec')).to.equal('2 imagemill: --only needs --attack.');
    const env = { MAGICK_BIN: '/bin/true' };
    const { outcome } = await runInProcess(['doctor', '--attack'], { env });
    expect(outcome).to.match(/^2 imagemill: MAGICK_BIN="\/bin\/true" does not run/);
  });
});
