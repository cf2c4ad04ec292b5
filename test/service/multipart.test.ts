// @full: random bodies, and a thousand files
// @slow
import { expect } from 'chai';
import fc from 'fast-check';
import { makeZip } from '../../src/cli/doctor/attack-files.ts';
import { ONE_PIXEL } from '../../src/process/policy.ts';
import { type ClientResponse, convert, expectSuccess, fixture, sendForm } from '../helpers/client.ts';
import { exchange, parseAnswer } from '../helpers/raw-http.ts';
import { useOwnServices, useService } from '../helpers/service.ts';
import { readZip } from '../helpers/zip.ts';

/** Fixed, so that a failure is reproducible. */
const SEED = 20_261_121;
const TYPE = 'multipart/form-data; boundary=xyz';
const IMAGE = ONE_PIXEL.toString('latin1');
const END = '--xyz--\r\n';

const part = (disposition: string, content: string, type?: string): string =>
  `--xyz\r\nContent-Disposition: ${disposition}\r\n${type === undefined ? '' : `Content-Type: ${type}\r\n`}\r\n${content}\r\n`;

const post = (url: string, body: string, type = TYPE): Promise<ClientResponse> =>
  sendForm(url, { method: 'POST', headers: { 'content-type': type }, body: Buffer.from(body, 'latin1') });

describe('a multipart request', () => {
  const service = useService();

  const single = (body: string, type?: string) => post(`${service.base}/convert`, body, type);
  const batch = (body: string, type?: string) => post(`${service.base}/batch`, body, type);
  const succeeds = (answer: ClientResponse): ClientResponse => {
    expect(answer.status, answer.message).to.equal(200);
    return answer;
  };

  const file = (parameters = '; filename="a.png"', type?: string) =>
    part(`form-data; name="file"${parameters}`, IMAGE, type);

  const emptyInput = (name: string) =>
    part(`form-data; name="${name}"; filename=""`, '', 'application/octet-stream');

  for (const [what, body, type] of [
    ['a semicolon after the boundary parameter', file() + END, `${TYPE};`],
    ['a quoted boundary', file() + END, 'Multipart/Form-Data; charset=utf-8; boundary="xyz"'],
    ['an empty file input before the file', emptyInput('file') + file() + END, TYPE],
    ['an empty file input after the file', file() + emptyInput('file') + END, TYPE],
    ['an empty file input of another name', file() + emptyInput('logo') + END, TYPE],
  ] as const) {
    it(`with ${what} is accepted`, async () => {
      succeeds(await single(body, type));
    });
  }

  it('with a field in another charset uses its value', async () => {
    for (const charset of ['us-ascii', 'utf-16le', 'Shift_JIS', 'foo']) {
      const value = charset === 'utf-16le' ? 'j\0p\0g\0' : 'jpg';
      const field = part('form-data; name="format"', value, `text/plain; charset=${charset}`);
      const { headers } = succeeds(await single(field + file() + END));
      expect(headers.get('content-disposition'), charset).to.equal('attachment; filename=a.jpg');
    }
  });

  it('with a field in a charset that is neither supported nor a superset of ASCII is rejected', async () => {
    const field = part('form-data; name="format"', '\0j\0p\0g', 'text/plain; charset=utf-16be');
    expect((await single(field + file() + END)).outcome).to.equal(
      '400 Invalid format "\ufffdj\ufffdp\ufffdg": expected one of webp, png, jpg, gif, bmp, pdf, auto, smallest.',
    );
  });

  it('with only an empty file input has no file', async () => {
    const { outcome } = await single(emptyInput('file') + END);
    expect(outcome).to.equal('400 No file was sent: a file part named "file" is required.');
  });

  it('ignores empty file inputs among the files of a batch', async () => {
    const files = (name: string, content: string) =>
      part(`form-data; name="files"; filename="${name}"`, content, 'application/octet-stream');
    const body = [files('', ''), files('a.png', IMAGE), files('', ''), files('b.png', IMAGE), files('', '')];
    const answer = succeeds(await batch(body.join('') + END));
    expect((await readZip(answer.body)).map(({ name }) => name)).to.deep.equal(['a.webp', 'b.webp']);
  });

  for (const [what, parameters] of [
    ['two boundary parameters', 'boundary=xyz; boundary=abc'],
    ['an empty boundary', 'boundary=""'],
    ['a boundary of 71 characters', `boundary=${'x'.repeat(71)}`],
  ] as const) {
    it(`with ${what} is rejected because other parsers may read it differently`, async () => {
      const { outcome } = await single(file() + END, `multipart/form-data; ${parameters}`);
      expect(outcome).to.match(/^400 .*boundary/);
    });
  }

  it('with two Content-Type headers is rejected because proxies may use the other one', async () => {
    const body = file() + END;
    const types = [TYPE, 'multipart/form-data; boundary=abc'].map((type) => `Content-Type: ${type}\r\n`);
    const head = `POST /api/v1/convert HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${body.length}\r\n`;
    const { status, rest } = parseAnswer(await exchange(service.base, `${head}${types.join('')}\r\n${body}`));
    expect(status).to.equal(400);
    expect(rest).to.match(/boundary/);
  });
});

