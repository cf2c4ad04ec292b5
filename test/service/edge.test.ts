import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { convert, convertRaw, fixture, sendForm } from '../helpers/client.ts';
import { fakeMagick } from '../helpers/fake-magick.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { startProcess } from '../helpers/process.ts';
import { useOwnServices } from '../helpers/service.ts';
import { eventually, isRunning } from '../helpers/util.ts';

const MALFORMED = 'The multipart body ended early or is not well-formed.';
const NO_FILE = 'No file was sent: a file part named "file" is required.';

/** What comes over the wire that no honest client sends; over real sockets. */
describe('at the edge', () => {
  const { start, current, nothingLeft } = useOwnServices();
  let photo: Buffer;
  before(async () => {
    photo = await fixture('scene.jpg');
  });
  beforeEach(() => start({}));

  const part = (disposition: string, content: string): string =>
    `--xyz\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n${content}\r\n`;
  const file = (name = 'a.jpg') => part(`name="file"; filename="${name}"`, photo.toString('latin1'));
  const dial = async (): Promise<Socket> => {
    const socket = connect(Number(new URL(current().base).port), '127.0.0.1');
    await once(socket, 'connect');
    return socket;
  };

  it('5000 parts are refused, and nothing is left of them', async () => {
    const parts = Array.from({ length: 5000 }, (_, at) => part(`name="f${at}"`, 'x'));
    const { status, message } = await convertRaw(current().base, [...parts, file(), '--xyz--\r\n']);
    expect([status, message]).to.deep.equal([
      400,
      'Too many form fields: at most 100 allowed in one request.',
    ]);
    await nothingLeft();
  });

  it('5000 files are refused at the second', async () => {
    const parts = Array.from({ length: 5000 }, () => part('name="file"; filename="a"', 'GIF89a'));
    const { status, message } = await convertRaw(current().base, [...parts, '--xyz--\r\n']);
    expect([status, message]).to.deep.equal([400, 'Too many files: at most 1 allowed in one request.']);
    await nothingLeft();
  });

  it('a field of 1 MiB is no reason to keep it: it is invalid where it means something, and else passed over', async () => {
    const long = 'x'.repeat(1024 ** 2);
    const bad = await convertRaw(current().base, [part('name="quality"', long), file(), '--xyz--\r\n']);
    expect(bad.status).to.equal(400);
    expect(bad.message.length).to.be.below(200);
    expect(
      (await convertRaw(current().base, [part('name="else"', long), file(), '--xyz--\r\n'])).status,
    ).to.equal(200);
  });

  for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty', '']) {
    it(`a field called ${JSON.stringify(name)} is passed over`, async () => {
      const answer = await convertRaw(current().base, [part(`name="${name}"`, '1'), file(), '--xyz--\r\n']);
      expect(answer.status, answer.message).to.equal(200);
      await nothingLeft();
    });
  }

  it('a field whose name has a NUL, which no header may have, makes the body malformed', async () => {
    const parts = [part('name="quality\0"', '1'), file(), '--xyz--\r\n'];
    const { status, message } = await convertRaw(current().base, parts);
    expect([status, message]).to.deep.equal([400, MALFORMED]);
    await nothingLeft();
  });

  for (const name of [
    '../../../etc/passwd',
    '/etc/passwd',
    '..\\\\..\\\\x',
    '-rf',
    '|id',
    '@list',
    'msl:x',
    `${'x'.repeat(5000)}`,
    '.',
    '%0d%0aX: y',
  ]) {
    it(`a file called ${JSON.stringify(name.slice(0, 30))} touches nothing and splits no header`, async () => {
      const { status, headers } = await convertRaw(current().base, [file(name), '--xyz--\r\n']);
      expect(status).to.equal(200);
      expect(headers.get('x')).to.equal(null);
      expect(headers.get('content-disposition'))
        .to.match(/^attachment; filename=/)
        .and.not.match(/[/\\]|\.\./);
      await nothingLeft();
    });
  }

  it('a name in the extended form with a line break in it splits no header', async () => {
    const disposition = `name="file"; filename*=utf-8''a%0d%0aSet-Cookie:%20x.jpg`;
    const { status, message, headers } = await convertRaw(current().base, [
      part(disposition, photo.toString('latin1')),
      '--xyz--\r\n',
    ]);
    expect([status, message]).to.deep.equal([200, '']);
    expect(headers.get('set-cookie')).to.equal(null);
    expect(headers.get('content-disposition')).to.equal('attachment; filename="aSet-Cookie: x.webp"');
  });

  it('a connection cut at every stage of a request leaves nothing and nobody', async () => {
    const body = `${part('name="quality"', '50')}${file()}--xyz--\r\n`;
    const head = `POST /api/v1/convert HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=xyz\r\nContent-Length: ${body.length}\r\n\r\n`;
    const whole = Buffer.from(head + body, 'latin1');
    for (let length = 1; length < whole.length; length += Math.ceil(whole.length / 60)) {
      const socket = await dial();
      socket.on('error', () => {});
      socket.write(whole.subarray(0, length));
      // What was written is on its way before the end is.
      socket.end();
      socket.resume();
      await once(socket, 'close');
    }
    await nothingLeft();
    expect((await convert(current().base, photo)).status).to.equal(200);
  });

  it('200 connections that say nothing keep nobody from being served', async () => {
    const idle = await Promise.all(Array.from({ length: 200 }, dial));
    try {
      const answers = await Promise.all(Array.from({ length: 5 }, () => convert(current().base, photo)));
      expect(answers.map(({ status }) => status)).to.deep.equal([200, 200, 200, 200, 200]);
    } finally {
      for (const socket of idle) socket.destroy();
    }
  });

  it('a body of nothing but a boundary that repeats is refused', async () => {
    const headers = { 'content-type': 'multipart/form-data; boundary=xyz' };
    for (const [body, reason] of [
      ['--xyz', MALFORMED],
      ['--xyz--', NO_FILE],
      ['--xyz\r\n'.repeat(1000), MALFORMED],
      ['\r\n'.repeat(1000), MALFORMED],
      ['--xyz\r\n\r\n--xyz--', MALFORMED],
    ] as const) {
      const { status, message } = await sendForm(`${current().base}/convert`, {
        method: 'POST',
        headers,
        body,
      });
      expect([status, message], JSON.stringify(body.slice(0, 20))).to.deep.equal([400, reason]);
    }
    await nothingLeft();
  });
});

describe('a server that is killed', () => {
  it('with -9 takes its tools with it', async () => {
    const pidFile = join(await makeTempDir('pid'), 'pid');
    const magick = await fakeMagick(`echo $$ > ${pidFile}; exec sleep 60`);
    const server = startProcess({ MAGICK_BIN: magick, TEMP_DIR: await makeTempDir('killed') });
    const base = await server.base();
    const lost = convert(base, await fixture('scene.jpg')).catch(() => 'lost');
    const pid = await eventually(
      async () => Number(await readFile(pidFile, 'utf8').catch(() => '')) || undefined,
    );
    expect(isRunning(pid)).to.equal(true);
    process.kill(server.pid, 'SIGKILL');
    expect(await lost).to.equal('lost');
    await eventually(() => !isRunning(pid));
  });
});
