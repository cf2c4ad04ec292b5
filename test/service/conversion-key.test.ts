import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { fixture, fixturePath, sendForm } from '../helpers/client.ts';
import { fakeMagick } from '../helpers/fake-magick.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { type OwnService, startService, useService } from '../helpers/service.ts';

describe('the conversion key of a response', () => {
  let service: OwnService;
  let log: string;
  before(async () => {
    log = join(await makeTempDir('log'), 'log');
    await writeFile(log, '');
    const magick = await fakeMagick(`echo >> ${log}; cp ${fixturePath('scene.webp')} image.webp`);
    service = await startService({ MAGICK_BIN: magick, SANDBOX: 'off' });
  });
  after(() => service.stop());
  const conversions = async (): Promise<number> => (await readFile(log, 'utf8')).length;

  async function convert(known = '', name = 'scene.png', fields: Record<string, string> = {}) {
    const form = new FormData();
    for (const [field, value] of Object.entries(fields)) form.append(field, value);
    form.append('file', new Blob([new Uint8Array(await fixture(name))]), name);
    const headers: Record<string, string> = known ? { 'If-None-Match': known } : {};
    return sendForm(`${service.base}/convert`, { method: 'POST', body: form, headers });
  }

  it('is a header of a result, and its strong entity tag', async () => {
    const { status, headers } = await convert();
    expect(status).to.equal(200);
    expect(headers.get('x-conversion-key')).to.match(/^[0-9a-f]{64}$/);
    expect(headers.get('etag')).to.equal(`"${headers.get('x-conversion-key')}"`);
  });

  it('is the same for the same conversion, and different for another file or option', async () => {
    const keys = [
      await convert(),
      await convert(),
      await convert('', 'window.png'),
      await convert('', 'scene.png', { quality: '50' }),
    ].map(({ headers }) => headers.get('x-conversion-key'));
    expect(keys[0]).to.equal(keys[1]);
    expect(new Set(keys).size).to.equal(3);
  });

  it('answers If-None-Match with 304, before any tool runs', async () => {
    const tag = (await convert()).headers.get('etag') ?? '';
    const before = await conversions();
    for (const known of [tag, `W/${tag}`, `"other", ${tag}`]) {
      const { status, headers, body } = await convert(known);
      expect([status, body.length, headers.get('etag')], known).to.deep.equal([304, 0, tag]);
      expect(headers.get('x-conversion-key')).to.equal(tag.slice(1, -1));
    }
    expect(await conversions()).to.equal(before);
    for (const known of ['"other"', tag.slice(1, -1), '*'])
      expect((await convert(known)).status, known).to.equal(200);
    expect(await conversions()).to.equal(before + 3);
  });

  it('is not a header of an error', async () => {
    const { status, headers } = await convert('', 'scene.png', { format: 'png' });
    expect(status).to.be.at.least(400);
    expect([headers.get('etag'), headers.get('x-conversion-key')]).to.deep.equal([null, null]);
  });
});

describe('the conversion key of a PDF', () => {
  const service = useService();

  it('is a weak entity tag, because the PDF contains the time of its conversion', async () => {
    const form = new FormData();
    form.append('output_format', 'pdf');
    form.append('file', new Blob([new Uint8Array(await fixture('scene.png'))]), 'scene.png');
    const { status, headers } = await sendForm(`${service.base}/convert`, { method: 'POST', body: form });
    expect([status, headers.get('etag')]).to.deep.equal([200, `W/"${headers.get('x-conversion-key')}"`]);
  });
});
