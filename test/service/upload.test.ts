import { expect } from 'chai';
import sharp from 'sharp';
import {
  convert,
  converted,
  convertRaw,
  fixture,
  formOf,
  postForm,
  sendBatch,
  sendForm,
} from '../helpers/client.ts';
import { useService } from '../helpers/service.ts';
import { readZip } from '../helpers/zip.ts';

const MIB = 1024 * 1024;

const NOT_MULTIPART =
  'The request body is neither a form (multipart/form-data with a boundary) nor an image. With curl, send a form with ' +
  "-F file=@photo.jpg, or the image with --data-binary @photo.jpg -H 'Content-Type: image/jpeg'.";

const photo = await fixture('scene.jpg');

describe('the upload', () => {
  const service = useService();

  const filePart = (disposition: string, content = 'GIF89a', type = 'image/gif') =>
    `--xyz\r\nContent-Disposition: form-data; ${disposition}\r\nContent-Type: ${type}\r\n\r\n${content}\r\n`;

  const refusedWith = async (status: number, sentence: RegExp | string, ...parts: string[]) => {
    const answer = await convertRaw(service.base, parts);
    expect([answer.status, answer.message]).to.satisfy(
      ([code, text]: [number, string]) =>
        code === status && (typeof sentence === 'string' ? text === sentence : sentence.test(text)),
      `${answer.status} ${answer.message}`,
    );
  };

  describe('size', () => {
    // A BMP may have trailing bytes, so that one image can have any size.
    const padded = async (bytes: number) =>
      Buffer.concat([await fixture('scene.bmp'), Buffer.alloc(bytes)], bytes);

    it('of exactly 10 MiB is accepted', async () => {
      await converted(service.base, await padded(10 * MIB), { format: 'png' });
    });

    it('of one byte more is rejected', async () => {
      const { outcome } = await convert(service.base, await padded(10 * MIB + 1), { format: 'png' });
      expect(outcome).to.equal('413 The file is too large: at most 10.5 MB (10485760 bytes) allowed.');
    });
  });

  describe('type', () => {
    it('is detected from the bytes, whatever the name and the declared type', async () => {
      const form = new FormData();
      form.append(
        'file',
        new Blob([new Uint8Array(await fixture('scene.png'))], { type: 'text/html' }),
        'photo.gif',
      );
      const { status, headers } = await sendForm(`${service.base}/convert`, { method: 'POST', body: form });
      expect([status, headers.get('content-type')]).to.deep.equal([200, 'image/webp']);
    });

    for (const [what, content, reason = '', hint = ''] of [
      ['text', 'hello, world'],
      ['HTML', '<!DOCTYPE html><html><body><svg></svg></body></html>'],
      ['a PDF', '%PDF-1.7\n', ': EXTRA_INPUTS does not enable PDF'],
      ['PostScript', '%!PS-Adobe-3.0 EPSF-3.0\n'],
      [
        'a ZIP',
        'PK\u0003\u0004\u0014\u0000\u0000\u0000',
        '',
        ' For the files of a ZIP archive, use POST /api/v1/batch.',
      ],
      ["ImageMagick's own languages", 'push graphic-context\nviewbox 0 0 1 1\n'],
      ['an executable', '\u007fELF\u0002\u0001\u0001'],
      [
        'a HEIC photo',
        '\u0000\u0000\u0000\u0018ftypheic\u0000\u0000\u0000\u0000mif1heic',
        ': EXTRA_INPUTS does not enable HEIC',
      ],
    ] as const) {
      it(`of ${what} is rejected, whatever its name`, () =>
        refusedWith(
          415,
          `The file is not an image of a supported format (PNG, JPEG, GIF, BMP, TIFF, SVG, AVIF, ICO, WebP)${reason}.${hint}`,
          filePart('name="file"; filename="photo.png"', content, 'image/png'),
          '--xyz--\r\n',
        ));
    }
  });

  it('must be a form or an image as the body, and the message names a command for each', async () => {
    for (const type of [
      'application/json',
      'multipart/mixed; boundary=xyz',
      'text/plain',
      'multipart/form-data',
    ]) {
      const init = { method: 'POST', headers: { 'content-type': type }, body: '{}' };
      expect((await sendForm(`${service.base}/convert`, init)).outcome, type).to.equal(
        `400 ${NOT_MULTIPART}`,
      );
    }
  });
});

describe('form fields', () => {
  const service = useService();

  it('values are truncated and stripped of control characters in messages', async () => {
    const { message } = await convert(service.base, photo, { quality: `\u0007${'9'.repeat(900)}` });
    expect(message).to.include('\uFFFD999').and.include('…"');
    expect(message.length).to.be.below(150);
  });

  it('duplicates are rejected', async () => {
    const form = formOf({ quality: '80' }, [['a.jpg', photo]]);
    form.append('quality', '80');
    const { outcome } = await postForm(`${service.base}/convert`, form);
    expect(outcome).to.equal('400 The field "quality" was sent more than once.');
  });

  it('unknown names are ignored, even duplicates and __proto__', async () => {
    const form = formOf({}, [['a.jpg', photo]]);
    for (const name of ['x', 'x', '__proto__', 'constructor', 'hasOwnProperty']) form.append(name, '1');
    const { status, notes } = await postForm(`${service.base}/convert`, form);
    expect([status, notes]).to.deep.equal([200, 'unknown-fields-ignored']);
  });

  it('with unknown names have a note for each result, after its other notes, unless they are empty', async () => {
    const { base } = service;
    const page = await fixture('moving.gif');
    const known = await convert(base, page, { format: 'jpg', quality: '', widht: '' });
    expect(known.notes).to.equal('first-frame-only');
    const unknown = await convert(base, page, { format: 'jpg', widht: '30' });
    expect(unknown.notes).to.equal('first-frame-only, unknown-fields-ignored');
    expect(unknown.body.equals(known.body)).to.equal(true);
    const files = [page, photo, page].map((file, at) => [`${at}.gif`, file] as const);
    const batch = await sendBatch(base, files, { format: 'jpg', manifest: 'true', widht: '30' });
    expect(batch.headers.get('x-conversion-notes')).to.equal(
      'first-frame-only;files="0 2", unknown-fields-ignored;files="0 1 2"',
    );
    const manifest = JSON.parse(String((await readZip(batch.body)).at(-1)?.content));
    expect(manifest.map(({ notes }: { notes: string[] }) => notes)).to.deep.equal([
      ['first-frame-only', 'unknown-fields-ignored'],
      ['unknown-fields-ignored'],
      ['first-frame-only', 'unknown-fields-ignored'],
    ]);
  });

  it('apply after the file as well as before it', async () => {
    const form = formOf({ format: 'png' }, [['a.jpg', photo]]);
    form.append('width', '30');
    const { body } = await postForm(`${service.base}/convert`, form);
    const { format, width } = await sharp(body).metadata();
    expect([format, width]).to.deep.equal(['png', 30]);
  });
});
