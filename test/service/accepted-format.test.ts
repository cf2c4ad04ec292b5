import { expect } from 'chai';
import {
  convert,
  expectSuccess,
  type Fields,
  fixture,
  jsonOf,
  postImage,
  sendBatch,
} from '../helpers/client.ts';
import { writeTempFile } from '../helpers/hooks.ts';
import { plain } from '../helpers/pixels.ts';
import { useOwnServices } from '../helpers/service.ts';
import { readZip } from '../helpers/zip.ts';

/** `Accept` of browsers for images. */
const CHROME = 'image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8';

describe('output_format=auto', () => {
  const { startShared, current } = useOwnServices();
  const post = (image: Uint8Array, accept: string, query: string) =>
    postImage(`${current().base}/convert?output_format=AUTO${query}`, image, {
      'content-type': 'image/png',
      accept,
    });
  const send = async (name: string, accept: string, query = '') => post(await fixture(name), accept, query);

  for (const [name, accept, type] of [
    ['scene.jpg', CHROME, 'webp'],
    ['scene.jpg', '*/*', 'jpeg'],
    ['scene.jpg', 'image/webp,*/*', 'webp'],
    ['window.png', '*/*', 'png'],
    ['moving.gif', '*/*', 'gif'],
    ['window.png', 'image/jpeg, image/png', 'png'],
    ['window.png', 'image/jpeg', 'jpeg'],
    ['scene.jpg', 'image/webp;q=0.5, image/png', 'png'],
    ['scene.jpg', 'image/webp;q=0, image/*', 'jpeg'],
    ['scene.jpg', 'image/webp; q=0.1, image/png ; q=0.5', 'png'],
    ['moving.gif', CHROME, 'webp'],
    ['moving.gif', 'image/gif, image/jpeg', 'gif'],
    ['scene.jpg', 'not a header', 'jpeg'],
    ['scene.jpg', `image/png${';   '.repeat(12)};q=x`, 'jpeg'], // must not take exponential time
    ['scene.jpg', 'IMAGE/PNG;Q=1.000', 'png'],
    ['scene.jpg', 'image/png; level="1, 2"; q=0.5, image/jpeg;q=0.4', 'jpeg'], // malformed: a comma in quotes is not supported
  ] as const) {
    it(`makes ${type} of ${name} for Accept: ${accept}`, async () => {
      await startShared({});
      const { headers } = await expectSuccess(send(name, accept));
      expect([headers.get('content-type'), headers.get('vary')]).to.deep.equal([`image/${type}`, 'Accept']);
      const extension = type === 'jpeg' ? 'jpg' : type;
      expect(headers.get('content-disposition')).to.match(new RegExp(`\\.${extension}$`));
    });
  }

  it('chooses a format that can hold the sides of the result', async () => {
    await startShared({});
    const long = async (width: number, hasAlpha: boolean, query = '') => {
      const image = plain(width, 8);
      const file = await (hasAlpha ? image.ensureAlpha(0.5) : image).png().toBuffer();
      return (await expectSuccess(post(file, CHROME, query))).headers.get('content-type');
    };
    expect(await long(16_383, false)).to.equal('image/webp');
    expect(await long(16_384, false)).to.equal('image/jpeg');
    expect(await long(16_384, true)).to.equal('image/png');
    expect(await long(65_501, false)).to.equal('image/png');
    expect(await long(16_384, false, '&width=1600')).to.equal('image/webp');
  });

  it('prefers AVIF if it is enabled', async () => {
    await startShared({ EXTRA_OUTPUTS: 'avif' });
    expect((await send('scene.jpg', 'image/webp,*/*')).headers.get('content-type')).to.equal('image/webp');
    for (const [name, query, type] of [
      ['scene.jpg', '', 'image/avif'],
      ['moving.gif', '', 'image/webp'],
      ['moving.gif', '&frames=first', 'image/avif'],
    ] as const)
      expect((await send(name, CHROME, query)).headers.get('content-type')).to.equal(type);
  });

  it('is 406 if nothing fits, and chooses only formats with a quality for max_bytes', async () => {
    await startShared({});
    for (const [accept, query, suggested] of [
      ['text/html', '', 'image/webp, image/jpeg, image/png, image/gif'],
      ['image/bmp', '', 'image/webp, image/jpeg, image/png, image/gif'],
      ['image/png', '&max_bytes=9000', 'image/webp, image/jpeg'],
    ] as const) {
      const answer = await send('scene.jpg', accept, query);
      expect(answer.headers.get('vary'), accept).to.equal('Accept');
      expect(jsonOf(answer).error).to.include({ code: 406, reason: 'not_acceptable' });
      expect(answer.outcome)
        .to.match(/^406 /)
        .and.include(`: send ${suggested} or */*, or set output_format.`);
    }
    const limited = await send('window.png', 'image/png, image/jpeg', '&max_bytes=9000');
    expect(limited.headers.get('content-type')).to.equal('image/jpeg');
  });

  it('chooses a format for each file of a batch', async () => {
    await startShared({});
    const names = ['scene.jpg', 'window.png', 'moving.gif'];
    const files = await Promise.all(names.map(async (name) => [name, await fixture(name)] as const));
    const accept = 'image/jpeg, image/png, image/gif, application/zip';
    const fields = { format: 'auto', manifest: 'true' };
    const { headers, body } = await sendBatch(current().base, files, fields, { accept });
    const entries = await readZip(body);
    expect(entries.map(({ name }) => name)).to.deep.equal([...names, 'manifest.json']);
    const manifest = JSON.parse(String(entries.at(-1)?.content));
    expect(manifest.map(({ type }: { type: string }) => type)).to.deep.equal(['jpg', 'png', 'gif']);
    expect(headers.get('vary')).to.equal('Accept');
  });

  it('chooses a format for each variant, also of a preset', async () => {
    const variants = [
      { name: 'best', format: 'auto', width: 40 },
      { name: 'still', output_format: 'AUTO', frames: 'first' },
      { name: 'fixed', format: 'bmp' },
    ];
    const presets = JSON.stringify({ presets: [{ name: 'set', variants }] });
    await startShared({ PRESETS_FILE: await writeTempFile('presets.json', presets) });
    const file = await fixture('moving.gif');
    for (const fields of [{ variants: JSON.stringify(variants) }, { preset: 'set' }] as Fields[]) {
      const ask = async (accept: string) => {
        const { headers, status, body } = await convert(current().base, file, fields, 'a.gif', { accept });
        const names = status === 200 ? (await readZip(body)).map(({ name }) => name) : status;
        return [names, headers.get('vary')];
      };
      const results = ['a-best.gif', 'a-still.png', 'a-fixed.bmp', 'manifest.json'];
      for (const accept of ['image/jpeg, image/png, image/gif, application/zip', '*/*'])
        expect(await ask(accept)).to.deep.equal([results, 'Accept']);
      expect(await ask('image/bmp')).to.deep.equal([406, 'Accept']);
    }
  });
});
