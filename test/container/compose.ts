import { randomInt } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { parse } from 'yaml';
import { convert, fixture, sendForm } from '../helpers/client.ts';
import { freePorts } from '../helpers/daemons.ts';
import { docker, IMAGE, inspect } from '../helpers/docker.ts';
import { extra } from '../helpers/extra.ts';
import { startOfBatch } from '../helpers/raw-http.ts';
import { eventually } from '../helpers/util.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const SOCKET = (process.env.DOCKER_HOST ?? '').replace('unix://', '');
const CLIENTS = 4;

describe('docker/compose.yaml', () => {
  const project = `imagemill-test-${randomInt(1e9)}`;
  let ports: number[] = [];
  let limit = '';
  let access = '';

  /**
   * Runs Docker Compose of Debian in a container. Local stand-ins replace the images that it would
   * pull.
   */
  const compose = (...args: string[]): Promise<string> => {
    const settings = {
      COMPOSE_PROJECT_NAME: project,
      RATE_LIMIT_PER_MINUTE: limit,
      ACCESS: access,
      PUBLISH: `127.0.0.1:${ports[0]}`,
      PUBLISH_PROXY: `127.0.0.1:${ports[1]}`,
      NGINX_IMAGE: 'imagemill-test-nginx',
      VALKEY_IMAGE: 'imagemill-test-valkey',
    };
    const environment = Object.entries(settings).flatMap(([name, value]) => ['--env', `${name}=${value}`]);
    const mounts = ['--volume', `${SOCKET}:/var/run/docker.sock`, '--volume', `${ROOT}:${ROOT}:ro`];
    const options = ['--rm', '--network', 'host', '--workdir', ROOT, ...mounts, ...environment];
    return docker('run', ...options, 'imagemill-test-compose', '--file', 'docker/compose.yaml', ...args);
  };
  const scaled = (...args: string[]) => compose('--profile', 'scale', ...args);
  const containers = async (service: string): Promise<string[]> =>
    (await scaled('ps', '--quiet', service)).split('\n').filter(Boolean);

  /** Waits for the service, and returns the address of its API. */
  const reachable = async (): Promise<string> => {
    const base = `http://127.0.0.1:${ports[0]}/api/v1`;
    await eventually(async () => (await sendForm(`${base}/health`).catch(() => undefined))?.status === 200);
    return base;
  };

  before(async () => {
    ports = await freePorts(2);
  });
  afterEach(async () => {
    await scaled('down', '--timeout', '20', '--volumes');
    access = '';
  });

  it('defines one service by default, and instances, proxy and valkey with the scale profile', async () => {
    expect(await compose('config', '--services')).to.equal('imagemill');
    const { services } = parse(await scaled('config'));
    expect(services).to.have.all.keys('imagemill', 'instances', 'proxy', 'valkey');
    expect(services.instances.deploy.replicas).to.be.above(1);
  });

  it('starts one hardened container that converts images', async () => {
    await compose('up', '--detach', '--no-build');
    const names = (
      await docker('ps', '--quiet', '--filter', `label=com.docker.compose.project=${project}`)
    ).split('\n');
    expect(names).to.have.length(1);
    const base = await reachable();
    expect((await convert(base, await fixture('scene.jpg'))).status).to.equal(200);
    expect(await isHardened(names[0] as string)).to.equal(true);
  });

  it('reads more formats, without a rate limit, with ACCESS=private', async () => {
    access = 'private';
    await compose('up', '--detach', '--no-build');
    const base = await reachable();
    const { body, headers } = await sendForm(`${base}/formats`);
    const formats = JSON.parse(body.toString());
    expect(formats.access).to.equal('private');
    expect(headers.get('x-ratelimit-limit')).to.equal(null);
    const result = await convert(base, await extra('scene.pdf'), { format: 'jxl' });
    expect(result.status, result.body.toString()).to.equal(200);
  });

  describe('with --profile scale', () => {
    let base = '';
    let photo: Buffer;
    const up = async (): Promise<void> => {
      photo = await fixture('scene.jpg');
      await scaled('up', '--detach', '--no-build', 'proxy');
      for (const name of await containers('instances'))
        await eventually(async () => (await docker('logs', name)).includes('listening on'));
      base = `http://127.0.0.1:${ports[1]}/api/v1`;
      const ready = async () => (await sendForm(`${base}/health`).catch(() => undefined))?.status === 200;
      await eventually(ready);
    };

    it('starts three hardened instances behind a proxy, with a shared rate limit and no outside network', async () => {
      limit = '';
      await up();
      const instances = await containers('instances');
      expect(instances).to.have.length(3);
      expect(await containers('imagemill')).to.have.length(0);
      for (const name of [...instances, ...(await containers('proxy')), ...(await containers('valkey'))])
        expect(await isHardened(name)).to.equal(true);
      for (const name of instances)
        await eventually(async () => (await docker('logs', name)).includes('rate limit is shared'));
      const answers: Awaited<ReturnType<typeof sendForm>>[] = [];
      // Few at a time: an instance that waits for the processor longer than for Valkey would count
      // on its own.
      while (answers.length < 70)
        answers.push(...(await Promise.all(Array.from({ length: 5 }, () => sendForm(`${base}/formats`)))));
      const passed = answers.filter(({ status }) => status === 200);
      expect(answers.filter(({ status }) => status === 429)).to.have.length(70 - passed.length);
      expect(new Set(passed.map(({ headers }) => headers.get('x-ratelimit-remaining'))).size).to.equal(
        passed.length,
      );
      expect(passed.length).to.be.within(50, 60);
      for (const name of instances) {
        expect(await docker('logs', name), 'each had some').to.include('/api/v1/formats');
      }
      expect((await inspect(`${project}_back`)).Internal, 'leads nowhere').to.equal(true);
      for (const path of ['/metrics', '/readyz'])
        expect((await sendForm(new URL(path, base).href)).status).to.equal(404);
    });

    it('converts for a third address while two addresses hold twelve stalled uploads', async () => {
      limit = '0';
      await up();
      const start = startOfBatch(photo, 20_000_000).toString('base64');
      const client = `for (let n = 0; n < 6; n += 1) {
        const socket = require('node:net').connect(8080, 'proxy', () => {
          socket.write(Buffer.from(process.argv[1], 'base64'));
          setInterval(() => socket.write('x'), 4000);
        });
      }`;
      const run = ['run', '--detach', '--network', `${project}_front`, '--entrypoint', 'node', IMAGE];
      const clients = [
        await docker(...run, '--eval', client, start),
        await docker(...run, '--eval', client, start),
      ];
      try {
        const instances = await containers('instances');
        const received = async () =>
          Promise.all(instances.map((name) => docker('exec', name, 'sh', '-c', 'ls -R /tmp')));
        await eventually(async () => ((await received()).join('\n').match(/^in$/gm) ?? []).length === 12);
        const [proxy = ''] = await containers('proxy');
        const open = await docker('exec', proxy, 'sh', '-c', 'ls -l /proc/[0-9]*/fd 2>&1 || true');
        expect(open).to.include('socket:').and.not.include('client_body');
        const answers = await Promise.all(Array.from({ length: 6 }, () => convert(base, photo)));
        expect(answers.map(({ status }) => status)).to.deep.equal(Array(6).fill(200));
      } finally {
        await docker('rm', '--force', ...clients);
      }
    });

    it('answers every request with 200 while one instance is stopped under load', async () => {
      limit = '0';
      await up();
      const [victim = ''] = await containers('instances');
      const ends: (number | string)[] = [];
      let last = Number.POSITIVE_INFINITY;
      const client = async () => {
        while (ends.length < last) {
          const end = await convert(base, photo).then(({ status }) => status, String);
          ends.push(end);
        }
      };
      const clients = Promise.all(Array.from({ length: CLIENTS }, client));
      await eventually(() => ends.length >= CLIENTS);
      await docker('stop', '--time', '20', victim);
      last = ends.length + 2 * CLIENTS;
      await clients;
      expect(ends.filter((end) => end !== 200)).to.deep.equal([]);
      expect((await inspect(victim)).State.ExitCode).to.equal(0);
    });
  });
});

async function isHardened(name: string): Promise<boolean> {
  const { HostConfig, Config } = await inspect(name);
  expect(HostConfig).to.include({ ReadonlyRootfs: true, Privileged: false });
  expect(HostConfig.CapDrop).to.deep.equal(['ALL']);
  expect(HostConfig.SecurityOpt).to.deep.equal(['no-new-privileges:true']);
  expect(HostConfig.PidsLimit).to.be.within(1, 256);
  expect(Config.User).to.match(/^[1-9]\d*:\d+$/);
  return true;
}
