import { randomInt } from 'node:crypto';
import { expect } from 'chai';
import { type ClientResponse, convert, fixture, sendForm } from '../helpers/client.ts';
import { type Daemon, freePorts, startNginx, startRedis } from '../helpers/daemons.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { type ServiceProcess, startProcess } from '../helpers/process.ts';
import { eventually } from '../helpers/util.ts';

const INSTANCES = 3;
/** Number of concurrent requests. */
const CLIENTS = 2;
/** Number of requests after the event under test, so that its consequences show. */
const REQUESTS_AFTER = 20;

/** Formats the nginx configuration for several instances; a test sets its client address in X-Test-Client. */
const proxy = (port: number, instances: readonly number[]): string => `
upstream imagemill {
  # Try every instance for every request. With the default, nginx skips an instance for a while after a failure, and could
  # skip all of them during a fast rolling restart.
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
  /** The status, or the message of the network error. */
  readonly end: number | string;
  readonly began: number;
  readonly ended: number;
}

describe('three instances behind a proxy, with Redis', () => {
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

  /** Sends conversions, each from its own client address, during and after `happens`; returns all results. */
  async function underLoad(happens: () => Promise<void>): Promise<Sent[]> {
    const sent: Sent[] = [];
    let last = Number.POSITIVE_INFINITY;
    const client = async (): Promise<void> => {
      while (sent.length < last) {
        const began = performance.now();
        const headers = { 'x-test-client': `2001:db8:${randomInt(65536).toString(16)}:${sent.length}::1` };
        const end = await convert(base(), photo, {}, 'a.jpg', headers).then(
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

  it('share one limit of 60 requests a minute per client', async () => {
    const answers: ClientResponse[] = [];
    // Few at a time: an instance that waits for the processor longer than for Redis would count on its own.
    while (answers.length < 66)
      answers.push(...(await Promise.all(Array.from({ length: 6 }, () => sendForm(`${base()}/formats`)))));
    const passed = answers.filter(({ status }) => status === 200);
    expect(passed).to.have.length(60);
    expect(answers.filter(({ status }) => status === 429)).to.have.length(6);
    const left = passed.map(({ headers }) => Number(headers.get('x-ratelimit-remaining')));
    expect(left.sort((one, other) => one - other)).to.deep.equal([...Array(60).keys()]);
    expect(new Set(passed.map(({ headers }) => headers.get('x-instance'))).size).to.equal(INSTANCES);
  });

  it('lose no request when Redis is killed under load, and share counters again after its restart', async () => {
    const alone = 'this instance counts requests on its own';
    const together = 'rate limit is shared';
    /** Returns whether this message is the last of both in the log of every instance. */
    const isLast = (message: string) =>
      instances.every((instance) => {
        const output = instance.output();
        const other = message === alone ? together : alone;
        return output.lastIndexOf(message) > output.lastIndexOf(other);
      });
    const sent = await underLoad(async () => {
      await redis.stop();
      await eventually(() => isLast(alone));
      redis = await startRedis(redis.port);
      await eventually(() => isLast(together));
    });
    expect(lost(sent)).to.deep.equal([]);
    const fresh = { headers: { 'x-test-client': '203.0.113.9' } };
    const left = [];
    for (let request = 0; request < 4; request += 1)
      left.push((await sendForm(`${base()}/formats`, fresh)).headers.get('x-ratelimit-remaining'));
    expect(left).to.deep.equal(['59', '58', '57', '56']);
  });

  it('lose only the requests in progress of an instance killed with SIGKILL', async () => {
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

  it('lose no request during a rolling restart under load', async () => {
    const sent = await underLoad(async () => {
      for (const [at, old] of instances.entries()) {
        old.child.kill('SIGTERM');
        expect(await old.ended(), 'exit code').to.equal(0);
        instances[at] = await startInstance(at);
        await instances[at].base();
      }
    });
    expect(lost(sent)).to.deep.equal([]);
  });
});