describe('MAX_BATCH_FILES', () => {
  const { start, startShared, current } = useOwnServices();

  const files = (count: number) =>
    Array.from({ length: count }, (_, at) => part(`form-data; name="files"; filename="${at}.png"`, IMAGE));
  const fields = (count: number) =>
    Array.from({ length: count }, (_, at) => part(`form-data; name="x${at}"`, '1'));
  const batch = (parts: readonly string[]) => post(`${current().base}/batch`, parts.join('') + END);

  it('above 200 allows that many files in addition to the maximum of fields', async () => {
    await startShared({ MAX_BATCH_FILES: '250' });
    const { body } = await expectSuccess(batch([...fields(100), ...files(250)]));
    expect(await readZip(body)).to.have.length(250);
  });

  it('above QUEUE_LIMIT allows that many different files', async () => {
    await startShared({ MAX_BATCH_FILES: '250' });
    const svg = (at: number) =>
      `<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"><g id="${at}"/></svg>`;
    const parts = Array.from({ length: 250 }, (_, at) =>
      part(`form-data; name="files"; filename="${at}"`, svg(at)),
    );
    const { body } = await expectSuccess(batch([...parts, part('form-data; name="format"', 'png')]));
    expect(await readZip(body)).to.have.length(250);
  });

  it('of 1000 accepts an archive of 1000 files with one resource fork each', async () => {
    await start({ MAX_BATCH_FILES: '1000' });
    const entries = Array.from({ length: 1000 }, (_, at) => [
      { name: `${at}.png`, content: ONE_PIXEL },
      { name: `__MACOSX/._${at}.png`, content: Buffer.from('x') },
    ]).flat();
    const archive = makeZip(entries).toString('latin1');
    const { body } = await expectSuccess(batch([part('form-data; name="files"; filename="a.zip"', archive)]));
    expect(await readZip(body)).to.have.length(1000);
  });

  it('above 200 rejects one more file and one field too many, and names the limit', async () => {
    await startShared({ MAX_BATCH_FILES: '250' });
    expect((await batch(files(251))).outcome).to.equal(
      '400 Too many files: at most 250 allowed in one request.',
    );
    expect((await batch([...files(1), ...fields(101)])).outcome).to.equal(
      '400 Too many fields: at most 100 allowed in one request.',
    );
  });
});

describe('a randomly mutated multipart body', () => {
  const { start, current, nothingLeft } = useOwnServices();

  /** Sequences that confuse parsers, written over a part of a body or between two of its bytes. */
  const SPLICES = [
    '\r\n',
    '\r',
    '\n',
    '\r\n\r\n',
    '--xyz',
    '\r\n--xyz\r\n',
    '\r\n--xyz--',
    '--',
    '"',
    '\\',
    ';',
    '=',
    "'",
    '\0',
    ' ',
    '\t',
    ':',
    'filename=""',
    "filename*=UTF-8''%",
    'name="files"',
    'Content-Disposition: form-data',
    'Content-Type: image/png',
    'x'.repeat(17_000),
    '\xff\xfe',
    '%00',
    '*',
  ];
  const BODIES = [
    part('form-data; name="quality"', '80') +
      part('form-data; name="file"; filename="a.png"', IMAGE, 'image/png') +
      END,
    part('form-data; name="on_error"', 'skip') +
      part('form-data; name="files"; filename="a.png"', IMAGE) +
      part(`form-data; name="files"; filename*=UTF-8''%c3%a9.png`, IMAGE) +
      END,
  ] as const;
  const mutations = fc.array(
    fc.record({
      at: fc.double({ min: 0, max: 1, noNaN: true }),
      cut: fc.nat(8),
      splice: fc.constantFrom(...SPLICES),
    }),
    { minLength: 1, maxLength: 4 },
  );

  it('is accepted or rejected with 400, 413 or 415, and leaves no files', async () => {
    await start({});
    await fc.assert(
      fc.asyncProperty(mutations, fc.constantFrom('convert', 'batch'), async (changes, endpoint) => {
        const mutant = changes.reduce(
          (body, { at, cut, splice }) => {
            const place = Math.floor(at * body.length);
            return body.slice(0, place) + splice + body.slice(place + cut);
          },
          endpoint === 'convert' ? BODIES[0] : BODIES[1],
        );
        const { status, message } = await post(`${current().base}/${endpoint}`, mutant);
        expect(status, message).to.be.oneOf([200, 400, 413, 415]);
        expect(message === '').to.equal(status === 200);
      }),
      { numRuns: 200, seed: SEED },
    );
    await nothingLeft();
    expect((await convert(current().base, await fixture('scene.jpg'))).status).to.equal(200);
  });
});
