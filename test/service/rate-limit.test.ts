// @full
import { once } from 'node:events';
import { mock } from 'node:test';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { type ClientResponse, convert, fixture, sendForm } from '../helpers/client.ts';
import { dial, statuses } from '../helpers/raw-http.ts';
import { type OwnService, startService } from '../helpers/service.ts';
import { eventually } from '../helpers/util.ts';

describe('rate limit', () => {
  let service: OwnService;
  let now = 0;
  const start = async (settings: Record<string, string>) => {
    now = 1_000_000;
    service = await startService(settings, () => now);
  };
  afterEach(() => service.stop());

  const health = (headers: Record<string, string> = {}) => sendForm(`${service.base}/health`, { headers });
  const remaining = ({ headers }: ClientResponse) => headers.get('x-ratelimit-remaining');
  /** Returns the requests that are left after one with this forwarded address. */
  const from = async (address: string) => remaining(await health({ 'x-forwarded-for': address }));

  it('allows 60 requests a minute by default and returns 429 for the 61st', async () => {
    await start({ RATE_LIMIT_PER_MINUTE: '' });
    const answers: ClientResponse[] = [];
    for (let request = 1; request <= 61; request += 1) answers.push(await health());

    expect(answers.map(({ status }) => status)).to.deep.equal([...Array(60).fill(200), 429]);
    expect(answers.slice(0, 60).map(remaining)).to.deep.equal([...Array(60).keys()].reverse().map(String));
    const last = answers[60] as ClientResponse;
    const wait = Number(last.headers.get('retry-after'));
    expect(wait).to.be.within(1, 60);
    expect(last.message).to.equal(`Too many requests: at most 60 per minute. Try again in ${wait} seconds.`);
    expect(remaining(last)).to.equal('0');
  });

  for (const [path, settings] of [
    ['/nothing', { RATE_LIMIT_PER_MINUTE: '0' }],
    ['/metrics', { RATE_LIMIT_PER_MINUTE: '0' }],
    ['/api/v1/health', { RATE_LIMIT_PER_MINUTE: '1' }], // refused
  ] as const)
    it(`answers others first when one client sends many requests for ${path}`, async () => {
      await start({ ...settings, TRUST_PROXY: 'loopback' });
      const order: string[] = [];
      const get = async (address: string) => {
        await sendForm(new URL(path, service.base).href, { headers: { 'x-forwarded-for': address } });
        order.push(address);
      };
      for (let request = 1; request <= 2; request += 1) await get('192.0.2.1');
      await Promise.all([...Array<string>(12).fill('192.0.2.1'), '192.0.2.2'].map(get));
      expect(order.slice(2).indexOf('192.0.2.2')).to.be.below(6); // one of 13, which the client would get after 240 ms
    });

  for (const path of ['/docs', '/api/v1/formats'])
    it(`answers others in turn when one client sends many requests for ${path}, which are not refused`, async () => {
      await start({ RATE_LIMIT_PER_MINUTE: '0' });
      const clients = [...Array<string>(12).fill('127.0.0.1'), '127.0.0.2'];
      const sockets = await Promise.all(clients.map((address) => dial(service.base, address)));
      const connections = promisify(service.server.getConnections.bind(service.server));
      await eventually(async () => (await connections()) === clients.length);
      const order: string[] = [];
      const answers = sockets.map(async (socket, at) => {
        expect(statuses(String((await once(socket, 'data'))[0]))).to.deep.equal([200]);
        order.push(clients[at] as string);
        socket.destroy();
      });
      let ms = 0;
      const clock = mock.method(performance, 'now', () => (ms += 3)); // one start in each turn of the event loop
      for (const socket of sockets) socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
      await Promise.all(answers).finally(() => clock.mock.restore());
      expect(order.indexOf('127.0.0.2'), String(order)).to.be.within(1, 2);
    });

  it('resets one minute after the first request', async () => {
    await start({ RATE_LIMIT_PER_MINUTE: '2' });
    expect((await health()).status).to.equal(200);
    now += 59_000;
    expect((await health()).status).to.equal(200);
    now += 999;
    expect((await health()).status).to.equal(429);
    now += 1;
    const fresh = await health();
    expect([fresh.status, remaining(fresh)]).to.deep.equal([200, '1']);
  });

  it('sends the reset time in Unix seconds, constant within a window', async () => {
    await start({ RATE_LIMIT_PER_MINUTE: '5' });
    const before = Math.floor(Date.now() / 1000);
    const resets = [await health(), await health()].map(({ headers }) =>
      Number(headers.get('x-ratelimit-reset')),
    );
    expect(resets[0]).to.equal(resets[1]);
    expect(resets[0]).to.be.within(before + 60, Math.ceil(Date.now() / 1000) + 60);
  });

  it('sends its headers on every API response, including all errors', async () => {
    await start({ RATE_LIMIT_PER_MINUTE: '100' });
    const photo = await fixture('scene.jpg');
    const statuses: number[] = [];
    for (const answer of [
      await health(),
      await convert(service.base, photo),
      await convert(service.base, photo, { quality: '0' }),
      await convert(service.base, Buffer.from('text')),
      await convert(service.base, Buffer.concat([photo, Buffer.alloc(11 * 1024 * 1024)])),
      await sendForm(`${service.base}/nothing`),
      await sendForm(`${service.base}/convert`),
      await sendForm(`${service.base}/convert`, { method: 'OPTIONS' }),
    ]) {
      statuses.push(answer.status);
      expect(answer.headers.get('x-ratelimit-limit')).to.equal('100');
      expect(remaining(answer)).to.equal(String(100 - statuses.length));
      expect(answer.headers.get('x-ratelimit-reset')).to.match(/^\d{10}$/);
    }
    expect(statuses).to.deep.equal([200, 200, 400, 415, 413, 404, 405, 204]);
  });

  describe('outside the API', () => {
    const send = (path: string) => sendForm(new URL(path, service.base).href);
    /**
     * Sends this many requests for a path on one connection, four at a time, and returns the
     * statuses.
     */
    const sendMany = async (path: string, requests: number) => {
      const socket = await dial(service.base);
      const all: number[] = [];
      while (all.length < requests) {
        const expected = Math.min(4, requests - all.length);
        socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(expected));
        let text = '';
        while (statuses(text).length < expected) text += String((await once(socket, 'data'))[0]);
        all.push(...statuses(text));
      }
      socket.destroy();
      return all;
    };

    it('allows 600 requests a minute, which the API does not count, and returns 429 for the 601st', async () => {
      await start({ RATE_LIMIT_PER_MINUTE: '5' });
      expect(await sendMany('/manifest.webmanifest', 600)).to.deep.equal(Array(600).fill(200));
      const { status, headers, body } = await send('/metrics');
      const wait = Number(headers.get('retry-after'));
      expect(wait).to.be.within(1, 60);
      expect([status, headers.has('x-ratelimit-limit'), JSON.parse(String(body)).error]).to.deep.equal([
        429,
        false,
        {
          code: 429,
          message: `Too many requests: at most 600 per minute. Try again in ${wait} seconds.`,
          reason: 'rate_limited',
          retryable: true,
          limit: 600,
          setting: 'RATE_LIMIT_PER_MINUTE',
        },
      ]);
      expect((await send('/docs')).status).to.equal(429);
      expect(remaining(await health())).to.equal('4');
      for (const path of ['/livez', '/readyz']) expect((await send(path)).status, path).to.equal(200);
      now += 60_000;
      expect((await send('/metrics')).status).to.equal(200);
    });

    it('counts requests for unknown paths, and returns 429 for the 601st', async () => {
      await start({ RATE_LIMIT_PER_MINUTE: '5' });
      expect(await sendMany('/nothing', 5)).to.deep.equal(Array(5).fill(404));
      await sendMany('/manifest.webmanifest', 590); // not slowed down as 404s are
      expect(await sendMany('/nothing', 6)).to.deep.equal([...Array(5).fill(404), 429]);
    });

    it('has no limit with RATE_LIMIT_PER_MINUTE=0, and neither has the API', async () => {
      await start({ RATE_LIMIT_PER_MINUTE: '0' });
      expect(await sendMany('/manifest.webmanifest', 601)).to.deep.equal(Array(601).fill(200));
      const { status, headers } = await health();
      expect([status, headers.has('x-ratelimit-limit')]).to.deep.equal([200, false]);
    });
  });

  it('ignores X-Forwarded-For without a trusted proxy', async () => {
    await start({ RATE_LIMIT_PER_MINUTE: '5' });
    await from('203.0.113.1');
    expect(await from('203.0.113.2')).to.equal('3');
  });

  it('counts X-Forwarded-For behind a trusted proxy, IPv6 by /64', async () => {
    await start({ RATE_LIMIT_PER_MINUTE: '5', TRUST_PROXY: 'loopback' });
    expect(await from('203.0.113.1')).to.equal('4');
    expect(await from('::ffff:203.0.113.1')).to.equal('3');
    expect(await from('203.0.113.2')).to.equal('4');
    expect(await from('2001:db8:1:2::1')).to.equal('4');
    expect(await from('2001:db8:1:2:ffff::9')).to.equal('3');
    expect(await from('2001:db8:1:3::1')).to.equal('4');
  });

  it('reads only the last 2 kB of X-Forwarded-For, which the nearest proxies have written', async () => {
    await start({ RATE_LIMIT_PER_MINUTE: '9', TRUST_PROXY: '1' });
    const forged = (at: number) => `${`192.0.2.${at}, `.repeat(1000)}203.0.113.1`;
    expect([await from(forged(1)), await from(forged(2))]).to.deep.equal(['8', '7']);
    await service.stop();
    await start({ RATE_LIMIT_PER_MINUTE: '9', TRUST_PROXY: 'true' });
    const long = (first: string) => `${first}, ${'192.0.2.1, '.repeat(200)}192.0.2.2`;
    expect([await from(long('203.0.113.1')), await from(long('203.0.113.2'))]).to.deep.equal(['8', '7']);
  });

  it('counts an invalid forwarded address as the proxy', async () => {
    await start({ RATE_LIMIT_PER_MINUTE: '9', TRUST_PROXY: '1' });
    expect([await from('garbage'), await from('127.0.0.1')]).to.deep.equal(['8', '7']);
  });

  it('trusts a listed proxy whose address has a port', async () => {
    await start({ RATE_LIMIT_PER_MINUTE: '9', TRUST_PROXY: 'loopback,10.0.0.0/8' });
    expect(await from('203.0.113.1, 10.1.2.3:4444')).to.equal('8');
    expect(await from('203.0.113.2:99, 10.1.2.3:5555')).to.equal('8');
    expect(await from('203.0.113.1:1, 10.9.9.9')).to.equal('7');
  });
});
