import { once } from 'node:events';
import { join } from 'node:path';
import { expect } from 'chai';
import { convert, convertRaw, expectSuccess, fixture } from '../helpers/client.ts';
import { fakeMagick } from '../helpers/fake-magick.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { startProcess } from '../helpers/process.ts';
import { dial, exchange, statuses } from '../helpers/raw-http.ts';
import { useOwnServices } from '../helpers/service.ts';
import { eventually, isRunning, numberIn } from '../helpers/util.ts';

const photo = await fixture('scene.jpg');

/** Requests that no well-behaved client sends, over real sockets. */
describe('hostile requests', () => {
  const { startShared, current, nothingLeft } = useOwnServices();
  beforeEach(() => startShared({}));

  const part = (disposition: string, content: string): string =>
    `--xyz\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n${content}\r\n`;
  const file = (name = 'a.jpg') => part(`name="file"; filename="${name}"`, photo.toString('latin1'));
  const post = (...parts: readonly string[]) => convertRaw(current().base, [...parts, '--xyz--\r\n']);

  describe('in chunks', () => {
    const chunked = (text: string, size: number): string =>
      (text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [])
        .map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`)
        .join('');
    const send = (path: string, chunks: string): Promise<string> => {
      const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=xyz\r\n`;
      return exchange(current().base, `${head}Transfer-Encoding: chunked\r\n\r\n${chunks}`);
    };
    const next = 'GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
    const form = () => `${part('name="x"', 'x'.repeat(3_000_000))}${file()}--xyz--\r\n`;
    const TOO_SMALL =
      'The request body has too many small chunks: their mean size must be at least 32 bytes.';

    for (const [what, divide, status] of [
      ['of one byte', (text: string) => chunked(text, 1), 400],
      ['of 30 bytes', (text: string) => chunked(text, 30), 400],
      ['of 64 bytes', (text: string) => chunked(text, 64), 200],
      [
        'of 10000 bytes, the first 2000 of them of one byte',
        (text: string) => chunked(text.slice(0, 2000), 1) + chunked(text.slice(2000), 10_000),
        200,
      ],
    ] as const) {
      it(`gets ${status} for a body ${what}`, async () => {
        const answer = await send('/api/v1/convert', `${divide(form())}0\r\n\r\n${next}`);
        expect(statuses(answer)).to.deep.equal(status === 400 ? [400] : [200, 200]);
        if (status === 400) expect(answer).to.include(TOO_SMALL);
      });
    }

    it('has its connection closed for small chunks when it has been rejected already', async () => {
      const answer = await send('/nothing', `${chunked(form(), 1)}0\r\n\r\n${next}`);
      expect(statuses(answer)).to.deep.equal([404]);
    });
  });

  it('rejects 5000 fields and leaves no file', async () => {
    const parts = Array.from({ length: 5000 }, (_, at) => part(`name="f${at}"`, 'x'));
    const { outcome } = await post(...parts, file());
    expect(outcome).to.equal('400 Too many fields: at most 100 allowed in one request.');
    await nothingLeft();
  });

  it('rejects a second file and leaves no file', async () => {
    expect((await post(file(), file())).outcome).to.equal(
      '400 Too many files: at most 1 allowed in one request. For several files, use POST /api/v1/batch.',
    );
    await nothingLeft();
  });

  it('rejects a known field of 1 MiB with a short message and ignores an unknown one', async () => {
    const long = 'x'.repeat(1024 ** 2);
    const bad = await post(part('name="quality"', long), file());
    expect(bad.status).to.equal(400);
    expect(bad.message.length).to.be.below(200);
    await expectSuccess(post(part('name="else"', long), file()));
  });

  it('converts a file whose name is a path, an option or a command without traversal or injection', async () => {
    for (const name of [
      '../../../etc/passwd',
      '/etc/passwd',
      '..\\\\..\\\\x',
      '-rf',
      '|id',
      '@list',
      'msl:x',
      'x'.repeat(5000),
      '.',
      '%0d%0aX: y',
    ]) {
      const { headers } = await expectSuccess(post(file(name)));
      expect(headers.get('x'), name).to.equal(null);
      expect(headers.get('content-disposition'), name)
        .to.match(/^attachment; filename=/)
        .and.not.match(/[/\\]|\.\./);
      await nothingLeft();
    }
  });

  it('injects no header from an extended file name with a line break', async () => {
    const disposition = `name="file"; filename*=utf-8''a%0d%0aSet-Cookie:%20x.jpg`;
    const { headers } = await expectSuccess(post(part(disposition, photo.toString('latin1'))));
    expect(headers.get('set-cookie')).to.equal(null);
    expect(headers.get('content-disposition')).to.equal('attachment; filename="aSet-Cookie: x.webp"');
  });

  it('leaves no file and no process when the connection is cut at any stage of a request', async () => {
    const body = `${part('name="quality"', '50')}${file()}--xyz--\r\n`;
    const head = `POST /api/v1/convert HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=xyz\r\nContent-Length: ${body.length}\r\n\r\n`;
    const whole = Buffer.from(head + body, 'latin1');
    for (let length = 1; length < whole.length; length += Math.ceil(whole.length / 60)) {
      const socket = await dial(current().base);
      socket.write(whole.subarray(0, length));
      // end() flushes what was written before it closes.
      socket.end();
      socket.resume();
      await once(socket, 'close');
    }
    await nothingLeft();
    expect((await convert(current().base, photo)).status).to.equal(200);
  });
});

describe('a server killed with SIGKILL', () => {
  it('leaves no running tools', async () => {
    const pidFile = join(await makeTempDir('pid'), 'pid');
    const magick = await fakeMagick(`echo $$ > ${pidFile}; exec sleep 60`);
    const server = startProcess({ MAGICK_BIN: magick, TEMP_DIR: await makeTempDir('killed') });
    const base = await server.base();
    const lost = convert(base, await fixture('scene.jpg')).catch(() => 'lost');
    const pid = await eventually(() => numberIn(pidFile));
    expect(isRunning(pid)).to.equal(true);
    process.kill(server.pid, 'SIGKILL');
    expect(await lost).to.equal('lost');
    await eventually(() => !isRunning(pid));
  });
});
