import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { convert, converted, expectSuccess, type Fields, fixture } from '../helpers/client.ts';
import { COPY_SCENE, fakeMagick } from '../helpers/fake-magick.ts';
import { writeTempFile } from '../helpers/hooks.ts';
import { type OwnService, startService, useService } from '../helpers/service.ts';

describe('the conversion key of a response', () => {
  let service: OwnService;
  let log: string;
  before(async () => {
    log = await writeTempFile('log', '');
    const magick = await fakeMagick(`echo >> ${log}; ${COPY_SCENE}`);
    service = await startService({ MAGICK_BIN: magick, SANDBOX: 'off' });
  });
  after(() => service.stop());
  const conversions = async (): Promise<number> => (await readFile(log, 'utf8')).length;

  const ask = async (known = '', fields: Fields = {}) => {
    const headers = known ? { 'If-None-Match': known } : {};
    return convert(service.base, await fixture('scene.png'), fields, 'scene.png', headers);
  };

  it('is a header of a result, and its strong entity tag', async () => {
    const { headers } = await expectSuccess(ask());
    expect(headers.get('x-conversion-key')).to.match(/^[0-9a-f]{64}$/);
    expect(headers.get('etag')).to.equal(`"${headers.get('x-conversion-key')}"`);
  });

  it('answers If-None-Match with 304, before any tool runs', async () => {
    const tag = (await ask()).headers.get('etag') ?? '';
    const before = await conversions();
    for (const known of [tag, `W/${tag}`, `"other", ${tag}`]) {
      const { status, headers, body } = await ask(known);
      expect([status, body.length, headers.get('etag')], known).to.deep.equal([304, 0, tag]);
      expect(headers.get('x-conversion-key')).to.equal(tag.slice(1, -1));
    }
    expect(await conversions()).to.equal(before);
    for (const known of ['"other"', tag.slice(1, -1), '*'])
      expect((await ask(known)).status, known).to.equal(200);
    expect(await conversions()).to.equal(before + 3);
  });

  it('is not a header of an error', async () => {
    const { status, headers } = await ask('', { format: 'png' });
    expect(status).to.be.at.least(400);
    expect([headers.get('etag'), headers.get('x-conversion-key')]).to.deep.equal([null, null]);
  });
});

describe('the conversion key of a PDF', () => {
  const service = useService();

  it('is a weak entity tag, because the PDF contains the time of its conversion', async () => {
    const { headers } = await converted(service.base, await fixture('scene.png'), { output_format: 'pdf' });
    expect(headers.get('etag')).to.equal(`W/"${headers.get('x-conversion-key')}"`);
  });
});
