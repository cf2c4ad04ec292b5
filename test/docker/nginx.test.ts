// @full: nginx before the service
import { once } from 'node:events';
import { mkdir, readdir, readFile, readlink } from 'node:fs/promises';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { ERROR_CODES } from '../../src/tables/error-table.ts';
import { reasonOf } from '../../src/tables/errors.ts';
import { convert, fixture, sendForm } from '../helpers/client.ts';
import { type Daemon, freePorts, startNginx, startNginxFile } from '../helpers/daemons.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { type ServiceProcess, startProcess } from '../helpers/process.ts';
import { closed, dial, exchange, parseAnswer, startOfBatch } from '../helpers/raw-http.ts';
import { eventually } from '../helpers/util.ts';

const CONF = new URL('../../docker/nginx.conf', import.meta.url);

/**
 * Request headers of an upload that announces this number of bytes. By default, as many as nginx
 * buffers.
 */
const uploadOf = (bytes: number) =>
  `POST /api/v1/batch HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=xyz\r\nContent-Length: ${bytes}\r\n\r\n`;
const upload = uploadOf(19_999_999);
const plain = (path: string, method = 'GET') =>
  `${method} ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;

describe('docker/nginx.conf in front of an instance', () => {
  let instance: ServiceProcess;
  let nginx: Daemon | undefined;
  let origin: string;
  let folder: string;
  const open: Socket[] = [];

  /** Starts nginx with the shipped configuration and `changes` to it. */
  const startProxy = async (
    upstream: string,
    changes: Readonly<Record<string, string>> = {},
    before: readonly string[] = [],
  ) => {
    const [port = 0] = await freePorts(1);
    folder = await makeTempDir('nginx');
    await mkdir(join(folder, 'cache'));
    let conf = await readFile(CONF, 'utf8');
    for (const [from, to] of Object.entries({
      '/tmp/': `${folder}/`, // first, because the folder itself may be below /tmp
      'listen 8080;': `listen 127.0.0.1:${port};`,
      'http://instances:3000': upstream,
      '/var/cache/nginx/': `${folder}/cache/`,
      ...changes,
    })) {
      expect(conf, from).to.include(from);
      conf = conf.replaceAll(from, to);
    }
    nginx = await startNginxFile(port, folder, conf, before);
    origin = `http://127.0.0.1:${port}`;
  };
  /** Counts the uploads that nginx buffers on disk: its open files without a name. */
  const heldUploads = async (): Promise<number> => {
    const fds = `/proc/${nginx?.child.pid}/fd`;
    const targets = await Promise.all(
      (await readdir(fds)).map((fd) => readlink(join(fds, fd)).catch(() => '')),
    );
    return targets.filter((target) => target.startsWith(`${folder}/cache/client_body/`)).length;
  };
  const send = async (text: string) => parseAnswer(await exchange(origin, text));
  const expectShape = ({ headers, rest, status }: ReturnType<typeof parseAnswer>, expected: number) => {
    expect([status, headers.get('content-type')]).to.deep.equal([
      expected,
      'application/json; charset=utf-8',
    ]);
    const body = JSON.parse(rest);
    expect(Object.keys(body)).to.deep.equal(['error']);
    expect(Object.keys(body.error)).to.deep.equal(['code', 'message', 'reason', 'retryable']);
    expect(ERROR_CODES.map(reasonOf)).to.include(body.error.reason);
    expect(body.error.retryable).to.equal([408, 429, 502, 503, 504].includes(expected));
    expect(body.error.code).to.equal(expected);
    expect(body.error.message).to.match(/^[A-Z][^"]+\.$/);
    expect(headers.get('x-content-type-options')).to.equal('nosniff');
    expect(headers.get('x-request-id')).to.match(/^[\w-]{32,36}$/);
  };

  let temp: string;

  before(async () => {
    temp = await makeTempDir('instance');
    instance = startProcess({
      TRUST_PROXY: '1',
      TEMP_DIR: temp,
      RATE_LIMIT_PER_MINUTE: '60',
    });
    await instance.base();
  });
  after(async () => {
    instance.child.kill('SIGKILL');
    await instance.ended();
  });
  afterEach(async () => {
    for (const socket of open.splice(0)) socket.destroy();
    await nginx?.stop();
  });
  const startShipped = async (changes?: Record<string, string>, before?: readonly string[]) =>
    startProxy(new URL(await instance.base()).origin, changes, before);

  it('forwards requests with the client address, including HTTP/1.0 without Host', async () => {
    await startShipped();
    const { status, headers } = await convert(`${origin}/api/v1`, await fixture('scene.jpg'));
    expect([status, headers.get('content-type')]).to.deep.equal([200, 'image/webp']);
    const from = async (address: string) => {
      const socket = await dial(origin, address);
      socket.write('GET /api/v1/health HTTP/1.0\r\n\r\n');
      const [data] = (await once(socket, 'data')) as [Buffer];
      return parseAnswer(String(data));
    };
    const [one, other] = [await from('127.0.3.1'), await from('127.0.3.2')];
    expect([one.status, one.headers.get('x-ratelimit-remaining')]).to.deep.equal([200, '59']);
    expect([other.status, other.headers.get('x-ratelimit-remaining')]).to.deep.equal([200, '59']);
  });

  it('returns 404 for probes and metrics in every spelling of the path', async () => {
    await startShipped();
    for (const path of [
      '/metrics',
      '/metrics/',
      '/Metrics',
      '/%6detrics',
      '/%6Detrics/',
      '//metrics',
      '/x/../metrics',
      '/metrics?x',
      '/livez',
      '/LIVEZ',
      '/livez/',
      '/readyz',
      '/READYZ',
      '/readyz/',
      '/./readyz',
      '/error',
    ]) {
      const answer = await send(plain(path));
      expectShape(answer, 404);
      expect(answer.rest, path).to.include(
        'There is nothing at this path. The API is below /api/v1. Its paths have no slash at the end.',
      );
    }
  });

  for (const [status, what, text] of [
    [400, 'something that is not HTTP', 'HELLO\r\n\r\n'],
    [400, 'HTTP/1.1 without a Host', 'GET / HTTP/1.1\r\n\r\n'],
    [405, 'TRACE', plain('/', 'TRACE')],
    [413, 'an upload of 300 MB', uploadOf(300_000_000)],
    [414, 'an address of 40 kB', plain(`/${'x'.repeat(40_000)}`)],
    [431, 'a header of 40 kB', `GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(40_000)}\r\n\r\n`],
    [501, 'a coding that cannot be decoded', 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n'],
    [505, 'HTTP/3.0 as text', 'GET / HTTP/3.0\r\nHost: x\r\n\r\n'],
  ] as const) {
    it(`returns ${status} as a JSON error for ${what}`, async () => {
      await startShipped();
      expectShape(await send(text), status);
    });
  }

  it('forwards errors of an instance unchanged', async () => {
    await startShipped();
    const { headers, outcome } = await sendForm(`${origin}/api/v1/convert`, { method: 'DELETE' });
    expect(outcome).to.equal('405 DELETE is not allowed for this path: use POST, PUT, OPTIONS.');
    expect(headers.get('x-ratelimit-remaining')).not.to.equal(null);
  });

  it('forwards an error that the instance sends before the upload is complete', async () => {
    await startShipped();
    const statuses: number[] = [];
    // If the instance closed the connection, about half of the responses would be 502.
    for (let upload = 0; upload < 10; upload += 1)
      statuses.push(
        (await sendForm(`${origin}/nothing`, { method: 'POST', body: new Uint8Array(11_000_000) })).status,
      );
    expect(statuses).to.deep.equal(Array(10).fill(404));
  });

  it('returns 429 for the seventh concurrent upload of an address', async () => {
    await startShipped();
    const uploads = await Promise.all(Array.from({ length: 6 }, () => dial(origin, '127.0.3.1')));
    open.push(...uploads);
    for (const socket of uploads) socket.write(upload + 'x'.repeat(200_000));
    await eventually(async () => (await heldUploads()) === 6);

    const seventh = await dial(origin, '127.0.3.1');
    seventh.write(upload);
    const [data] = (await once(seventh, 'data')) as [Buffer];
    const refused = parseAnswer(String(data));
    expectShape(refused, 429);
    expect(refused.headers.get('retry-after')).to.equal('5');
    seventh.destroy();
    const reader = await dial(origin, '127.0.3.1');
    reader.write(plain('/api/v1/formats'));
    const [formats] = (await once(reader, 'data')) as [Buffer];
    expect(parseAnswer(String(formats)).status, 'what is no upload').to.equal(200);
    expect(
      (await convert(`${origin}/api/v1`, await fixture('scene.jpg'))).status,
      'another address',
    ).to.equal(200);
  });

  it('passes on twelve stalled batches of two addresses, and holds none of them for a third address', async () => {
    await startShipped();
    const uploads = await Promise.all(
      ['127.0.3.1', '127.0.3.2'].flatMap((address) => Array.from({ length: 6 }, () => dial(origin, address))),
    );
    open.push(...uploads);
    const scene = await fixture('scene.jpg');
    for (const [at, socket] of uploads.entries())
      socket.write(startOfBatch(scene, at % 2 === 0 ? 20_000_000 : undefined));
    const received = async () =>
      (await readdir(temp, { recursive: true })).filter((name) => name.endsWith('/in')).length;
    await eventually(async () => (await received()) === 12);
    expect(await heldUploads()).to.equal(0);
    const answers = await Promise.all(Array.from({ length: 6 }, () => convert(`${origin}/api/v1`, scene)));
    expect(answers.map(({ status }) => status)).to.deep.equal(Array(6).fill(200));
  });

  it('counts the uploads of an IPv6 network of 64 bits together, and those of IPv4 addresses apart', async () => {
    const address = 'set_real_ip_from 127.0.0.1; real_ip_header X-Test-Address;';
    await startShipped({ 'server_tokens off;': `server_tokens off; ${address}` });
    const send = async (from: string) => {
      const socket = await dial(origin);
      open.push(socket);
      socket.write(upload.replace('Host: x', `Host: x\r\nX-Test-Address: ${from}`) + 'x'.repeat(200_000));
      return socket;
    };
    for (let at = 1; at <= 6; at += 1) await send(`2001:db8::${at}:0:0:${at}`);
    for (let at = 1; at <= 7; at += 1) await send(`192.0.2.${at}`);
    for (let at = 1; at <= 7; at += 1) await send(`::ffff:198.51.100.${at}`);
    await send('2001:db8:0:1::1');
    await eventually(async () => (await heldUploads()) === 21);
    const [data] = (await once(await send('2001:db8::7'), 'data')) as [Buffer];
    expectShape(parseAnswer(String(data)), 429);
  });

  it('closes connections whose body or headers stall', async () => {
    await startShipped({
      'client_body_timeout 10s': 'client_body_timeout 1s',
      'client_header_timeout 10s': 'client_header_timeout 1s',
    });
    const sockets = await Promise.all([dial(origin), dial(origin)]);
    const [body, head] = sockets;
    const ends = Promise.all(sockets.map(closed));
    for (const socket of sockets) socket.resume();
    body?.write(upload + 'x'.repeat(200_000));
    head?.write('GET / HTTP/1.1\r\nHost');
    await eventually(async () => (await heldUploads()) === 1);
    await ends;
    await eventually(async () => (await heldUploads()) === 0);
  });

  it('returns 502 with Retry-After as a JSON error when no instance is running', async () => {
    const [unused] = await freePorts(1);
    await startProxy(`http://127.0.0.1:${unused}`);
    const answer = await send(plain('/api/v1/health'));
    expectShape(answer, 502);
    expect(answer.headers.get('retry-after')).to.equal('5');
  });

  it('returns 503 with Retry-After as a JSON error when the disk for uploads is full', async () => {
    // A file size limit makes a write fail as a full disk does.
    await startShipped({}, ['sh', '-c', 'trap "" XFSZ; ulimit -f 100; exec "$0" "$@"']);
    const socket = await dial(origin);
    open.push(socket);
    socket.write(upload + 'x'.repeat(200_000));
    const [data] = (await once(socket, 'data')) as [Buffer];
    const answer = parseAnswer(String(data));
    expectShape(answer, 503);
    expect(answer.headers.get('retry-after')).to.equal('5');
  });

  describe('with an instance that never responds', () => {
    let silent: Server;
    beforeEach(async () => {
      silent = createServer((socket) => void open.push(socket)).listen(0, '127.0.0.1');
      await once(silent, 'listening');
    });
    afterEach(() => void silent.close());

    it('returns 504 as a JSON error', async () => {
      const { port } = silent.address() as AddressInfo;
      await startProxy(`http://127.0.0.1:${port}`, { 'proxy_read_timeout 150s': 'proxy_read_timeout 1s' });
      expectShape(await send(plain('/api/v1/health')), 504);
    });
  });
});

describe('the server of nginx in docs/deployment.md, for one instance', () => {
  let instance: ServiceProcess;
  let nginx: Daemon;
  let origin: string;
  before(async () => {
    instance = startProcess({ TRUST_PROXY: 'loopback', HOST: '127.0.0.1', RATE_LIMIT_PER_MINUTE: '60' });
    const text = await readFile(new URL('../../docs/deployment.md', import.meta.url), 'utf8');
    const [, server = ''] = /^```nginx\n(server \{\n.*?)^```/ms.exec(text) ?? [];
    const [port = 0] = await freePorts(1);
    origin = `http://127.0.0.1:${port}`;
    const changes = {
      'listen 443 ssl;': `listen 127.0.0.1:${port};`,
      'http://127.0.0.1:3000': new URL(await instance.base()).origin,
      '  ssl_certificate /etc/ssl/images.pem;\n': '',
      '  ssl_certificate_key /etc/ssl/images.key;\n': '',
    };
    let conf = server;
    for (const [from, to] of Object.entries(changes)) {
      expect(conf, from).to.include(from);
      conf = conf.replace(from, to);
    }
    nginx = await startNginx(port, conf);
  });
  after(async () => {
    await nginx.stop();
    instance.child.kill('SIGKILL');
    await instance.ended();
  });

  it('passes on an upload of 9 MB, and the address of the client', async () => {
    const large = Buffer.concat([await fixture('scene.jpg'), Buffer.alloc(9_000_000)]);
    const { status, headers } = await convert(`${origin}/api/v1`, large);
    expect([status, headers.get('x-ratelimit-remaining')]).to.deep.equal([200, '59']);
    const other = { headers: { 'x-forwarded-for': '192.0.2.7' } };
    const { headers: others } = await sendForm(`${origin}/api/v1/formats`, other);
    expect(others.get('x-ratelimit-remaining')).to.equal('59');
  });

  it('hides the metrics and the probes', async () => {
    for (const path of ['/metrics', '/livez', '/readyz'])
      expect((await sendForm(origin + path)).status, path).to.equal(404);
    expect((await sendForm(origin)).status).to.equal(200);
  });
});
