import { expect } from 'chai';
import sharp from 'sharp';
import { convert, convertRaw, type Fields, fixture, formOf, postForm, sendBatch } from '../helpers/client.ts';
import { useService } from '../helpers/service.ts';
import { readZip } from '../helpers/zip.ts';

const photo = await fixture('scene.jpg');

describe('form fields', () => {
  const service = useService();

  const typeOf = async (fields: Fields) => {
    const { status, message, headers } = await convert(service.base, photo, fields);
    return status === 200 ? headers.get('content-type') : `${status} ${message}`;
  };

  describe('format and output_format', () => {
    for (const [fields, type] of [
      [{}, 'image/webp'],
      [{ output_format: 'png' }, 'image/png'],
      [{ format: 'png' }, 'image/png'],
      [{ format: 'png', output_format: 'png' }, 'image/png'],
      [{ format: 'jpeg', output_format: 'JPG' }, 'image/jpeg'],
      [{ format: 'WebP' }, 'image/webp'],
      [{ format: '', output_format: 'gif' }, 'image/gif'],
      [{ format: '' }, 'image/webp'],
      [{ format: 'pdf' }, 'application/pdf'],
      [{ format: 'bmp' }, 'image/bmp'],
    ] as const) {
      it(`as ${JSON.stringify(fields)} give ${type}`, async () => {
        expect(await typeOf(fields)).to.equal(type);
      });
    }

    it('are rejected when they differ, with both values in the message', async () => {
      const answer = await typeOf({ format: 'png', output_format: 'gif' });
      expect(answer).to.match(/^400 .*"output_format" \("gif"\).*"format" \("png"\)/);
    });

    for (const word of ['tiff', 'svg', 'avif', 'ico', 'exe', 'png ', '__proto__', 'constructor']) {
      it(`reject "${word}" and list the six output formats`, async () => {
        expect(await typeOf({ format: word }))
          .to.include('400')
          .and.include('webp, png, jpg, gif, bmp, pdf');
      });
    }
  });

  for (const [field, wrong, right] of [
    [
      'quality',
      ['0', '101', '-1', '8.5', '80%', 'high', '1e2', ' 80', '0x10', '99999999999'],
      ['1', '100', '080'],
    ],
    ['width', ['0', '16385', '-5', '10.5', 'auto', '100px'], ['1', '16384']],
    ['height', ['0', '16385', '-5', '10.5', 'auto', '100px'], ['1', '16384']],
    [
      'strip_metadata',
      ['2', 'maybe', 'nope', 'truee'],
      ['true', 'FALSE', '1', '0', 'Yes', 'no', 'on', 'OFF'],
    ],
  ] as const) {
    for (const value of wrong) {
      it(`${field}=${value} is rejected with the field, the value and the expected values`, async () => {
        expect((await convert(service.base, photo, { [field]: value })).outcome)
          .to.match(/^400 /)
          .and.include(`Invalid ${field} "${value}": expected `);
      });
    }
    for (const value of [...right, '']) {
      it(`${field}="${value}" is accepted`, async () => {
        expect(await typeOf({ [field]: value })).to.equal('image/webp');
      });
    }
  }

  it('quality out of range is rejected even if the format has no quality', async () => {
    expect(await typeOf({ format: 'png', quality: '101' })).to.match(/^400 /);
  });

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
    const batch = await sendBatch(
      base,
      [
        ['a.gif', page],
        ['b.jpg', photo],
        ['c.gif', page],
      ],
      { format: 'jpg', manifest: 'true', widht: '30' },
    );
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
    const { body } = await convert(service.base, photo, { format: 'png', width: '30' }, 'a.jpg');
    const { format, width } = await sharp(body).metadata();
    expect([format, width]).to.deep.equal(['png', 30]);
  });

  it('are rejected beyond 100', async () => {
    const part = '--xyz\r\nContent-Disposition: form-data; name="x"\r\n\r\n1\r\n';
    const { outcome } = await convertRaw(service.base, [part.repeat(150), '--xyz--\r\n']);
    expect(outcome).to.equal('400 Too many fields: at most 100 allowed in one request.');
  });
});
