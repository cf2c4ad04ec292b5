import { expect } from 'chai';
import sharp from 'sharp';
import { convert, fixture, formOf, postForm, sendBatch } from '../helpers/client.ts';
import { useService } from '../helpers/service.ts';
import { readZip } from '../helpers/zip.ts';

const photo = await fixture('scene.jpg');

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
    const form = formOf({ format: 'png' }, [['a.jpg', photo]]);
    form.append('width', '30');
    const { body } = await postForm(`${service.base}/convert`, form);
    const { format, width } = await sharp(body).metadata();
    expect([format, width]).to.deep.equal(['png', 30]);
  });
});
