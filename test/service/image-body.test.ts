import { once } from 'node:events';
import { expect } from 'chai';
import { parse as parseDisposition } from 'content-disposition';
import sharp from 'sharp';
import {
  convert,
  expectSuccess,
  fixture,
  fixturePath,
  formOf,
  jsonOf,
  postImage,
  sendForm,
} from '../helpers/client.ts';
import { execute } from '../helpers/process.ts';
import { dial, exchange, parseAnswer } from '../helpers/raw-http.ts';
import { useOwnServices, useService } from '../helpers/service.ts';

const MIB = 1024 * 1024;

const photo = await fixture('scene.jpg');

describe('POST /convert with an image as the body', () => {
  const service = useService();

  const send = (
    query: string,
    type: string | undefined,
    body: Uint8Array = photo,
    headers: Readonly<Record<string, string>> = {},
  ) =>
    postImage(`${service.base}/convert${query}`, body, {
      ...(type !== undefined && { 'content-type': type }),
      ...headers,
    });

  it('returns the bytes that a form gets, whatever its type', async () => {
    const form = await convert(service.base, photo, { format: 'png', width: '60', background: '08f' });
    for (const type of [
      'image/jpeg',
      'IMAGE/PNG; q=1',
      'application/pdf',
      'application/x-www-form-urlencoded',
      undefined,
    ]) {
      const answer = await expectSuccess(send('?output_format=png&width=60&background=08f', type));
      expect(answer.body.equals(form.body), type).to.equal(true);
    }
  });

  it('accepts the types of any file, such as that of S3, and still rejects what is no image with 415', async () => {
    for (const type of ['binary/octet-stream', 'application/binary', '*/*', 'Binary/Octet-Stream; a=b']) {
      expect((await send('?format=png', type)).outcome, type).to.equal('200');
      expect((await send('', type, Buffer.from('text'))).status, type).to.equal(415);
    }
    expect((await send('', 'binary/other')).status).to.equal(400);
  });

  it('does the same for PUT as for POST, as curl --upload-file sends it, and counts it', async () => {
    const put = (path: string, type = 'image/jpeg') =>
      sendForm(`${service.base}${path}`, {
        method: 'PUT',
        headers: { 'content-type': type },
        body: new Uint8Array(photo),
      });
    const posted = await send('?format=png&width=60', 'image/jpeg');
    expect((await put('/convert?format=png&width=60')).body.equals(posted.body)).to.equal(true);
    expect(jsonOf(await put('/identify')).width).to.equal(120);
    expect((await put('/convert?widht=60')).status).to.equal(400);
    expect((await put('/convert', 'text/plain')).status).to.equal(400);
    const refused = await put('/batch');
    expect([refused.status, refused.headers.get('allow')]).to.deep.equal([405, 'POST, OPTIONS']);
    const form = { method: 'PUT', body: formOf({ format: 'png', width: '60' }, [['photo.jpg', photo]]) };
    expect((await sendForm(`${service.base}/convert`, form)).body.equals(posted.body)).to.equal(true);
    const { stdout } = await execute(
      'curl',
      ['-sS', '-T', fixturePath('scene.jpg'), `${service.base}/convert?format=bmp`],
      { encoding: 'buffer' },
    );
    expect(stdout.subarray(0, 2).toString()).to.equal('BM');
  });

  it('accepts a body of unknown length', async () => {
    const stream = new ReadableStream({
      start(controller) {
        for (let at = 0; at < photo.length; at += 1000) controller.enqueue(photo.subarray(at, at + 1000));
        controller.close();
      },
    });
    const init = { method: 'POST', body: stream, duplex: 'half' } as RequestInit;
    const { status, body } = await sendForm(`${service.base}/convert?format=gif`, init);
    expect([status, (await sharp(body).metadata()).format]).to.deep.equal([200, 'gif']);
  });

  it('accepts curl --data-binary, with and without a type', async () => {
    const upload = ['--silent', '--fail-with-body', '--data-binary', `@${fixturePath('scene.svg')}`];
    for (const header of [[], ['--header', 'Content-Type: image/svg+xml']]) {
      const args = [...upload, ...header, `${service.base}/convert?format=png`];
      const { stdout } = await execute('curl', args, { encoding: 'buffer' });
      expect((await sharp(stdout).metadata()).format).to.equal('png');
    }
  });

  for (const [disposition, name] of [
    ['attachment; filename="holiday.jpg"', 'holiday.webp'],
    ["inline; filename=x.png; filename*=UTF-8''na%C3%AFve%22.png", 'naïve".webp'],
    ['attachment; filename="a%22b.jpg"', 'a%22b.webp'],
    ['attachment; filename="../../etc/passwd"', 'passwd.webp'],
    ['attachment; filename="é.jpg"', 'é.webp'],
    [Buffer.from('attachment; filename="фото.jpg"').toString('latin1'), 'фото.webp'],
    ['attachment; filename="unfinished', 'image.webp'],
    ['attachment', 'image.webp'],
    [undefined, 'image.webp'],
  ] as const) {
    it(`names the result ${name} for Content-Disposition: ${disposition}`, async () => {
      const { headers } = await send(
        '',
        'image/jpeg',
        photo,
        disposition ? { 'content-disposition': disposition } : {},
      );
      const { parameters } = parseDisposition(headers.get('content-disposition') ?? '');
      expect(parameters.filename).to.equal(name);
    });
  }

  it('rejects unknown query parameters, and names them', async () => {
    const { status, body } = await send('?width=60&size=3&file=x', 'image/jpeg');
    const { message, reason, field } = JSON.parse(body.toString()).error;
    expect([status, reason, field]).to.deep.equal([400, 'unknown_parameter', 'size']);
    expect(message).to.match(/^Unknown query parameter "size", "file": .*output_format.*quality/);
  });

  it('rejects more than 100 query parameters, also those of a form, without a look at each', async () => {
    for (const [parameters, expected] of [
      [100, '400 field_repeated'],
      [101, '400 too_many_fields'],
    ] as const) {
      const { status, body } = await send(`?${'width=5&'.repeat(parameters).slice(0, -1)}`, 'image/jpeg');
      expect(`${status} ${JSON.parse(body.toString()).error.reason}`).to.equal(expected);
    }
    const form = 'multipart/form-data; boundary=x';
    const { body } = await send(`?${'a&'.repeat(101)}`, form);
    expect(JSON.parse(body.toString()).error.reason).to.equal('too_many_fields');
  });

  it('rejects invalid and repeated options before it reads the body', async () => {
    for (const [query, reason] of [
      ['width=0', 'field_invalid'],
      ['width=5&width=6', 'field_repeated'],
      ['format=png&output_format=gif', 'conflicting_formats'],
    ] as const) {
      const answer = await exchange(
        service.base,
        `POST /api/v1/convert?${query} HTTP/1.1\r\nHost: x\r\nContent-Type: image/jpeg\r\nContent-Length: 500\r\nConnection: close\r\nExpect: 100-continue\r\n\r\n`,
      );
      expect(answer).to.not.include('100 Continue');
      expect(JSON.parse(parseAnswer(answer).rest).error.reason).to.equal(reason);
    }
  });

  for (const [what, type, content, status, reason] of [
    ['no bytes', 'image/jpeg', '', 400, 'empty_file'],
    ['no bytes and no type', undefined, '', 400, 'not_multipart'],
    ['text', 'image/jpeg', 'hello, world', 415, 'unsupported_type'],
    ['text without a type', undefined, 'hello, world', 400, 'not_multipart'],
    ['JSON', 'application/json', '{}', 400, 'not_multipart'],
    ['an image that is declared as text', 'text/plain', undefined, 400, 'not_multipart'],
  ] as const) {
    it(`rejects ${what} with ${status}, also with options in the query`, async () => {
      for (const query of ['', '?width=60']) {
        const answer = await send(query, type, content === undefined ? photo : Buffer.from(content));
        expect([answer.status, jsonOf(answer).error.reason]).to.deep.equal([status, reason]);
      }
    });
  }

  it('is no way to send a batch', async () => {
    const url = `${service.base}/batch?format=png`;
    const { outcome } = await postImage(url, photo, { 'content-type': 'image/jpeg' });
    expect(outcome).to.equal(
      '400 The request body must be multipart/form-data with a boundary. With curl, use -F files=@photo.jpg.',
    );
  });

  describe('of 64 MiB, is rejected before it has been sent,', () => {
    const sendPart = async (header: string, start: Uint8Array): Promise<string> => {
      const socket = await dial(service.base);
      socket.write(
        `POST /api/v1/convert HTTP/1.1\r\nHost: x\r\nContent-Type: image/jpeg\r\n${header}\r\n\r\n`,
      );
      socket.write(start);
      const [data] = await once(socket, 'data');
      socket.destroy();
      return String(data);
    };

    it('by its length', async () => {
      const answer = await sendPart(`Content-Length: ${64 * MIB}`, new Uint8Array(0));
      expect(JSON.parse(parseAnswer(answer).rest).error).to.deep.include({
        code: 413,
        reason: 'file_too_large',
        limit: 10 * MIB,
        setting: 'MAX_FILE_BYTES',
      });
    });

    it('by its bytes', async () => {
      const body = Buffer.concat([photo, Buffer.alloc(10 * MIB)], 10 * MIB + 1);
      const chunk = Buffer.concat([
        Buffer.from(`${body.length.toString(16)}\r\n`),
        body,
        Buffer.from('\r\n'),
      ]);
      expect(await sendPart('Transfer-Encoding: chunked', chunk)).to.match(/^HTTP\/1\.1 413 /);
    });

    it('by its type', async () => {
      expect(
        await sendPart('Transfer-Encoding: chunked', Buffer.from('1388\r\n'.padEnd(5006, 'x'))),
      ).to.match(/^HTTP\/1\.1 415 /);
    });
  });
});

describe('POST /convert with an image as a body that does not end', () => {
  const { start, current, nothingLeft } = useOwnServices();

  it('returns 408 at the deadline, and leaves nothing behind', async () => {
    await start({ UPLOAD_TIMEOUT_MS: '300' });
    const answer = await exchange(
      current().base,
      'POST /api/v1/convert HTTP/1.1\r\nHost: x\r\nContent-Type: image/gif\r\nContent-Length: 900\r\n\r\nGIF89a',
    );
    expect(JSON.parse(parseAnswer(answer).rest).error.reason).to.equal('upload_timeout');
    await nothingLeft();
  });

  it('leaves nothing behind when the client disconnects', async () => {
    await start({});
    const socket = await dial(current().base);
    socket.write(
      'POST /api/v1/convert HTTP/1.1\r\nHost: x\r\nContent-Type: image/gif\r\nContent-Length: 900\r\n\r\nGIF89a',
    );
    socket.destroy();
    await nothingLeft();
  });
});
