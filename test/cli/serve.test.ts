import { spawnSync } from 'node:child_process';
import { cp, readdir, readFile, rm, symlink, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { convert, fixture, sendForm } from '../helpers/client.ts';
import { runCommand } from '../helpers/command.ts';
import { fakeMagick } from '../helpers/fake-magick.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { type ServiceProcess, startProcess } from '../helpers/process.ts';
import { requires } from '../helpers/skips.ts';
import { eventually, isRunning } from '../helpers/util.ts';

const ROOT = new URL('../..', import.meta.url).pathname;

describe('imagemill serve', function () {
  this.timeout(90_000); // each starts the program, some several times

  const processes: ServiceProcess[] = [];
  const start: typeof startProcess = (...how) => {
    const started = startProcess(...how);
    processes.push(started);
    return started;
  };
  afterEach(async () => {
    for (const { child } of processes) child.kill('SIGKILL');
    await Promise.all(processes.splice(0).map((started) => started.ended()));
  });

  /** What a shell needs to give the service a standard output of its own, as the file `log` in the folder `$0`. */
  const APPEND = 'exec "$@" >>"$0/log"';
  const isAddress = (log: string) => /listening on (http:[^"]+)/.exec(log)?.[1];

  /** Serves requests until lines of the log are dropped, makes room, and expects lines again and a drain on SIGTERM. */
  async function outlivesItsLog(service: ServiceProcess, log: string, makeRoom: () => Promise<void>) {
    const origin = await eventually(async () => isAddress(await readFile(log, 'utf8').catch(() => '')));
    const dropped = async (): Promise<number> => {
      const { status, body } = await sendForm(`${origin}/metrics`);
      expect(status).to.equal(200);
      return Number(/^imagemill_log_lines_dropped_total (\d+)$/m.exec(body.toString())?.[1]);
    };
    await eventually(
      async () => (await sendForm(`${origin}/api/v1/health`)).status === 200 && (await dropped()) > 3,
    );
    await makeRoom();
    await sendForm(`${origin}/api/v1/health`, { headers: { 'x-request-id': 'there-is-room' } });
    await eventually(async () => (await readFile(log, 'utf8')).includes('there-is-room'));
    const last = (await readFile(log, 'utf8')).split('\n').find((line) => line.includes('there-is-room'));
    expect(JSON.parse(last ?? '')).to.include({ requestId: 'there-is-room' });
    service.child.kill('SIGTERM');
    expect(await service.ended()).to.equal(0);
  }

  it('drops lines of its log while the disk is full, and serves, drains and logs again when there is room', async function () {
    const folder = await makeTempDir('full-disk');
    const apart = ['unshare', '--user', '--map-root-user', '--mount', 'sh', '-ec'];
    const mount = 'mount -t tmpfs -o size=64k tmpfs "$0"';
    const mounted = spawnSync(apart[0] as string, [...apart.slice(1), mount, folder]);
    requires(this, 'mounts', mounted.status === 0);
    const fill = 'head -c 57344 /dev/zero >"$0/filler"';
    const service = start({ TEMP_DIR: await makeTempDir('log') }, [
      ...apart,
      `${mount}; ${fill}; ${APPEND}`,
      folder,
    ]);
    // The disk is in the mount namespace of the service alone.
    const disk = `/proc/${service.pid}/root${folder}`;
    await outlivesItsLog(service, `${disk}/log`, () => rm(`${disk}/filler`));
  });

  it('drops lines of its log when that file may not grow, and logs again when it is emptied', async () => {
    const folder = await makeTempDir('largest-file');
    const service = start({ TEMP_DIR: await makeTempDir('log') }, [
      ...['sh', '-ec', `ulimit -S -f 8; ${APPEND}`, folder],
    ]);
    const log = join(folder, 'log');
    await outlivesItsLog(service, log, () => truncate(log));
  });

  it('drops lines of its log when nobody reads them any more', async () => {
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

  it('ends with 2 at once for a REDIS_URL that its client would refuse, and so do the other commands', async () => {
    const REDIS_URL = 'redis://:secret@127.0.0.1:6379/cache';
    const TEMP_DIR = await makeTempDir('redis-url');
    for (const words of [['serve'], ['doctor'], ['convert', 'a.png', '-o', 'b.png']]) {
      const { status, stdout, complaints } = await runCommand(words, { env: { REDIS_URL, TEMP_DIR } });
      const said = stdout.toString() + complaints.join('\n');
      expect(status, words[0]).to.equal(2);
      expect(said).to.include('REDIS_URL="…": expected redis://host:port').and.not.include('secret');
      expect(said, 'a stack').to.not.match(/^\s+at /m);
    }
    expect(await readdir(TEMP_DIR)).to.deep.equal([]);
  });

  it('ends all that it started when the last step of its start fails', async () => {
    // A copy of the program that lacks the page of the API reference, which is read after the tools were started.
    const copy = await makeTempDir('broken-install');
    for (const name of ['src', 'assets', 'package.json'])
      await cp(join(ROOT, name), join(copy, name), { recursive: true });
    await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
    await rm(join(copy, 'assets/docs/index.html'));
    const TEMP_DIR = await makeTempDir('late');
    const service = start({ TEMP_DIR }, [...['sh', '-c', 'exec "$1" "$0/src/main.ts"', copy]]);
    expect(await service.ended()).to.equal(1);
    expect(service.output()).to.include('"cannot serve"').and.include('index.html');
    expect(await readdir(TEMP_DIR)).to.deep.equal([]);
    expect(await processesOf(TEMP_DIR)).to.deep.equal([]);
  });

  for (const [setting, label] of [
    ['MAGICK_BIN', 'ImageMagick 6 or 7'],
    ['RSVG_BIN', 'rsvg-convert'],
  ] as const) {
    it(`ends with 2 when ${setting} is not there or is another program`, async () => {
      const ends = async (path: string): Promise<void> => {
        const TEMP_DIR = await makeTempDir('no-tool');
        const service = start({ [setting]: path, TEMP_DIR });
        expect(await service.ended()).to.equal(2);
        expect(service.output()).to.include(
          `${setting}=\\"${path}\\" does not run, or does not answer as ${label}.`,
        );
        expect(await readdir(TEMP_DIR)).to.deep.equal([]);
      };
      await Promise.all(['/nonexistent/tool', '/bin/true', '/etc/passwd'].map(ends));
    });

    it(`is said by doctor not to serve when ${setting} is another program`, async () => {
      const { status, lines } = await runCommand(['doctor'], {
        env: { [setting]: '/bin/true', TEMP_DIR: await makeTempDir('no-tool') },
      });
      expect(status).to.equal(2);
      expect(lines.join(' ').replace(/\s+/g, ' ')).to.include(`→ unset ${setting}`);
    });
  }

  it('cuts off what is under way at a second SIGTERM, and leaves nothing', async () => {
    const folder = await makeTempDir('second');
    const MAGICK_BIN = await fakeMagick(`echo $$ > ${folder}/pid; sleep 600`);
    const TEMP_DIR = await makeTempDir('second');
    const service = start({
      MAGICK_BIN,
      TEMP_DIR,
      SHUTDOWN_GRACE_MS: '3600000',
      CONVERT_TIMEOUT_MS: '3600000',
    });
    const answer = convert(await service.base(), await fixture('scene.jpg')).catch((error: Error) => error);
    const tool = await eventually(
      async () => Number(await readFile(join(folder, 'pid'), 'utf8').catch(() => '')) || undefined,
    );
    service.child.kill('SIGTERM');
    await eventually(() => service.output().includes('"draining"'));
    // Those that come at once are the first one again, as from a terminal.
    service.child.kill('SIGTERM');
    await sendForm(`${await service.base()}/health`).catch(() => {});
    expect(service.output()).to.not.include('signalled again');
    await eventually(() => {
      if (service.output().includes('signalled again: cutting off')) return true;
      return service.child.kill('SIGTERM') && false;
    });
    expect(await service.ended()).to.equal(0);
    expect(await answer).to.be.instanceOf(Error);
    await eventually(() => !isRunning(tool));
    expect(await readdir(TEMP_DIR)).to.deep.equal([]);
  });
});

/** The processes that work in a folder or were started with it in their arguments. */
async function processesOf(folder: string): Promise<string[]> {
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
