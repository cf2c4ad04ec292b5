// @full
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { expect } from 'chai';
import { convert, fixture, sendForm } from '../helpers/client.ts';
import { gatedMagick } from '../helpers/fake-magick.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { type ServiceProcess, startProcess } from '../helpers/process.ts';
import {
  conversionRequest,
  dial,
  exchange,
  FORM_TYPE,
  parseAnswer,
  readAll,
  statuses,
} from '../helpers/raw-http.ts';
import { useOwnServices } from '../helpers/service.ts';
import { eventually } from '../helpers/util.ts';

const MIB = 1024 ** 2;
/** Maximum number of connections with `ulimit -n 600`: a third of the files. */
const MAX = 200;
/** Maximum number of connections per client: a quarter of all. */
const MAX_PER_CLIENT = 50;

/** Formats the head of a request that announces more bytes than it sends. */
const unfinished = (path: string, headers = ''): string =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${100 * MIB}\r\n${headers}\r\n`;
/** An upload that stays open for the whole test, because its deadline is late. */
const UPLOAD = `${unfinished('/api/v1/convert', FORM_TYPE)}${'x'.repeat(20_000)}`;
const NO_DEADLINE = { UPLOAD_TIMEOUT_MS: '3600000' };

const addresses = (count: number): string[] => Array.from({ length: count }, (_, at) => `127.0.1.${at + 1}`);

describe('connection limits', () => {
  let server: ServiceProcess;
  let base: string;
  const open: Socket[] = [];

  const start = async (settings: Record<string, string> = {}): Promise<void> => {
    const few = ['sh', '-c', 'ulimit -n 600; exec "$0" "$@"'];
    server = startProcess({ TEMP_DIR: await makeTempDir('connections'), ...NO_DEADLINE, ...settings }, few);
    base = await server.base();
  };
  const stop = async (): Promise<void> => {
    server.child.kill('SIGKILL');
    await server.ended();
  };
  before(() => start());
  after(stop);
  afterEach(() => {
    for (const socket of open.splice(0)) socket.destroy();
  });

  /** Opens connections from one address and sends the same text on each. */
  const flood = async (count: number, from: string, text: string): Promise<Socket[]> => {
    const sockets: Socket[] = [];
    for (let at = 0; at < count; at += 1) {
      const socket = await dial(base, from);
      sockets.push(socket);
      socket.write(text);
    }
    open.push(...sockets);
    return sockets;
  };
  const answered = (sockets: readonly Socket[]) =>
    Promise.all(sockets.map((socket) => Promise.race([once(socket, 'data'), once(socket, 'close')])));
  const get = async (path: string, from: string): Promise<string> => {
    const socket = await dial(base, from);
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    return readAll(socket);
  };

  /** Opens uploads from one address until the server refuses further connections from it. */
  const fill = (from: string) =>
    eventually(async () => {
      await flood(10, from, UPLOAD);
      return statuses(await get('/', from))[0] === 503;
    });

  for (const headers of ['', 'Connection: close\r\n']) {
    it(`do not count rejected requests${headers && ' with Connection: close'}`, async () => {
      // One connection per available place, each rejected while its body is outstanding.
      for (const from of addresses(MAX / MAX_PER_CLIENT + 1))
        await answered(await flood(MAX_PER_CLIENT, from, unfinished('/nothing', headers)));
      expect(statuses(await get('/livez', '127.0.2.1'))).to.deep.equal([200]);
      expect((await convert(base, await fixture('scene.jpg'))).status).to.equal(200);
    });
  }

  it('allow one client a quarter of all connections, and return 503 with Retry-After beyond that', async () => {
    await fill('127.0.1.1');
    const refused = await get('/api/v1/health', '127.0.1.1');
    expect(parseAnswer(refused).status).to.equal(503);
    expect(parseAnswer(refused).headers.get('retry-after')).to.equal('5');
    expect(refused).to.include(
      'Too many connections are open, from your address or in total. Try again shortly.',
    );
    expect(statuses(await get('/api/v1/health', '127.0.2.1'))).to.deep.equal([200]);
    expect((await convert(base, await fixture('scene.jpg'))).status).to.equal(200);
  });

  it('reserve connections for probes, from every address', async () => {
    for (const from of addresses(MAX / MAX_PER_CLIENT)) await fill(from);
    for (const from of ['127.0.1.1', '127.0.2.1']) {
      for (const path of ['/livez', '/readyz', '/metrics'])
        expect(statuses(await get(path, from)), `${path} from ${from}`).to.deep.equal([200]);
      for (const path of ['/api/v1/health', '/docs', '/'])
        expect(statuses(await get(path, from)), `${path} from ${from}`).to.deep.equal([503]);
    }
    expect(await get('/metrics', '127.0.2.1')).to.match(
      /^imagemill_requests_refused_total\{reason="too_many_connections"\} [1-9]/m,
    );
  });

  it('do not apply per address to a trusted proxy or application', async () => {
    await stop();
    await start({ TRUST_PROXY: '127.0.1.1', TRUSTED_CLIENTS: '127.0.1.3' });
    for (const from of ['127.0.1.1', '127.0.1.3']) {
      const sockets = await flood(MAX_PER_CLIENT + 20, from, UPLOAD);
      expect(statuses(await get('/api/v1/health', from)), from).to.deep.equal([200]);
      for (const socket of sockets) socket.destroy();
    }
    await fill('127.0.1.2');
  });
});

describe('a rejected request', () => {
  const { startShared, current } = useOwnServices();

  it('has its connection closed after 5 seconds when its body does not arrive or does not end', async () => {
    await startShared(NO_DEADLINE);
    const send = async (head: string, bodySoFar: string) => {
      const socket = await dial(current().base);
      const began = performance.now();
      socket.write(head);
      const trickle = setInterval(() => bodySoFar && socket.write(bodySoFar), 100);
      const answer = await readAll(socket);
      clearInterval(trickle);
      return { answer, ms: performance.now() - began };
    };
    const chunked = 'POST /nothing HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n';
    const closings = ['', 'Connection: close\r\n'].flatMap((headers) => [
      send(unfinished('/nothing', headers), ''),
      send(`${chunked}${headers}\r\n`, '1\r\nx\r\n'),
    ]);
    for (const { answer, ms } of await Promise.all(closings)) {
      expect(statuses(answer)).to.deep.equal([404]);
      expect(ms).to.be.at.least(4_500);
    }
  });

  it('keeps its connection when the rest of the body is short', async () => {
    await startShared({});
    const socket = await dial(current().base);
    const answers = readAll(socket);
    socket.write('POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n');
    await once(socket, 'data');
    socket.write('123456789GET /api/v1/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    expect(statuses(await answers)).to.deep.equal([404, 200]);
  });

  it('with malformed HTTP has its connection closed when the client does not close it', async () => {
    await startShared(NO_DEADLINE);
    expect(statuses(await exchange(current().base, 'HELLO\r\n\r\n'))).to.deep.equal([400]);
    expect((await sendForm(`${current().base}/health`)).status).to.equal(200);
  });
});

describe('pipelined requests', () => {
  const { start, current } = useOwnServices();
  const HEALTH = 'GET /api/v1/health HTTP/1.1\r\nHost: x\r\n\r\n';

  for (const [what, adapt] of [
    ['', (text: string) => text],
    [
      'of HTTP/1.0 with keep-alive ',
      (text: string) => text.replace(/HTTP\/1\.1\r\n/g, 'HTTP/1.0\r\nConnection: keep-alive\r\n'),
    ],
  ] as const) {
    it(`${what}are answered in order if there are four, and have their connection closed if five`, async () => {
      const { MAGICK_BIN, open } = await gatedMagick('exit 1');
      await start({ MAGICK_BIN });
      const conversion = conversionRequest(await fixture('scene.jpg'));
      expect(await exchange(current().base, adapt(conversion + HEALTH.repeat(4)))).to.equal('');
      const last = HEALTH.replace('Host', 'Connection: close\r\nHost');
      const answers = exchange(current().base, adapt(conversion + HEALTH.repeat(2)) + last);
      await open();
      expect(statuses(await answers)).to.deep.equal([400, 200, 200, 200]);
    });
  }

  it('are not parsed after the connection is closed', async () => {
    await start({});
    let parsed = 0;
    const onRequest = (): void => {
      parsed += 1;
    };
    subscribe('http.server.request.start', onRequest);
    expect(await exchange(current().base, HEALTH.repeat(1000))).to.equal('');
    unsubscribe('http.server.request.start', onRequest);
    expect(parsed).to.be.within(1, 5);
  });

  it('whose responses are not read have their connection closed after the deadline of slow readers', async () => {
    await start({ UPLOAD_TIMEOUT_MS: '1000' });
    const connected = once(current().server, 'connection');
    const socket = await dial(current().base);
    socket.pause();
    const [serverSide] = (await connected) as [Socket];
    const closed = once(serverSide, 'close');
    // More than fits into the buffers of the kernel.
    for (let count = 0; count < 300 && !serverSide.destroyed && serverSide.writableLength === 0; count += 1) {
      const answered = once(current().server, 'request').then(([, res]) => once(res, 'close'));
      socket.write('GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n');
      await Promise.race([answered, closed, eventually(() => serverSide.writableLength > 0)]);
    }
    await closed;
    socket.destroy();
  });
});
