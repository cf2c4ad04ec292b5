import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { fixture, sendForm } from '../helpers/client.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { useOwnServices } from '../helpers/service.ts';
import { readZip } from '../helpers/zip.ts';

/** `Accept` of browsers for images. */
const CHROME = 'image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8';

describe('output_format=auto', () => {
  const { startShared, current } = useOwnServices();
  const send = async (name: string, accept: string | undefined, query = '') => {
    const { status, headers, body, message } = await sendForm(
      `${current().base}/convert?output_format=AUTO${query}`,
      {
        method: 'POST',
        headers: { 'content-type': 'image/png', ...(accept !== undefined && { accept }) },
        body: new Uint8Array(await fixture(name)),
      },
    );
    return {
      status,
      headers,
      message,
      reason: status === 200 ? '' : JSON.parse(body.toString()).error.reason,
    };
  };

  for (const [name, accept, type] of [
    ['scene.jpg', CHROME, 'webp'],
    ['scene.jpg', '*/*', 'webp'],
    ['scene.jpg', 'image/*', 'webp'],
    ['scene.jpg', 'image/jpeg, image/png', 'jpeg'],
    ['window.png', 'image/jpeg, image/png', 'png'],
    ['window.png', 'image/jpeg', 'jpeg'],
    ['scene.png', 'image/jpeg, image/png', 'jpeg'],
    ['scene.jpg', 'image/webp;q=0.5, image/png', 'png'],
    ['scene.jpg', 'image/webp;q=0, image/*', 'jpeg'],
    ['scene.jpg', 'image/webp; q=0.1, image/png ; q=0.5', 'png'],
    ['scene.jpg', '*/*;q=0.1, image/gif;q=0.2', 'gif'],
    ['moving.gif', CHROME, 'webp'],
    ['moving.gif', 'image/gif, image/jpeg', 'gif'],
    ['moving.gif', 'image/png, image/jpeg', 'png'],
    ['scene.jpg', 'not a header', 'webp'],
    ['scene.jpg', 'image/png;q=7', 'webp'],
    ['scene.jpg', `image/png${';   '.repeat(12)};q=x`, 'webp'], // must not take exponential time
    ['scene.jpg', '', 'webp'],
    ['scene.jpg', 'IMAGE/PNG;Q=1.000', 'png'],
    ['scene.jpg', 'image/png; level="1, 2"; q=0.5, image/jpeg;q=0.4', 'webp'], // malformed: a comma in quotes is not supported
  ] as const) {
    it(`makes ${type} of ${name} for Accept: ${accept}`, async () => {
      await startShared({});
      const { status, headers } = await send(name, accept);
      expect([status, headers.get('content-type'), headers.get('vary')]).to.deep.equal([
        200,
        `image/${type}`,
        'Accept',
      ]);
      expect(headers.get('content-disposition')).to.match(
        new RegExp(`\\.${type === 'jpeg' ? 'jpg' : type}$`),
      );
    });
  }

  it('prefers AVIF if it is enabled', async () => {
    await startShared({ EXTRA_OUTPUTS: 'avif' });
    expect((await send('scene.jpg', CHROME)).headers.get('content-type')).to.equal('image/avif');
    expect((await send('moving.gif', CHROME)).headers.get('content-type')).to.equal('image/webp');
    expect((await send('moving.gif', CHROME, '&frames=first')).headers.get('content-type')).to.equal(
      'image/avif',
    );
  });

  it('is 406 if nothing fits, and chooses only formats with a quality for max_bytes', async () => {
    await startShared({});
    for (const [accept, query, suggested] of [
      ['text/html', '', 'image/webp, image/jpeg, image/png, image/gif'],
      ['image/bmp', '', 'image/webp, image/jpeg, image/png, image/gif'],
      ['image/png', '&max_bytes=9000', 'image/webp, image/jpeg'],
    ] as const) {
      const { status, reason, message, headers } = await send('scene.jpg', accept, query);
      expect([status, reason, headers.get('vary')], accept).to.deep.equal([406, 'not_acceptable', 'Accept']);
      expect(message).to.include(`: send ${suggested} or */*, or set output_format.`);
    }
    const limited = await send('window.png', 'image/png, image/jpeg', '&max_bytes=9000');
    expect(limited.headers.get('content-type')).to.equal('image/jpeg');
  });

  it('chooses a format for each file of a batch', async () => {
    await startShared({});
    const form = new FormData();
    form.append('format', 'auto');
    form.append('manifest', 'true');
    for (const name of ['scene.jpg', 'window.png', 'moving.gif'])
      form.append('files', new Blob([new Uint8Array(await fixture(name))]), name);
    const { headers, body } = await sendForm(`${current().base}/batch`, {
      method: 'POST',
      body: form,
      headers: { accept: 'image/jpeg, image/png, image/gif, application/zip' },
    });
    const entries = await readZip(body);
    expect(entries.map(({ name }) => name)).to.deep.equal([
      'scene.jpg',
      'window.png',
      'moving.gif',
      'manifest.json',
    ]);
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
    const path = join(await makeTempDir('presets'), 'presets.json');
    await writeFile(path, JSON.stringify({ presets: [{ name: 'set', variants }] }));
    await startShared({ PRESETS_FILE: path });
    const file = await fixture('moving.gif');
    for (const fields of [{ variants: JSON.stringify(variants) }, { preset: 'set' }]) {
      const ask = async (accept: string) => {
        const form = new FormData();
        for (const [name, value] of Object.entries(fields)) form.append(name, value);
        form.append('file', new Blob([new Uint8Array(file)]), 'a.gif');
        const url = `${current().base}/convert`;
        const { headers, status, body } = await sendForm(url, {
          method: 'POST',
          body: form,
          headers: { accept },
        });
        const names = status === 200 ? (await readZip(body)).map(({ name }) => name) : status;
        return [names, headers.get('vary')];
      };
      expect(await ask('image/jpeg, image/png, image/gif, application/zip')).to.deep.equal([
        ['a-best.gif', 'a-still.png', 'a-fixed.bmp', 'manifest.json'],
        'Accept',
      ]);
      expect(await ask('*/*')).to.deep.equal([
        ['a-best.webp', 'a-still.webp', 'a-fixed.bmp', 'manifest.json'],
        'Accept',
      ]);
      expect(await ask('image/bmp')).to.deep.equal([406, 'Accept']);
    }
  });
});
