import { randomInt } from 'node:crypto';
import { expect } from 'chai';
import { fixture, sendForm } from '../helpers/client.ts';
import { type Daemon, freePorts, startNginx, startRedis } from '../helpers/daemons.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { type ServiceProcess, startProcess } from '../helpers/process.ts';
import { eventually } from '../helpers/util.ts';

const INSTANCES = 3;
/** Requests under way at once. */
const CLIENTS = 4;
/** After whatever happens, so that its consequences are seen. */
const REQUESTS_AFTER = 20;

/** What a proxy in front of several instances is told; a test may call itself a client of its own. */
const proxy = (port: number, instances: readonly number[]): string => `
upstream imagemill {
  # Every instance is tried for every request: left out for a while after a failure, as is usual, all of them could be
  # left out at once when they are replaced faster than that.
  ${instances.map((instance) => `server 127.0.0.1:${instance} max_fails=0;`).join('\n  ')}
  keepalive 16;
}
map $http_x_test_client $client { default $http_x_test_client; '' $remote_addr; }
server {
  listen 127.0.0.1:${port};
  client_max_body_size 211m;
  location / {
    proxy_pass http://imagemill;
    proxy_http_version 1.1;
    proxy_set_header Connection '';
    proxy_set_header X-Forwarded-For $client;
    # A conversion leaves nothing behind: whatever went wrong, another instance may do it again.
    proxy_next_upstream error timeout http_502 http_503 non_idempotent;
    add_header X-Instance $upstream_addr always;
  }
}`;

interface Sent {
  /** A status, or what went wrong. */
  readonly end: number | string;
  readonly began: number;
  readonly ended: number;
}

describe('three instances behind a proxy, with Redis', function () {
  this.timeout(60_000);
  let ports: number[] = [];
  let redis: Daemon;
  let nginx: Daemon;
  let photo: Buffer;
  const instances: ServiceProcess[] = [];

  const startInstance = async (at: number): Promise<ServiceProcess> =>
    startProcess({
      PORT: String(ports[at]),
      TEMP_DIR: await makeTempDir('instance'),
      REDIS_URL: `redis://127.0.0.1:${redis.port}`,
      RATE_LIMIT_PER_MINUTE: '60',
      TRUST_PROXY: '1',
      CONCURRENCY: '2',
    });
  const base = () => `http://127.0.0.1:${nginx.port}/api/v1`;

  before(async () => {
    const [redisPort = 0, nginxPort = 0, ...own] = await freePorts(2 + INSTANCES);
    ports = own;
    redis = await startRedis(redisPort);
    for (const at of ports.keys()) instances.push(await startInstance(at));
    await Promise.all(instances.map((instance) => instance.base()));
    nginx = await startNginx(nginxPort, proxy(nginxPort, ports));
    photo = await fixture('scene.jpg');
  });
  after(async () => {
    for (const { child } of instances) child.kill('SIGKILL');
    await Promise.all(instances.map((instance) => instance.ended()));
    await nginx?.stop();
    await redis?.stop();
  });

  /** What becomes of conversions, each for a client of its own, while and after `happens`. */
  async function underLoad(happens: () => Promise<void>): Promise<Sent[]> {
    const sent: Sent[] = [];
    let last = Number.POSITIVE_INFINITY;
    const client = async (): Promise<void> => {
      while (sent.length < last) {
        const began = performance.now();
        const body = new FormData();
        body.append('file', new Blob([new Uint8Array(photo)]), 'a.jpg');
        const headers = { 'x-test-client': `2001:db8:${randomInt(65536).toString(16)}:${sent.length}::1` };
        const end = await sendForm(`${base()}/convert`, { method: 'POST', headers, body }).then(
          ({ status }) => status,
          (error: Error) => error.message,
        );
        sent.push({ end, began, ended: performance.now() });
      }
    };
    const clients = Promise.all(Array.from({ length: CLIENTS }, client));
    try {
      await eventually(() => sent.length >= CLIENTS);
      await happens();
    } finally {
      last = sent.length + REQUESTS_AFTER;
      await clients;
    }
    return sent;
  }
  const lost = (sent: readonly Sent[]) => sent.filter(({ end }) => end !== 200);

  it('let 60 requests a minute of one client through in total, whichever instance answers', async () => {
    const answers = await Promise.all(Array.from({ length: 66 }, () => sendForm(`${base()}/formats`)));
    const passed = answers.filter(({ status }) => status === 200);
    expect(passed).to.have.length(60);
    expect(answers.filter(({ status }) => status === 429)).to.have.length(6);
    const left = passed.map(({ headers }) => Number(headers.get('x-ratelimit-remaining')));
    expect(left.sort((one, other) => one - other)).to.deep.equal([...Array(60).keys()]);
    expect(new Set(passed.map(({ headers }) => headers.get('x-instance'))).size).to.equal(INSTANCES);
  });

  it('lose nothing when Redis is killed under load, and count together again when it is back', async () => {
    const alone = 'requests are counted here alone';
    const together = 'requests are counted together';
    const sent = await underLoad(async () => {
      await redis.stop();
      await eventually(() => instances.every((instance) => instance.output().includes(alone)));
      redis = await startRedis(redis.port);
      await eventually(() => instances.every((instance) => instance.output().split(together).length === 3));
    });
    expect(lost(sent)).to.deep.equal([]);
    const fresh = { headers: { 'x-test-client': '203.0.113.9' } };
    const left = [];
    for (let request = 0; request < 4; request += 1)
      left.push((await sendForm(`${base()}/formats`, fresh)).headers.get('x-ratelimit-remaining'));
    expect(left).to.deep.equal(['59', '58', '57', '56']);
  });

  it('lose only what was under way in an instance that is killed with -9', async () => {
    let killed = 0;
    const sent = await underLoad(async () => {
      const [victim] = instances as [ServiceProcess];
      killed = performance.now();
      victim.child.kill('SIGKILL');
      expect(await victim.ended()).to.equal('SIGKILL');
    });
    const others = lost(sent).filter(({ began, ended }) => began > killed || ended < killed);
    expect(others, 'lost, and not under way').to.deep.equal([]);
    instances[0] = await startInstance(0);
    await instances[0].base();
  });

  it('lose nothing while one after the other is replaced under load', async () => {
    const sent = await underLoad(async () => {
      for (const [at, old] of instances.entries()) {
        old.child.kill('SIGTERM');
        expect(await old.ended(), 'ended by itself').to.equal(0);
        instances[at] = await startInstance(at);
        await instances[at].base();
      }
    });
    expect(lost(sent)).to.deep.equal([]);
  });
});
