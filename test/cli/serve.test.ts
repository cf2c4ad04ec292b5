// @full
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:fs';
import { cp, mkdir, open, readdir, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { convert, fixture, sendForm } from '../helpers/client.ts';
import { MAIN, runCommand, runOnTerminal } from '../helpers/command.ts';
import { fakeMagick } from '../helpers/fake-magick.ts';
import { makeTempDir, writeTempFile } from '../helpers/hooks.ts';
import { runInProcess } from '../helpers/in-process.ts';
import { execute, type ServiceProcess, useProcesses } from '../helpers/process.ts';
import { requires } from '../helpers/skips.ts';
import { eventually, isRunning, numberIn } from '../helpers/util.ts';

/** Arguments of unshare(1) for a script with mounts of its own. */
const NAMESPACE = ['--user', '--map-root-user', '--mount', 'sh', '-ec'] as const;
const ROOT = new URL('../..', import.meta.url).pathname;

describe('imagemill serve', () => {
  const start = useProcesses();

  it('prints lines for people with LOG_FORMAT=pretty: the address, requests, warnings and the stop', async () => {
    const ineffective = { IMAGINARY_KEY: 'secret', RATE_LIMIT: '3' };
    const service = start({ LOG_FORMAT: 'pretty', HOST: '0.0.0.0', ...ineffective });
    const [, url] = await eventually(
      () => /^Open (http:\/\/localhost:\d+) in a browser\. To stop/m.exec(service.output()) ?? undefined,
    );
    expect((await sendForm(`${url}/api/v1/health`)).status).to.equal(200);
    await eventually(() => /^\d\d:\d\d:\d\d GET \/api\/v1\/health 200 \d+ ms$/m.test(service.output()));
    service.child.kill('SIGTERM');
    expect(await service.ended()).to.equal(0);
    const lines = service.output().trim().split('\n');
    expect(lines).to.include('Warning: IMAGINARY_KEY has no effect: IMAGINARY_PATH is not set');
    expect(service.output()).to.not.include('secret');
    const warnings = lines.filter((line) => line.includes('Did you mean RATE_LIMIT_PER_MINUTE?'));
    expect(warnings).to.have.length(1);
    expect(lines.at(-1)).to.equal('Stopped.');
    expect(service.output())
      .to.match(/^imagemill \d+\.\d+\.\d+, public, ImageMagick [67]\./m)
      .and.not.include('{');
  });

  it('explains a wrong PORT and a port that is taken in the same way on a terminal', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const serve = (value: string) =>
      runOnTerminal(`HOST=127.0.0.1 PORT=${value} ${process.execPath} ${MAIN} serve`, ROOT);
    const [busy, wrong] = await Promise.all([serve(String(port)), serve('http')]);
    taken.close();
    expect([busy.status, wrong.status]).to.deep.equal([1, 2]);
    expect(busy.shown).to.match(
      /^imagemill: Cannot listen on HOST=127\.0\.0\.1 PORT=\d+: another program uses this port\./m,
    );
    expect(wrong.shown).to.match(/^imagemill: PORT="http": expected a whole number/m);
  });

  /** Shell command that appends the output of the service to the file `log` in the folder `$0`. */
  const APPEND = 'exec "$@" >>"$0/log"';
  const isAddress = (log: string) => /listening on (http:[^"]+)/.exec(log)?.[1];

  /** Sends requests until log lines are dropped, frees space, and expects lines and a drain. */
  async function expectLogRecovery(service: ServiceProcess, log: string, freeSpace: () => Promise<void>) {
    const origin = await eventually(async () => isAddress(await readFile(log, 'utf8').catch(() => '')));
    const dropped = async (): Promise<number> => {
      const { status, body } = await sendForm(`${origin}/metrics`);
      expect(status).to.equal(200);
      return Number(/^imagemill_log_lines_dropped_total (\d+)$/m.exec(body.toString())?.[1]);
    };
    await eventually(
      async () => (await sendForm(`${origin}/api/v1/health`)).status === 200 && (await dropped()) > 3,
    );
    await freeSpace();
    await sendForm(`${origin}/api/v1/health`, { headers: { 'x-request-id': 'there-is-room' } });
    await eventually(async () => (await readFile(log, 'utf8')).includes('there-is-room'));
    const last = (await readFile(log, 'utf8')).split('\n').find((line) => line.includes('there-is-room'));
    expect(JSON.parse(last ?? '')).to.include({ requestId: 'there-is-room' });
    service.child.kill('SIGTERM');
    expect(await service.ended()).to.equal(0);
  }

  it('drops log lines while the disk is full, keeps serving, and logs again when the disk has space', async function () {
    const folder = await makeTempDir('full-disk');
    const mount = 'mount -t tmpfs -o size=64k tmpfs "$0"';
    requires(this, 'mounts', spawnSync('unshare', [...NAMESPACE, mount, folder]).status === 0);
    const script = `${mount}; head -c 57344 /dev/zero >"$0/filler"; ${APPEND}`;
    const launcher = ['unshare', ...NAMESPACE, script, folder];
    const service = start({ TEMP_DIR: await makeTempDir('log') }, launcher);
    // The disk exists only in the mount namespace of the service.
    const disk = `/proc/${service.pid}/root${folder}`;
    await expectLogRecovery(service, `${disk}/log`, () => rm(`${disk}/filler`));
  });

  it('drops log lines when the log file has reached its maximum size, and logs again when it is emptied', async () => {
    const folder = await makeTempDir('largest-file');
    const launcher = ['sh', '-ec', `ulimit -S -f 8; ${APPEND}`, folder];
    const service = start({ TEMP_DIR: await makeTempDir('log') }, launcher);
    const log = join(folder, 'log');
    await expectLogRecovery(service, log, () => truncate(log));
  });

  it('drops log lines and keeps serving when the reader of standard output has exited', async () => {
    const service = start({ TEMP_DIR: await makeTempDir('log') });
    const base = await service.base();
    service.child.stdout?.destroy();
    const dropped = await eventually(async () => {
      expect((await sendForm(`${base}/health`)).status).to.equal(200);
      const { body } = await sendForm(new URL('/metrics', base).href);
      return /^imagemill_log_lines_dropped_total [1-9]/m.test(body.toString());
    });
    expect(dropped).to.equal(true);
    service.child.kill('SIGTERM');
    expect(await service.ended()).to.equal(0);
  });

  it('reads the keys of `imagemill key` again on SIGHUP, and keeps them if the file is invalid then', async () => {
    const made = await runInProcess(['key', 'shop', '--limit', '600']);
    const [[line = ''], [key = '']] = [made.lines, made.complaints];
    expect(line).to.match(/^shop:[\da-f]{64}:600$/);
    const API_KEYS_FILE = await writeTempFile('keys', '');
    const service = start({ API_KEYS_FILE, REQUIRE_API_KEY: 'on', TEMP_DIR: await makeTempDir('hup') });
    const base = await service.base();
    const status = async () =>
      (await sendForm(`${base}/health`, { headers: { authorization: `Bearer ${key}` } })).status;
    const reload = async (text: string, logged: string) => {
      await writeFile(API_KEYS_FILE, text);
      service.child.kill('SIGHUP');
      await eventually(() => service.output().includes(logged));
    };
    expect(await status()).to.equal(401);
    await reload(line, '"keys":1,"msg":"API keys were read again"');
    expect(await status()).to.equal(200);
    await reload(`${line}\n${key}`, `${API_KEYS_FILE}, line 2: expected NAME:SHA256`);
    expect(await status()).to.equal(200);
    expect(service.output()).to.not.include(key);

    const second = start({ API_KEYS_FILE, TEMP_DIR: await makeTempDir('hup') });
    expect(await second.ended()).to.equal(2);
    expect(second.output()).to.include(`${API_KEYS_FILE}, line 2`).and.not.include(key);
  });

  it('stops everything that it has started when the last step of the startup fails', async () => {
    // In the copy, the web page, which is read after the tools have started, has a dangling link.
    const copy = await makeTempDir('broken-install');
    for (const name of ['src', 'assets', 'package.json'])
      await cp(join(ROOT, name), join(copy, name), { recursive: true });
    await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
    for (const page of ['index.html', 'docs.html']) {
      await mkdir(dirname(join(copy, 'dist/web', page)), { recursive: true });
      await writeFile(join(copy, 'dist/web', page), '');
    }
    await symlink('nothing', join(copy, 'dist/web/dangling'));
    const TEMP_DIR = await makeTempDir('late');
    const service = start({ TEMP_DIR }, ['sh', '-c', 'exec "$1" "$0/src/main.ts"', copy]);
    expect(await service.ended()).to.equal(1);
    expect(service.output()).to.include('"service failed"').and.include('dangling');
    expect(await readdir(TEMP_DIR)).to.deep.equal([]);
    // A killed process can end a moment after the service.
    await eventually(async () => (await findProcesses(TEMP_DIR)).length === 0);
  });

  for (const [setting, path, label] of [
    ['MAGICK_BIN', '/nonexistent/tool', 'ImageMagick 6 or 7'],
    ['MAGICK_BIN', '/etc/passwd', 'ImageMagick 6 or 7'],
    ['RSVG_BIN', '/bin/true', 'rsvg-convert'],
  ] as const)
    it(`exits with 2 when ${setting} is ${path}`, async () => {
      const TEMP_DIR = await makeTempDir('no-tool');
      const service = start({ [setting]: path, TEMP_DIR });
      expect(await service.ended()).to.equal(2);
      expect(service.output()).to.include(`${setting}=\\"${path}\\" does not run, or is not ${label}.`);
      expect(await readdir(TEMP_DIR)).to.deep.equal([]);
    });

  for (const [what, launcher, message] of [
    ['this process can open too few files', ['sh', '-c', 'ulimit -n 63; exec "$@"', 'sh'], 'only 63 files'],
    [
      '/proc is not mounted',
      ['unshare', ...NAMESPACE, 'mount -t tmpfs none /proc; exec "$@"', 'sh'],
      '/proc is missing',
    ],
  ] as const)
    it(`exits with 2 and says in one line that ${what}, as do the other commands`, async function () {
      requires(this, 'mounts', spawnSync(launcher[0], [...launcher.slice(1), 'true']).status === 0);
      const TEMP_DIR = await makeTempDir('system');
      for (const args of [['serve'], ['doctor'], ['convert', 'a.png', '-o', 'b.png']]) {
        const run = await runCommand(args, { env: { TEMP_DIR, PORT: '0' }, launcher });
        expect(run.status, args[0]).to.equal(2);
        const lines = [...run.lines, ...run.complaints].filter((line) => !line.includes('imagemill doctor'));
        expect(lines, args[0]).to.have.lengthOf(1);
        expect(lines[0]).to.include(message);
      }
      expect(await readdir(TEMP_DIR)).to.deep.equal([]);
    });

  it('is reported in one line, with exit status 1 of serve, when the disk of TEMP_DIR is full', async function () {
    const folder = await makeTempDir('no-space');
    for (const free of [0, 16]) {
      const fill = `mount -t tmpfs -o size=64k tmpfs "$0"; head -c ${(64 - free) * 1024} /dev/zero >"$0/filler"`;
      const launcher = ['unshare', ...NAMESPACE, `${fill}; exec "$@"`, folder];
      requires(this, 'mounts', spawnSync('unshare', [...launcher.slice(1), 'true']).status === 0);
      const isFull = /TEMP_DIR \S+ cannot be written: the disk is full/;
      for (const [args, status, message] of [
        [['serve'], 1, isFull], // a later start can succeed
        [['convert', 'a.png', '-o', 'b.png'], 2, isFull],
        [['doctor'], 2, /the disk is full|TEMP_DIR +\S+,(?: in memory,)? [\d.]+ k?B free|is not writable/],
      ] as const) {
        const run = await runCommand(args, { env: { TEMP_DIR: folder, PORT: '0' }, launcher });
        const output = [...run.lines, ...run.complaints].join(' ').replace(/\s+/g, ' ');
        expect(run.status, `${args[0]}: ${output}`).to.equal(status);
        expect(output).to.match(message);
        expect(output, 'a stack').to.not.match(/ at \w+ \(|"stack"/);
      }
    }
  });

  it('answers 503 with Retry-After while the disk of TEMP_DIR is read-only, and converts again afterwards', async function () {
    const folder = await makeTempDir('read-only');
    const mount = 'mount -t tmpfs -o size=64m tmpfs "$0"; exec "$@"';
    const launcher = ['unshare', '--mount', 'sh', '-ec', mount, folder];
    requires(this, 'mounts', spawnSync('unshare', [...launcher.slice(1), 'true']).status === 0);
    const service = start({ TEMP_DIR: folder }, launcher);
    const base = await service.base();
    const remount = (mode: string) =>
      spawnSync('nsenter', ['--mount', `--target=${service.pid}`, 'mount', '-o', `remount,${mode}`, folder])
        .status;
    const photo = await fixture('scene.jpg');
    expect((await convert(base, photo)).status).to.equal(200);
    // The service removes the folder of the job after the response. Until then, the disk is busy.
    await eventually(() => remount('ro') === 0);
    const answer = await convert(base, photo);
    const message = 'The service cannot write working files at the moment. Try again shortly.';
    expect(answer.outcome).to.equal(`503 ${message}`);
    expect(answer.headers.get('retry-after')).to.equal('30');
    expect(remount('rw')).to.equal(0);
    expect((await convert(base, photo)).status).to.equal(200);
  });

  it('ends at a second SIGTERM while its start waits for a file of keys that is a pipe', async () => {
    const keys = join(await makeTempDir('keys'), 'keys');
    await execute('mkfifo', [keys]);
    const { child, ended } = start({ API_KEYS_FILE: keys });
    // A pipe can be opened without waiting once a reader waits for it.
    const flags = constants.O_WRONLY | constants.O_NONBLOCK;
    await using _writer = await eventually(() => open(keys, flags).catch(() => undefined));
    await eventually(() => !isRunning(child.pid as number) || (child.kill('SIGTERM') && false));
    expect(await ended()).to.equal('SIGTERM');
  });

  it('aborts requests in progress on a second SIGTERM, and leaves no files', async () => {
    const folder = await makeTempDir('second');
    const MAGICK_BIN = await fakeMagick(`echo $$ > ${folder}/pid; sleep 600`);
    const TEMP_DIR = await makeTempDir('second');
    const limits = { SHUTDOWN_GRACE_MS: '3600000', CONVERT_TIMEOUT_MS: '3600000' };
    const service = start({ MAGICK_BIN, TEMP_DIR, ...limits });
    const answer = convert(await service.base(), await fixture('scene.jpg')).catch((error: Error) => error);
    const tool = await eventually(() => numberIn(join(folder, 'pid')));
    // Signals that arrive at the same time count as one signal, as from a terminal.
    for (const signal of ['SIGSTOP', 'SIGTERM', 'SIGINT', 'SIGCONT'] as const) service.child.kill(signal);
    await eventually(() => service.output().includes('"shutting down"'));
    await sendForm(`${await service.base()}/health`).catch(() => {});
    expect(service.output()).to.not.include('second signal');
    await eventually(() => {
      if (service.output().includes('second signal: closing all connections')) return true;
      return service.child.kill('SIGTERM') && false;
    });
    expect(await service.ended()).to.equal(0);
    expect(await answer).to.be.instanceOf(Error);
    await eventually(() => !isRunning(tool));
    expect(await readdir(TEMP_DIR)).to.deep.equal([]);
  });
});

/** Returns the processes that have a folder in their arguments, environment or mounts. */
async function findProcesses(folder: string): Promise<string[]> {
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(
    pids.map(async (pid) => {
      const about = await Promise.all(
        ['cmdline', 'environ', 'mountinfo'].map((file) =>
          readFile(`/proc/${pid}/${file}`, 'latin1').catch(() => ''),
        ),
      );
      return about.join(' ');
    }),
  );
  return lines.filter((line) => line.includes(folder));
}
