// @full: starts many services or commands
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, cp, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { readInstanceFolder } from '../src/files/stale.ts';
import { assertProtections } from '../src/process/policy.ts';
import { convert, fixture, jsonOf, sendForm } from './helpers/client.ts';
import { fakeMagick, gatedMagick, LIST_LIMIT } from './helpers/fake-magick.ts';
import { makeTempDir } from './helpers/hooks.ts';
import { MAIN, programEnvironment, startServer, useProcesses } from './helpers/process.ts';
import { requires } from './helpers/skips.ts';
import { eventually, isRunning, writeScript } from './helpers/util.ts';

describe('the service process', () => {
  const start = useProcesses();

  describe('at startup', () => {
    it('exits with 2 if the policy or a seccomp filter is empty, cut or changed', async () => {
      const copy = await makeTempDir('copy');
      const from = (path: string): string => new URL(`../${path}`, import.meta.url).pathname;
      for (const path of ['assets', 'src', 'dist', 'package.json'])
        await cp(from(path), join(copy, path), { recursive: true });
      await symlink(from('node_modules'), join(copy, 'node_modules'));
      const filter = join(copy, `assets/seccomp/allow-list.${process.arch}.bpf`);
      const weaker = join(copy, `assets/seccomp/deny-list.${process.arch}.bpf`);
      const policy = join(copy, 'assets/ImageMagick/policy.xml');
      for (const [path, change] of [
        [filter, () => Buffer.alloc(0)],
        [filter, (bytes: Buffer) => bytes.subarray(0, 64)],
        [weaker, () => Buffer.from('\x06\0\0\0\0\0\xff\x7f', 'latin1')], // permits all
        [policy, () => Buffer.alloc(0)],
        [policy, (bytes: Buffer) => Buffer.from(bytes.toString().replace('pattern="@*"', ''))],
      ] as const) {
        const bytes = await readFile(path);
        await writeFile(path, change(bytes));
        const error = await assertProtections(join(copy, 'assets')).catch(({ message }: Error) => message);
        expect(error).to.match(new RegExp(`^${path} is missing, damaged or changed`));
        await writeFile(path, bytes);
      }
      await assertProtections(join(copy, 'assets'));
      await writeFile(filter, '');
      const started = startServer([process.execPath, join(copy, MAIN.slice(from('').length))], {
        ...programEnvironment(),
        PORT: '0',
        TEMP_DIR: await makeTempDir('start'),
      });
      expect(await started.ended()).to.equal(2);
      expect(started.output()).to.include(`${filter} is missing, damaged or changed`);
    });

    /** Starts a service with these settings, and returns its startup lines. */
    const startupLines = async (settings: Readonly<Record<string, string>>) => {
      const started = start({ ...settings, TEMP_DIR: await makeTempDir('start') });
      await started.base();
      const lines = started.output().trim().split('\n');
      return lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'startup');
    };

    it('logs the tools and the layers of the sandbox in one line', async () => {
      const tools = await startupLines({});
      expect(tools).to.have.length(1);
      expect(tools[0].access).to.equal('public');
      expect(tools[0].magick).to.match(/^[67]\.\S+ \/.+/);
      expect(tools[0].rsvg).to.match(/^\d\S+ \/.+/);
      expect(tools[0].sandbox).to.include({
        limits: 'setrlimit',
        privileges: 'no-new-privs',
        files: 'landlock',
        network: 'seccomp',
        syscalls: 'allow-list',
      });
      const asUser = process.getuid?.() === 0 ? [] : ['--user', '--map-current-user'];
      const unshared = spawnSync('unshare', [...asUser, '--pid', '--ipc', '--net', '--fork', 'true']);
      expect(tools[0].sandbox.processes).to.equal(unshared.status === 0 ? 'namespace' : 'none');
    });

    it('logs that the access is private', async () => {
      expect((await startupLines({ ACCESS: 'private' }))[0]).to.include({ access: 'private' });
    });

    it('exits with 2 and names the Debian packages when there are no tools', async () => {
      const started = start({ PATH: await makeTempDir('no-tools') });
      expect(await started.ended()).to.equal(2);
      expect(started.output()).to.include('apt install imagemagick').and.include('apt install librsvg2-bin');
      expect(started.output()).to.include('Nothing can be converted on this machine.');
    });

    it('serves and lists only SVG to PNG and PDF when librsvg is the only tool', async () => {
      const RSVG_BIN = await writeScript('rsvg', 'echo "rsvg-convert version 2.54.7"');
      const started = start({
        PATH: await makeTempDir('no-magick'),
        RSVG_BIN,
        TEMP_DIR: await makeTempDir('start'),
      });
      const base = await started.base();
      expect(started.output()).to.include('ImageMagick 6 or 7 not found: only SVG to PNG and PDF works.');
      expect(jsonOf(await sendForm(`${base}/formats`))).to.deep.include({
        input: ['svg'],
        output: ['png', 'pdf'],
      });
      expect((await convert(base, await fixture('scene.png'))).status).to.equal(415);
      expect((await convert(base, await fixture('scene.svg'), { format: 'jpg' })).message).to.include(
        'expected one of png, pdf',
      );
    });

    it('does not list or accept formats that ImageMagick lacks, and names the Debian package', async () => {
      const magick = await writeScript(
        'magick',
        `case "$*" in -version) echo "Version: ImageMagick 7.1.1-43 Q16";; "-list format") echo "  PNG PNG rw+ x";; "-list resource") echo "  Width: 65535P"; echo "  Disk: 0B"; echo "  ${LIST_LIMIT}";; *) exit 1;; esac`,
      );
      const started = start({
        MAGICK_BIN: magick,
        PATH: await makeTempDir('no-rsvg'),
        TEMP_DIR: await makeTempDir('start'),
      });
      const base = await started.base();
      expect(jsonOf(await sendForm(`${base}/formats`))).to.deep.include({
        input: ['png'],
        output: ['png'],
      });
      expect(started.output()).to.include('cannot read AVIF. On Debian: apt install libheif-plugin-dav1d');
      expect((await convert(base, await fixture('scene.jpg'))).message).to.include('supported format (PNG)');
    });

    it('exits with 2 for SANDBOX=on when a tool cannot be sandboxed, and warns and serves for SANDBOX=auto', async () => {
      // A script needs a shell, which the sandbox does not provide.
      const MAGICK_BIN = await fakeMagick('exit 1');
      const refused = start({ MAGICK_BIN, SANDBOX: 'on' });
      expect(await refused.ended()).to.equal(2);
      expect(refused.output()).to.include('SANDBOX=on, but no available sandbox hides files from the tools');
      const warned = start({ MAGICK_BIN, SANDBOX: 'auto', TEMP_DIR: await makeTempDir('start') });
      await warned.base();
      expect(warned.output())
        .to.include('the tools can read every file that this process can read')
        .and.include('"files":"none"');
    });

    for (const [how, answers] of [
      [
        'allows what the policy forbids',
        `"PNG:in BMP3:allowed.bmp") ;; "-list resource") echo "  Width: 65535P"; echo "  Disk: 0B"; echo "  ${LIST_LIMIT}";; *) exit 0`,
      ],
      [
        'forbids what the policy allows',
        `"-list resource") echo "  Width: 65535P"; echo "  Disk: 0B"; echo "  ${LIST_LIMIT}";; *) exit 1`,
      ],
      [
        'has other limits than the policy',
        '"PNG:in BMP3:allowed.bmp") ;; "-list resource") echo "  Width: 65535P"; echo "  Disk: 0B"; echo "  List length: 99B";; *) exit 1',
      ],
    ]) {
      it(`exits with 2 and leaves no files when ImageMagick ${how}`, async () => {
        const formats = 'for f in PNG BMP3; do echo "  $f $f rw+ x"; done';
        const version = 'echo "Version: ImageMagick 7.1.1-43 Q16"';
        const MAGICK_BIN = await writeScript(
          'magick',
          `case "$*" in -version) ${version};; "-list format") ${formats};; ${answers};; esac`,
        );
        const TEMP_DIR = await makeTempDir('disobedient');
        const started = start({ MAGICK_BIN, TEMP_DIR });
        expect(await started.ended()).to.equal(2);
        expect(started.output()).to.include('does not enforce the policy');
        expect(await readdir(TEMP_DIR)).to.deep.equal([]);
      });
    }

    for (const TEMP_DIR of ['/etc/hosts/nowhere', '/proc/nowhere/below'])
      it(`exits with 2 when TEMP_DIR is ${TEMP_DIR}, which cannot be created`, async () => {
        const started = start({ TEMP_DIR });
        expect(await started.ended()).to.equal(2);
        expect(started.output()).to.include(`TEMP_DIR ${TEMP_DIR} cannot be written`);
      });

    it('exits with 2 and reports that no program can be started when /bin/sh is not executable', async function () {
      const broken = 'mount --bind /dev/null /bin/sh; exec "$@"';
      const apart = ['--user', '--map-root-user', '--mount', 'sh', '-ec', broken, 'sh'];
      requires(this, 'mounts', spawnSync('unshare', [...apart, 'true']).status === 0);
      const TEMP_DIR = await makeTempDir('no-shell');
      const started = start({ TEMP_DIR }, ['unshare', ...apart]);
      expect(await started.ended()).to.equal(2);
      expect(started.output()).to.include('No program can be started').and.include('EACCES');
      expect(started.output()).to.not.include('not found');
      expect(await readdir(TEMP_DIR)).to.deep.equal([]);
    });

    it('exits with 1, so that systemd tries again, and names the port when it is in use', async () => {
      const PORT = new URL(await start({ TEMP_DIR: await makeTempDir('start') }).base()).port;
      const TEMP_DIR = await makeTempDir('start');
      const second = start({ PORT, TEMP_DIR });
      expect(await second.ended()).to.equal(1);
      expect(second.output())
        .to.include(`PORT=${PORT}: another program uses this port.`)
        .and.not.include('stack');
      expect(await readdir(TEMP_DIR)).to.deep.equal([]);
    });
  });

  /**
   * Starts the service as a user without rights, since the limit of processes does not apply to
   * root.
   */
  const AS_USER = ['setpriv', '--reuid=54321', '--regid=54321', '--clear-groups'];
  for (const [what, limit, none, before] of [
    ['can open no files for a job', 'nofile', 3, []],
    ['can start no process', 'nproc', 1, AS_USER],
  ] as const)
    it(`answers 503 with Retry-After while fork servers ${what}, and recovers`, async function () {
      requires(this, 'root', before.length === 0 || process.getuid?.() === 0);
      const TEMP_DIR = await makeTempDir('starved');
      await chmod(TEMP_DIR, 0o777);
      const base = await start({ TEMP_DIR, PATH: `${process.env.PATH}:${TEMP_DIR}/search` }, before).base();
      const image = await fixture('scene.jpg');
      expect((await convert(base, image)).status).to.equal(200);
      const servers: string[] = [];
      for (const pid of await readdir('/proc')) {
        const environment = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '');
        if (environment.includes('IMAGEMILL_FORK_SERVER=serve') && environment.includes(`${TEMP_DIR}/search`))
          servers.push(pid);
      }
      expect(servers).to.not.deep.equal([]);
      const permit = (count: number): void => {
        for (const pid of servers) {
          const [program, ...args] = [...before, 'prlimit', '--pid', pid, `--${limit}=${count}:1024`];
          expect(spawnSync(program as string, args).status).to.equal(0);
        }
      };
      permit(none);
      const refused = await convert(base, image);
      expect(refused.status).to.equal(503);
      expect(Number(refused.headers.get('retry-after'))).to.be.above(0);
      permit(1024);
      expect((await convert(base, image)).status).to.equal(200);
    });

  describe('on a signal that ends it', () => {
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const)
      it(`finishes requests in progress, exits with 0 and leaves no files on ${signal}`, async () => {
        const { MAGICK_BIN, started: toolStarted, open } = await gatedMagick();
        const TEMP_DIR = await makeTempDir('term');
        const service = start({ MAGICK_BIN, TEMP_DIR });
        const answer = convert(await service.base(), await fixture('scene.jpg'));
        await toolStarted();
        service.child.kill(signal);
        await eventually(() => service.output().includes('"shutting down"'));
        await open();
        expect((await answer).status).to.equal(200);
        expect(await service.ended()).to.equal(0);
        expect(await readdir(TEMP_DIR)).to.deep.equal([]);
      });

    for (const [what, next, statuses] of [
      ['closes a connection after the response in progress', '', ['HTTP/1.1 200']],
      [
        'rejects a new request on an open connection with 503',
        'GET /api/v1/health HTTP/1.1\r\nHost: x\r\n\r\n',
        ['HTTP/1.1 200', 'HTTP/1.1 503'],
      ],
    ] as const)
      it(`${what}, and only the last response has Connection: close`, async () => {
        const { MAGICK_BIN, started: toolStarted, open } = await gatedMagick();
        const service = start({ MAGICK_BIN, TEMP_DIR: await makeTempDir('late') });
        const socket = connect(Number(new URL(await service.base()).port), '127.0.0.1');
        const body = Buffer.concat([
          Buffer.from('--xyz\r\nContent-Disposition: form-data; name="file"; filename="a.jpg"\r\n\r\n'),
          await fixture('scene.jpg'),
          Buffer.from('\r\n--xyz--\r\n'),
        ]);
        const head = `POST /api/v1/convert HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=xyz\r\nContent-Length: ${body.length}\r\n\r\n`;
        socket.write(Buffer.concat([Buffer.from(head), body]));
        await toolStarted();
        service.child.kill('SIGTERM');
        await eventually(() => service.output().includes('"shutting down"'));
        socket.write(next);
        await open();
        let answers = '';
        for await (const data of socket) answers += data.toString('latin1');
        const found = answers.match(/HTTP\/1\.1 \d+|^Connection: close(?=\r$)/gm);
        expect(found).to.deep.equal([...statuses, 'Connection: close']);
        if (next) expect(answers).to.include('The service is shutting down.');
        expect(await service.ended()).to.equal(0);
      });

    it('does not wait for idle connections and incomplete requests', async () => {
      const service = start({ TEMP_DIR: await makeTempDir('idle'), SHUTDOWN_GRACE_MS: '3600000' });
      const { port } = new URL(await service.base());
      const sockets = ['', 'GET /api/v1/he'].map((text) =>
        connect(Number(port), '127.0.0.1')
          .setNoDelay()
          .on('error', () => {})
          .on('connect', function (this: Socket) {
            this.write(text);
          }),
      );
      await Promise.all(sockets.map((socket) => once(socket, 'connect')));
      await sendForm(`http://127.0.0.1:${port}/api/v1/health`); // by then, the other connections have been accepted, too
      service.child.kill('SIGTERM');
      expect(await service.ended()).to.equal(0);
    });

    it('exits after the grace period with a request in progress', async () => {
      const { MAGICK_BIN, started: toolStarted } = await gatedMagick();
      const TEMP_DIR = await makeTempDir('grace');
      const service = start({ MAGICK_BIN, TEMP_DIR, SHUTDOWN_GRACE_MS: '200' });
      const answer = convert(await service.base(), await fixture('scene.jpg')).catch((error: Error) => error);
      await toolStarted();
      service.child.kill('SIGTERM');
      expect(await service.ended()).to.equal(0);
      expect(await answer).to.be.instanceOf(Error);
      expect(await readdir(TEMP_DIR)).to.deep.equal([]);
    });
  });

  it('does not use more memory for a larger file', async () => {
    const SIZE = 200 * 1024 * 1024;
    const service = start({ MAX_FILE_BYTES: String(SIZE), TEMP_DIR: await makeTempDir('memory') });
    const base = await service.base();
    const photo = await fixture('scene.jpg');
    await convert(base, photo);
    const before = await peakRss(service.pid);
    expect((await convert(base, Buffer.concat([photo, Buffer.alloc(SIZE)], SIZE))).status).to.equal(200);
    expect((await peakRss(service.pid)) - before).to.be.below(SIZE / 2);
  });

  it('removes the folder of a process killed with SIGKILL, and keeps the folder of a running one', async () => {
    const TEMP_DIR = await makeTempDir('kill');
    const { MAGICK_BIN, started: toolStarted, open } = await gatedMagick();
    const killed = start({ MAGICK_BIN, TEMP_DIR });
    void convert(await killed.base(), await fixture('scene.jpg')).catch(() => {});
    await toolStarted();
    const live = start({ TEMP_DIR });
    await convert(await live.base(), await fixture('scene.jpg'));
    expect(await readdir(TEMP_DIR)).to.have.length(2);
    killed.child.kill('SIGKILL');
    await killed.ended();
    await open();
    await start({ TEMP_DIR }).base();
    const folders = await Promise.all(
      (await readdir(TEMP_DIR)).map((name) => readInstanceFolder(join(TEMP_DIR, name))),
    );
    const owners = folders.map((folder) => folder?.owner?.pid);
    expect(owners).to.include(live.pid);
    expect(owners).to.not.include(killed.pid);
    expect(isRunning(live.pid)).to.equal(true);
  });
});

/** Returns the peak resident memory of a process in bytes, or 0 without /proc. */
async function peakRss(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024;
}
