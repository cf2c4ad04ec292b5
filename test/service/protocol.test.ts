// @slow
import { once } from 'node:events';
import { expect } from 'chai';
import { fixture, formOf, postForm, sendForm } from '../helpers/client.ts';
import { gatedMagick } from '../helpers/fake-magick.ts';
import {
  conversionRequest,
  dial,
  exchange,
  FORM_TYPE,
  formBody,
  parseAnswer,
  type RawAnswer,
  readAll,
  statuses,
} from '../helpers/raw-http.ts';
import { useOwnServices } from '../helpers/service.ts';
import { eventually } from '../helpers/util.ts';

const HEAD = 'Host: x\r\nConnection: close\r\n';

/** Parses the error of a response body in the error format. */
const errorIn = (rest: string): { code: number; message: string } => JSON.parse(rest).error;

describe('HTTP protocol', () => {
  const { start, startShared, current, nothingLeft } = useOwnServices();
  const origin = () => new URL(current().base).origin;
  const send = async (text: string) => parseAnswer(await exchange(current().base, text));

  describe('with Expect: 100-continue', () => {
    const post = (path: string, headers: string) =>
      `POST ${path} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n${headers}\r\n`;
    const long = 'Content-Length: 5000000\r\n';

    for (const [status, why, request] of [
      [404, 'for an unknown path', post('/nothing', FORM_TYPE + long)],
      [405, 'for another method', post('/api/v1/health', FORM_TYPE + long)],
      [415, 'for an encoded body', post('/api/v1/convert', `${FORM_TYPE}${long}Content-Encoding: gzip\r\n`)],
      [400, 'for a body that is not a form', post('/api/v1/convert', `Content-Type: text/plain\r\n${long}`)],
      [400, 'for a field in the query', post('/api/v1/convert?format=jpg', FORM_TYPE + long)],
      [
        413,
        'for a body longer than every file may be',
        post('/api/v1/convert', `${FORM_TYPE}Content-Length: 99000000\r\n`),
      ],
    ] as const) {
      it(`returns ${status} instead of 100 ${why}`, async () => {
        await startShared({});
        const socket = await dial(current().base);
        socket.write(request);
        const [first] = (await once(socket, 'data')) as [Buffer];
        expect(statuses(String(first))).to.deep.equal([status]);
        expect(parseAnswer(String(first)).headers.get('connection')).to.equal('close');
        socket.destroy();
        await nothingLeft();
      });
    }

    it('returns 100, then the result, and keeps the connection open', async () => {
      await startShared({});
      const body = formBody(await fixture('scene.jpg'));
      const socket = await dial(current().base);
      let text = '';
      socket.on('data', (data) => {
        text += data.toString('latin1');
      });
      socket.write(post('/api/v1/convert', `${FORM_TYPE}Content-Length: ${body.length}\r\n`));
      await eventually(() => text === 'HTTP/1.1 100 Continue\r\n\r\n');
      socket.write(body);
      await eventually(() => statuses(text).length === 2);
      socket.write(`GET /api/v1/health HTTP/1.1\r\n${HEAD}\r\n`);
      await once(socket, 'close');
      expect(statuses(text)).to.deep.equal([100, 200, 200]);
    });
  });

  describe('for a request rejected before the app', () => {
    const REJECTED = [
      [400, 'is no HTTP', 'HELLO\r\n\r\n'],
      [408, 'does not end', 'GET /api/v1/health HTTP/1.1\r\n'],
      [431, 'has headers without end', `GET / HTTP/1.1\r\nX: ${'x'.repeat(70_000)}`],
      [431, 'has headers above 16 kB', `GET / HTTP/1.1\r\n${HEAD}X: ${'x'.repeat(16_400)}\r\n\r\n`],
      [501, 'has an unknown method', `FOO /api/v1/health HTTP/1.1\r\n${HEAD}\r\n`],
      [501, 'has a known method in lower case', `get /api/v1/health HTTP/1.1\r\n${HEAD}\r\n`],
      [501, 'is CONNECT', 'CONNECT example.com:80 HTTP/1.1\r\nHost: example.com:80\r\n\r\n'],
    ] as const;
    const QUICK = { UPLOAD_TIMEOUT_MS: '1000' };
    const remaining = ({ headers }: Pick<RawAnswer, 'headers'>) => headers.get('x-ratelimit-remaining');

    for (const [status, what, text] of REJECTED) {
      it(`returns ${status} in the error format with Date, and no headers of the API, when it ${what}`, async () => {
        await startShared({ ...QUICK, RATE_LIMIT_PER_MINUTE: '60' });
        const { headers, rest, ...answer } = await send(text);
        expect([answer.status, errorIn(rest).code]).to.deep.equal([status, status]);
        expect(headers.get('content-type')).to.equal('application/json; charset=utf-8');
        expect(headers.get('connection')).to.equal('close');
        expect(headers.get('x-request-id')).to.match(/^[\w-]{36}$/);
        expect(Math.abs(Date.parse(headers.get('date') ?? '') - Date.now())).to.be.below(60_000);
        expect(headers.has('access-control-allow-origin')).to.equal(false);
        expect(remaining({ headers })).to.equal(null);
      });
    }

    it('does not count, nor does a connection that never sent anything, which is closed without a response', async () => {
      await start({ ...QUICK, RATE_LIMIT_PER_MINUTE: '60' });
      await Promise.all(REJECTED.map(([, , text]) => send(text)));
      expect(await exchange(current().base, '')).to.equal('');
      expect(remaining(await sendForm(`${current().base}/health`))).to.equal('59');
    });
  });

  it('returns 400 unless there is one valid Host in HTTP/1.1, with the API headers on API paths', async () => {
    await start({ RATE_LIMIT_PER_MINUTE: '60' });
    for (const [at, head] of [
      'Connection: close\r\n',
      `${HEAD}Host: y\r\n`,
      'Connection: close\r\nHost: a b/c\r\n',
    ].entries()) {
      const { status, headers, rest } = await send(`GET /api/v1/health HTTP/1.1\r\n${head}\r\n`);
      expect([status, errorIn(rest).message]).to.deep.equal([
        400,
        'The request must have one valid Host header.',
      ]);
      expect(headers.get('x-ratelimit-remaining')).to.equal(String(59 - at));
      expect(headers.get('access-control-allow-origin')).to.equal('*');
      expect((await send(`GET /livez HTTP/1.1\r\n${head}\r\n`)).status).to.equal(400);
    }
  });

  it('accepts HTTP/1.0 without Host, and every valid form of Host', async () => {
    await startShared({});
    expect((await send('GET /api/v1/health HTTP/1.0\r\n\r\n')).status).to.equal(200);
    for (const host of [
      '',
      'example.com:80',
      '[2001:db8::1]:3000',
      '127.0.0.1',
      'a_b.example',
      'xn--bcher-kva.example',
    ])
      expect(
        (await send(`GET /livez HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)).status,
        host,
      ).to.equal(200);
  });

  describe('for the target of a request', () => {
    it('returns 400 if it is not valid, and counts the request on every path', async () => {
      await start({ RATE_LIMIT_PER_MINUTE: '60' });
      for (const [at, target] of [
        '/metrics#x', // proxies may read it as another path
        'http://x/livez#x',
        'http://',
        'http://?x',
        'http://[::1/livez',
        'http://a:b:c/livez',
        'http://x:99999/livez',
      ].entries()) {
        const { status, headers, rest } = await send(`GET ${target} HTTP/1.1\r\n${HEAD}\r\n`);
        expect([status, errorIn(rest).message], target).to.deep.equal([
          400,
          'The request is not valid HTTP.',
        ]);
        expect(headers.get('x-request-id')).to.match(/^[\w-]{36}$/);
        expect(headers.get('x-ratelimit-remaining')).to.equal(String(59 - at));
      }
    });

    for (const [target, status, content] of [
      ['http://x/livez', 200, '"ok"'],
      ['HTTPS://x:80/livez?a=b/c', 200, '"ok"'],
      ['http://x/api/v1/../../livez', 404, '"error"'],
      ['http://x//livez', 404, '"error"'],
      ['http://x?a=/livez', 200, '<!doctype html>'],
      ['http://%@x/docs', 200, '<!doctype html>'],
    ] as const)
      it(`returns ${status} for the absolute URL ${target}, with its exact path`, async () => {
        await startShared({});
        const { rest, ...answer } = await send(`GET ${target} HTTP/1.1\r\n${HEAD}\r\n`);
        expect([answer.status, rest.includes(content)]).to.deep.equal([status, true]);
      });
  });

  it('answers OPTIONS * with the methods of the server', async () => {
    await startShared({});
    const { status, headers } = await send(`OPTIONS * HTTP/1.1\r\n${HEAD}\r\n`);
    expect([status, headers.get('allow')]).to.deep.equal([204, 'GET, HEAD, POST, PUT, OPTIONS']);
    expect((await send(`GET * HTTP/1.1\r\n${HEAD}\r\n`)).status).to.equal(404);
  });

  describe('for pipelined requests', () => {
    const health = 'GET /api/v1/health HTTP/1.1\r\nHost: x\r\n\r\n';
    /** Starts a service whose conversions last until `open` is called. */
    const startGate = async () => {
      const { MAGICK_BIN, open } = await gatedMagick('exit 1');
      await start({ MAGICK_BIN });
      const request = conversionRequest(await fixture('scene.jpg'));
      return { request, open };
    };

    it('answers the valid request first, then garbage, an unknown method or headers without end', async () => {
      const { request, open } = await startGate();
      const last = {
        400: 'garbage\r\n\r\n',
        501: 'FOO / HTTP/1.1\r\nHost: x\r\n\r\n',
        431: `GET / HTTP/1.1\r\nX: ${'x'.repeat(70_000)}`,
      };
      const answers = Object.entries(last).map(
        async ([status, text]) => [status, await exchange(current().base, request + text)] as const,
      );
      await open();
      for (const [status, text] of await Promise.all(answers)) {
        expect(statuses(text)).to.deep.equal([400, Number(status)]);
        expect(text).to.include('The file is damaged or not a valid JPEG image.');
      }
    });

    it('answers CONNECT with 501 after the request before it', async () => {
      await startShared({});
      const answers = await exchange(current().base, `${health}CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n`);
      expect(statuses(answers)).to.deep.equal([200, 501]);
    });

    it('answers all requests when idle connections are closed in between', async () => {
      const { request, open } = await startGate();
      const socket = await dial(current().base);
      const answers = readAll(socket);
      let text = '';
      socket.on('data', (data) => {
        text += data.toString('latin1');
      });
      socket.write(health + request.replace('Host', 'Connection: close\r\nHost'), 'latin1');
      await eventually(() => text.includes('"status":"ok"'));
      current().http.closeIdle();
      await open();
      expect(statuses(await answers)).to.deep.equal([200, 400]);
    });
  });

  describe('for paths outside the API', () => {
    for (const path of ['/livez', '/readyz', '/metrics', '/docs', '/']) {
      it(`returns 405 with Allow for other methods of ${path}, and 204 for OPTIONS`, async () => {
        await startShared({});
        for (const method of ['POST', 'PUT', 'DELETE']) {
          const { status, headers } = await sendForm(origin() + path, { method });
          expect([status, headers.get('allow')], method).to.deep.equal([405, 'GET, HEAD, OPTIONS']);
        }
        const { status, headers } = await sendForm(origin() + path, { method: 'OPTIONS' });
        expect([status, headers.get('allow')]).to.deep.equal([204, 'GET, HEAD, OPTIONS']);
        expect((await sendForm(origin() + path, { method: 'HEAD' })).status).to.equal(200);
      });
    }

    it('sends CORS headers only for the API', async () => {
      await startShared({});
      const headers = { origin: 'https://example.com' };
      const allowed = async (path: string) =>
        (await sendForm(origin() + path, { headers })).headers.get('access-control-allow-origin');
      for (const path of ['/livez', '/readyz', '/metrics', '/docs', '/', '/nothing'])
        expect(await allowed(path), path).to.equal(null);
      for (const path of ['/api/v1/health', '/api/v1/nothing'])
        expect(await allowed(path), path).to.equal('*');
    });
  });

  it('returns 404 for other spellings of a path, so that a proxy can block it', async () => {
    await startShared({});
    for (const path of [
      '/metrics/',
      '/Metrics',
      '/%6detrics',
      '//metrics',
      '/READYZ',
      '/readyz/',
      '/Livez',
      '/livez//',
      '/DOCS',
      '/docs/index.html/',
      '/API/v1/health',
      '/api/v1/HEALTH',
      '/api/v1/health/',
      '/api/v1/%68ealth',
    ]) {
      const { status, rest } = await send(`GET ${path} HTTP/1.1\r\n${HEAD}\r\n`);
      expect([status, errorIn(rest).code], path).to.deep.equal([404, 404]);
    }
    const { status, headers } = await send(`GET /docs/ HTTP/1.1\r\n${HEAD}\r\n`);
    expect([status, headers.get('location')]).to.deep.equal([301, '../docs']);
  });

  it('returns 400 for a field in the query string, names the form as its place, and ignores other names', async () => {
    await startShared({});
    const post = (path: string, form: FormData) => postForm(current().base + path, form);
    for (const [path, query, field] of [
      ['/convert', 'x=1&quality=50', 'quality'],
      ['/convert', 'file=a.jpg', 'file'],
      ['/batch', 'on_error=skip', 'on_error'],
    ] as const)
      expect((await post(`${path}?${query}`, new FormData())).outcome).to.equal(
        `400 The field "${field}" is in the query string. Send it in the form instead; with curl, use -F ${field}=VALUE.`,
      );
    const photo = formOf({}, [['a.jpg', await fixture('scene.jpg')]]);
    expect((await post('/convert?utm_source=x&t=1', photo)).status).to.equal(200);
  });

  it('answers preflights beyond the rate limit, so that a page can read the 429 and Retry-After', async () => {
    await start({ RATE_LIMIT_PER_MINUTE: '2' });
    const preflight = () =>
      sendForm(`${current().base}/convert`, {
        method: 'OPTIONS',
        headers: { origin: 'https://example.com', 'access-control-request-method': 'POST' },
      });
    const first = await preflight();
    expect([first.status, first.headers.get('x-ratelimit-remaining')]).to.deep.equal([204, '1']);
    await sendForm(`${current().base}/health`);
    const second = await preflight();
    expect([second.status, second.headers.get('retry-after')]).to.deep.equal([204, null]);
    expect(second.headers.get('access-control-allow-methods')).to.include('POST');
    const refused = await sendForm(`${current().base}/convert`, {
      method: 'POST',
      headers: { origin: 'https://example.com' },
    });
    expect(refused.status).to.equal(429);
    expect(Number(refused.headers.get('retry-after'))).to.be.within(1, 60);
    expect(refused.headers.get('access-control-expose-headers')).to.include('Retry-After');
    expect((await sendForm(`${current().base}/convert`, { method: 'OPTIONS' })).status).to.equal(429);
  });
});
