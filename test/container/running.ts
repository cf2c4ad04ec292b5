import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import sharp from 'sharp';
import { convert, fixture, sendForm } from '../helpers/client.ts';
import { docker, HARDENED, inspect, TMPFS, useContainers } from '../helpers/docker.ts';
import { eventually } from '../helpers/util.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/**
 * Command that runs the test files that do not depend on settings, one by one: they are one client,
 * which shares its disk space. Files with the tag `@imagemagick-7` run with the same tools in
 * `npm run test:debian-13`.
 */
const SUITE =
  'exec mocha --no-parallel $(grep -L "^// @imagemagick-7" $(grep -l "useService()" test/service/*.test.ts))';
/** Expected layers of the sandbox: those that need no privileges. */
const SANDBOX_LAYERS = {
  limits: 'setrlimit',
  privileges: 'no-new-privs',
  files: 'landlock',
  network: 'seccomp',
  syscalls: 'allow-list',
  processes: 'none',
};
/** Timeout of `docker stop`; the container must exit by itself before. */
const STOP_TIMEOUT_S = '300';

describe('a hardened container', () => {
  const start = useContainers();
  const convertStatus = async (base: string, name: string, format: string): Promise<number> =>
    (await convert(base, await fixture(name), { format })).status;
  const readyz = async (base: string) =>
    JSON.parse((await sendForm(new URL('/readyz', base).href)).body.toString());

  describe("as the image's own user", () => {
    let container: Awaited<ReturnType<typeof start>>;
    before(async () => {
      container = await start(HARDENED, { SANDBOX: 'on' });
    });

    it('sandboxes the tools with Landlock and seccomp', async () => {
      expect((await readyz(container.base)).sandbox).to.deep.equal(SANDBOX_LAYERS);
    });

    it('has no capabilities, at most 256 processes and a read-only file system', async () => {
      const status = await container.sh('cat /proc/1/status');
      expect(status).to.match(/^Uid:\s+10001\s+10001\s+10001\s+10001$/m);
      for (const fact of [/^CapBnd:\s+0+$/m, /^CapEff:\s+0+$/m, /^NoNewPrivs:\s+1$/m, /^Seccomp:\s+2$/m])
        expect(status).to.match(fact);
      const maxProcesses = await container.sh(
        'cat /sys/fs/cgroup/pids/pids.max 2>/dev/null || cat /sys/fs/cgroup/pids.max',
      );
      expect(maxProcesses).to.equal('256');
      const refused = await container.sh('touch /app/x /var/tmp/x 2>&1 || true');
      expect(refused.match(/Read-only file system/g)).to.have.length(2);
    });

    it('runs tini, which reaps orphaned processes', async () => {
      const pid = await container.sh('sleep 0.2 >/dev/null & echo $!');
      await eventually(async () => (await container.sh(`[ -e /proc/${pid} ] || echo gone`)) === 'gone');
      expect(await container.sh('cat /proc/1/comm')).to.equal('tini');
    });

    it('becomes healthy, and its health check exits with 1 when nothing listens', async () => {
      const { Config } = await inspect(container.name);
      const [, ...check] = Config.Healthcheck.Test;
      await docker('exec', container.name, ...check);
      const failed = await docker('exec', '--env', 'PORT=1', container.name, ...check).catch(
        (error) => error,
      );
      expect(failed.code).to.equal(1);
      const health = async () => (await inspect(container.name)).State.Health.Status;
      await eventually(async () => (await health()) === 'healthy');
    });
  });

  it('passes the service tests without a network', async () => {
    const container = await start([...HARDENED, '--network', 'none'], { SANDBOX: 'on' });
    const interfaces = (await container.sh('cat /proc/net/dev')).split('\n').slice(2);
    expect(interfaces.map((line) => line.split(':')[0]?.trim())).to.deep.equal(['lo']);
    // Run the suite in the network namespace of the container: the port is not reachable from
    // outside.
    const { Pid } = (await inspect(container.name)).State;
    const inside = ['--target', String(Pid), '--net', 'sh', '-c'];
    const { status, stdout, stderr } = spawnSync('nsenter', [...inside, SUITE], {
      cwd: ROOT,
      encoding: 'utf8',
      env: { ...process.env, BASE_URL: container.base, MAGICK_VERSION: '7' },
    });
    expect(status, stdout + stderr).to.equal(0);
    expect(Number(/(\d+) passing/.exec(stdout)?.[1])).to.be.above(500);
  }).timeout(1_800_000); // several hundred tests

  for (const user of ['12345:0', '4711:4711']) {
    it(`converts images and sandboxes the tools as user ${user}`, async () => {
      const container = await start([...HARDENED, '--user', user], { SANDBOX: 'on' });
      expect(await container.sh('id -u')).to.equal(user.split(':')[0]);
      expect((await readyz(container.base)).sandbox).to.deep.equal(SANDBOX_LAYERS);
      for (const [name, format] of [
        ['scene.avif', 'webp'],
        ['scene.svg', 'pdf'],
        ['scene.gif', 'jpg'],
      ] as const)
        expect(await convertStatus(container.base, name, format), name).to.equal(200);
    });
  }

  it('writes nothing outside /tmp on a writable file system', async () => {
    const container = await start(TMPFS);
    for (const name of ['scene.svg', 'scene.jpg', 'scene.tiff'])
      expect(await convertStatus(container.base, name, 'png')).to.equal(200);
    await container.sh('true');
    expect(await docker('diff', container.name)).to.equal('');
    await container.sh('touch /var/tmp/x');
    expect(await docker('diff', container.name), 'what it says of a file').to.include('/var/tmp/x');
  });

  it('finishes running conversions and exits with 0 when it is stopped', async () => {
    const container = await start(HARDENED, { SHUTDOWN_GRACE_MS: '240000' });
    const slow = convert(container.base, await slowImage(), { format: 'webp', quality: '100' });
    await eventually(async () => {
      const { body } = await sendForm(new URL('/metrics', container.base).href);
      return /^imagemill_conversions_running 1$/m.test(body.toString());
    });
    await docker('stop', '--time', STOP_TIMEOUT_S, container.name);
    expect((await slow).status).to.equal(200);
    expect((await inspect(container.name)).State).to.include({ ExitCode: 0, OOMKilled: false });
    const lines = (await container.log()).map(({ msg, route }) => route ?? msg);
    expect(lines.indexOf('shutting down'), lines.join()).to.be.within(
      0,
      lines.lastIndexOf('/api/v1/convert'),
    );
  });
});

/** Creates a noisy JPEG of 24 megapixels, which takes seconds to convert. */
function slowImage(): Promise<Buffer> {
  const noise = { type: 'gaussian', mean: 128, sigma: 12 } as const;
  return sharp({ create: { width: 6000, height: 4000, channels: 3, background: '#888', noise } })
    .jpeg({ quality: 60 })
    .toBuffer();
}
