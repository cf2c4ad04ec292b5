// @full
import { expect } from 'chai';
import sharp from 'sharp';
import {
  type ClientResponse,
  convert,
  expectSuccess,
  type Fields,
  type FormFile,
  fixture,
  jsonOf,
  postImage,
  sendBatch,
  sendForm,
} from '../helpers/client.ts';
import { writeTempFile } from '../helpers/hooks.ts';
import { type OwnService, startService } from '../helpers/service.ts';
import { failure } from '../helpers/util.ts';
import { readZip } from '../helpers/zip.ts';

const PRESETS = `
presets:
  - name: card
    format: jpg
    width: 60
    height: 60
    fit: cover
  - name: product
    quality: 50
    variants:
      - { name: square, width: 40, height: 40, fit: cover }
      - { name: zoom, format: png }
  - name: poster
    width: 16384
    enlarge: true
  - name: best
    format: auto
  - name: lenient
    on_error: skip
  - name: pair
    width: 300
    height: 200
    enlarge: true
    variants:
      - { name: one }
      - { name: other, format: png }
`;

const store = (text: string) => writeTempFile('presets.yaml', text);

describe('PRESETS_FILE', () => {
  let service: OwnService;
  let photo: Buffer;
  before(async () => {
    service = await startService({
      PRESETS_FILE: await store(PRESETS),
      MAX_PIXELS: '100000',
      MAX_TOTAL_PIXELS: '100000',
    });
    photo = await fixture('scene.jpg');
  });
  after(() => service.stop());

  const ask = (fields: Fields): Promise<ClientResponse> => convert(service.base, photo, fields, 'photo.jpg');

  it('gives names to options, which other fields of a request replace', async () => {
    const plain = await sharp((await ask({ preset: 'card' })).body).metadata();
    expect(plain).to.include({ format: 'jpeg', width: 60, height: 60 });
    const changed = await sharp(
      (await ask({ preset: 'card', width: '30', output_format: 'png' })).body,
    ).metadata();
    expect(changed).to.include({ format: 'png', width: 30, height: 60 });
  });

  it('gives names to variants', async () => {
    const { body } = await expectSuccess(ask({ preset: 'product' }));
    expect((await readZip(body)).map(({ name }) => name)).to.deep.equal([
      'photo-square.webp',
      'photo-zoom.png',
      'manifest.json',
    ]);
  });

  it('is listed in GET /formats and in the API reference, which have no presets without it', async () => {
    const read = async ({ base }: OwnService, path: string) =>
      JSON.parse(String((await sendForm(base + path)).body));
    const names = ['card', 'product', 'poster', 'best', 'lenient', 'pair'];
    expect((await read(service, '/formats')).presets).to.deep.equal(names);
    const { ConvertForm } = (await read(service, '/openapi.json')).components.schemas;
    expect(ConvertForm.properties.preset.enum).to.deep.equal(names);
    await using other = await startService();
    expect(await read(other, '/formats')).to.not.have.property('presets');
    expect((await convert(other.base, photo, { preset: 'card' })).outcome).to.equal(
      '400 Invalid preset "card": expected none: there are no presets.',
    );
  });

  it('gives names to options that POST /identify describes', async () => {
    const identify = async (query: string) => {
      return jsonOf(await postImage(`${service.base}/identify?${query}`, photo));
    };
    expect((await identify('preset=card')).conversion).to.include({ type: 'jpg', width: 60, height: 60 });
    expect((await identify('preset=card&height=30')).conversion).to.include({ width: 60, height: 30 });
    expect((await identify('preset=square')).error.field).to.equal('preset');
  });

  it('can have the format auto, and the response then has Vary: Accept', async () => {
    const { headers } = await ask({ preset: 'best' });
    expect(headers.get('vary')).to.equal('Accept');
    expect((await ask({ preset: 'card' })).headers.get('vary')).to.equal(null);
  });

  it('can skip files of a batch that are rejected during the upload', async () => {
    for (const [fields, expected] of [
      [{ preset: 'lenient' }, 200],
      [{ preset: 'lenient', on_error: 'fail' }, 415],
    ] as const) {
      const files = [photo, Buffer.from('no image')].map((file): FormFile => ['photo.jpg', file]);
      const { status } = await sendBatch(service.base, files, fields);
      expect(status).to.equal(expected);
    }
  });

  it('does not exceed the limits of the operator', async () => {
    expect((await ask({ preset: 'poster' })).outcome)
      .to.match(/^413 /)
      .and.include('(MAX_PIXELS)');
    const pair = await ask({ preset: 'pair' });
    expect(pair.status).to.equal(413);
    expect(pair.message).to.include('2 variants with 120000 pixels').and.include('(MAX_TOTAL_PIXELS)');
    expect((await ask({ preset: 'pair', width: '200' })).status).to.equal(200);
  });

  it('is checked at startup, with the line of each problem', async () => {
    for (const [text, expected] of [
      [
        'presets:\n  - name: a\n    quality: 101\n',
        [/:2: preset "a": Invalid quality "101": expected a whole number/],
      ],
      [
        'presets:\n  - name: a\n  - name: b\n    widht: 5\n  - name: a\n',
        [/:3: preset "b": Invalid option "widht"/, /:5: another preset is named a\./],
      ],
      ['presets:\n  - name: a\n    background: #fff\n', [/:3: presets\.0\.background: .*put quotes around/]],
      [
        'presets:\n  - name: a\n    format: avif\n',
        [
          /:2: preset "a": Invalid format "avif": expected one of webp, png, jpg, .*: EXTRA_OUTPUTS does not enable avif\.$/,
        ],
      ],
      [
        `presets:\n  - name: a\n    variants: [${'abcdefghijklm'.replace(/./g, '{ name: $& }, ')}]\n`,
        [/:2: preset "a": .*13.*12 .*\(MAX_VARIANTS\)/],
      ],
      ['presets: [\n', [/:\d: Flow sequence/]],
    ] as const) {
      const path = await store(text);
      const error = await failure(startService({ PRESETS_FILE: path }));
      const lines = error.message.split('\n');
      for (const [at, pattern] of expected.entries()) {
        expect(lines[at]).to.include(`PRESETS_FILE ${path}:`);
        expect(lines[at]).to.match(pattern);
      }
    }
    const error = await failure(startService({ PRESETS_FILE: '/nowhere/x' }));
    expect(error.message).to.equal('PRESETS_FILE /nowhere/x cannot be read: no such file or directory');
  });
});
