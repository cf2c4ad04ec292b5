import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import sharp from 'sharp';
import { createClient } from '../../src/client/library/index.ts';
import {
  convert,
  type Fields,
  type FormFile,
  fixture,
  formOf,
  jsonOf,
  postForm,
  postImage,
} from '../helpers/client.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { decode, difference, pixelAt, plain } from '../helpers/pixels.ts';
import { startService, useServiceWith } from '../helpers/service.ts';
import { failure } from '../helpers/util.ts';
import { readZip } from '../helpers/zip.ts';

const red = (side: number) => plain(side, side, '#ff0000').png().toBuffer();
const MARK = ['mark.png', 'watermark'] as const;

describe('the file part watermark', () => {
  const own = useServiceWith();
  const send = async (
    mark: Uint8Array,
    fields: Fields = {},
    more: readonly FormFile[] = [],
    path = '/convert',
  ) =>
    postForm(
      own.base + path,
      formOf(
        { output_format: 'png', ...fields },
        [['scene.png', await fixture('scene.png')], [MARK[0], mark, MARK[1]], ...more],
        path === '/batch' ? 'files' : 'file',
      ),
    );

  it('is put on the result, in any order of the parts', async () => {
    const marked = await decode((await send(await red(8))).body);
    expect(pixelAt(marked, marked.width - 6, marked.height - 6)).to.deep.equal([255, 0, 0, 255]);
    const form = formOf({ output_format: 'png' }, [
      ['mark.png', await red(8), 'watermark'],
      ['scene.png', await fixture('scene.png'), 'file'],
    ]);
    const other = await decode((await postForm(`${own.base}/convert`, form)).body);
    expect(difference(marked, other).max).to.equal(0);
  });

  it('changes the key and the ETag, as do its options', async () => {
    const keys = new Set<unknown>();
    const mark = await red(8);
    for (const [bytes, fields] of [
      [mark, {}],
      [await red(9), {}],
      [mark, { watermark_position: 'north' }],
      [mark, { watermark_opacity: '99' }],
      [mark, { watermark_scale: '21' }],
    ] as const)
      keys.add((await send(bytes, fields)).headers.get('x-conversion-key'));
    keys.add(
      (await convert(own.base, await fixture('scene.png'), { output_format: 'png' })).headers.get(
        'x-conversion-key',
      ),
    );
    expect(keys.size).to.equal(6);
    const etag = (await send(mark)).headers.get('etag') ?? '';
    const form = formOf({ output_format: 'png' }, [
      ['a', await fixture('scene.png'), 'file'],
      ['b', mark, 'watermark'],
    ]);
    expect((await postForm(`${own.base}/convert`, form, { 'if-none-match': etag })).status).to.equal(304);
  });

  it('is put on each variant at its own size, and on each file of a batch', async () => {
    const variants = JSON.stringify([
      { name: 'small', width: 40, watermark_scale: 50 },
      { name: 'large', width: 80, watermark_position: 'left top' },
    ]);
    const files = await readZip((await send(await red(8), { variants })).body);
    /** Whether these pixels of a row are red. */
    const marked = async (name: string, y: number, columns: readonly number[]) => {
      const picture = await decode(files.find((file) => file.name.includes(name))?.content as Buffer);
      return columns.map((x) => pixelAt(picture, x, y)[1] === 0);
    };
    const inside = [false, true, true, false];
    expect(await marked('small', 20, [18, 19, 38, 39])).to.deep.equal(inside);
    expect(await marked('large', 5, [1, 2, 17, 18])).to.deep.equal(inside);
    const batch = await send(await red(8), {}, [['b.gif', await fixture('scene.gif')]], '/batch');
    for (const { content } of await readZip(batch.body)) {
      const picture = await decode(content);
      expect(pixelAt(picture, picture.width - 6, picture.height - 6)).to.deep.equal([255, 0, 0, 255]);
    }
  });

  const BAD: Readonly<Record<string, readonly [() => Promise<Uint8Array>, number, string]>> = {
    'is no image': [async () => Buffer.from('no image'), 415, 'unsupported_type'],
    'is empty': [async () => Buffer.alloc(0), 400, 'empty_file'],
    'is damaged': [async () => (await fixture('scene.jpg')).subarray(0, 200), 400, 'corrupt_image'],
    'has more than 10 MiB': [
      async () => Buffer.concat([await fixture('scene.jpg'), Buffer.alloc(10 * 1024 ** 2)]),
      413,
      'watermark_too_large',
    ],
    'has more than 25 megapixels': [() => plain(5001, 5000).png().toBuffer(), 413, 'watermark_too_large'],
  };
  for (const [what, [mark, status, reason]] of Object.entries(BAD))
    it(`fails with ${status} and names the part if the watermark ${what}`, async () => {
      for (const fields of [{}, { variants: '{"name":"a"}' }]) {
        const answer = await send(await mark(), fields);
        const { error } = jsonOf(answer);
        expect([answer.status, error.reason]).to.deep.equal([status, reason]);
        expect(error.message).to.match(/^The watermark /);
      }
    });

  it('fails with 400 if it is sent twice or as text', async () => {
    const twice = await send(await red(8), {}, [['b.png', await red(8), 'watermark']]);
    expect([twice.status, jsonOf(twice).error.field]).to.deep.equal([400, 'watermark']);
    const text = await convert(own.base, await fixture('scene.png'), { watermark: 'logo.png' });
    expect([text.status, jsonOf(text).error.field]).to.deep.equal([400, 'watermark']);
  });

  it('can be the image that a preset names, unless the request has one', async () => {
    const folder = await makeTempDir('presets');
    const path = join(folder, 'presets.yaml');
    await writeFile(join(folder, 'logo.png'), await red(8));
    await writeFile(path, 'presets:\n  - { name: logo, format: png, width: 60, watermark: logo.png }\n');
    await using service = await startService({ PRESETS_FILE: path });
    const picture = await fixture('scene.png');
    const expected = await send(await red(8), { width: '60' });
    const found = await convert(service.base, picture, { preset: 'logo' });
    expect(found.body.equals(expected.body)).to.equal(true);
    const asBody = await postImage(`${service.base}/convert?preset=logo`, picture);
    expect(asBody.body.equals(expected.body)).to.equal(true);
    const described = await postImage(`${service.base}/identify?preset=logo&plan=true`, picture);
    expect(jsonOf(described).explanation.key).to.equal(asBody.headers.get('x-conversion-key'));
    const blue = await plain(8, 8, '#0000ff').png().toBuffer();
    const form = formOf({ preset: 'logo' }, [
      ['a.png', picture, 'file'],
      ['b.png', blue, 'watermark'],
    ]);
    const other = await decode((await postForm(`${service.base}/convert`, form)).body);
    expect(pixelAt(other, other.width - 4, other.height - 4)).to.deep.equal([0, 0, 255, 255]);
    expect((await convert(service.base, picture, { watermark: 'logo.png' })).status).to.equal(400);
  });

  it('that a preset names ends the start if it is missing or no image', async () => {
    const folder = await makeTempDir('presets');
    const path = join(folder, 'presets.yaml');
    await writeFile(path, 'presets:\n  - { name: logo, watermark: logo.png }\n');
    const start = async () => (await failure(startService({ PRESETS_FILE: path }))).message;
    const image = join(folder, 'logo.png');
    expect(await start()).to.match(
      new RegExp(`^PRESETS_FILE ${path}: preset "logo": watermark ${image}: it cannot be read: `),
    );
    await writeFile(image, 'no image');
    expect(await start()).to.include(
      `watermark ${image}: The watermark is not an image of a supported format`,
    );
  });

  it('belongs to the conversion that POST /identify describes', async () => {
    const converted = await send(await red(8), { watermark_opacity: '50' });
    const described = jsonOf(
      await send(await red(8), { watermark_opacity: '50', plan: 'true' }, [], '/identify'),
    );
    expect(described.explanation.key).to.equal(converted.headers.get('x-conversion-key'));
    expect(described.explanation.sentences).to.include(
      'a watermark at right bottom, with 20% of the width and 50% opacity',
    );
    const form = formOf({}, [
      ['scene.png', await fixture('scene.png'), 'file'],
      [MARK[0], await red(8), MARK[1]],
    ]);
    expect(jsonOf(await postForm(`${own.base}/identify`, form)).conversion).to.include({ type: 'webp' });
    expect((await send(Buffer.from('no image'), {}, [], '/identify')).status).to.equal(415);
  });

  it('is an option of the client', async () => {
    const client = createClient(own.base);
    const watermark = new Blob([new Uint8Array(await red(8))]);
    const { response } = await client.convert(await fixture('scene.png'), { format: 'png', watermark });
    const { data } = await sharp(await response.bytes())
      .raw()
      .toBuffer({ resolveWithObject: true });
    const sent = await decode((await send(await red(8))).body);
    expect(data.length).to.equal(sent.width * sent.height * 3);
  });
});
