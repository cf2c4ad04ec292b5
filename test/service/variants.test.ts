import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { expect } from 'chai';
import sharp from 'sharp';
import { OUTPUTS, type OutputType } from '../../src/tables/formats.ts';
import {
  type ClientResponse,
  convert,
  type Fields,
  type FormFile,
  fixture,
  formOf,
  postForm,
  sendBatch,
} from '../helpers/client.ts';
import { useServiceWith } from '../helpers/service.ts';
import { readZip } from '../helpers/zip.ts';

const photo = await fixture('scene.jpg');

describe('variants', () => {
  const service = useServiceWith({ MAX_TOTAL_PIXELS: '1000000' });

  const CARD = { name: 'card', width: 60, height: 40, fit: 'cover' };
  const ZOOM = { name: 'zoom', format: 'jpg', width: 100, quality: 90 };

  interface Entry {
    readonly variant: string;
    readonly name: string;
    readonly type: OutputType;
    readonly width: number;
    readonly height: number;
    readonly bytes: number;
    readonly sha256: string;
    readonly notes: readonly string[];
    readonly message?: string;
    readonly error?: { readonly message: string; readonly reason: string };
  }

  const ask = (variants: unknown, fields: Fields = {}, name = 'a photo.jpg') =>
    convert(service.base, photo, { variants: JSON.stringify(variants), ...fields }, name);

  async function unpack({ status, message, body }: ClientResponse): Promise<Map<string, Buffer>> {
    expect(status, message).to.equal(200);
    return new Map((await readZip(body)).map(({ name, content }) => [name, content]));
  }
  const manifestOf = (files: Map<string, Buffer>): Entry[] => JSON.parse(String(files.get('manifest.json')));

  it('are sent as a ZIP with the names of the variants, and a manifest that describes each', async () => {
    const files = await unpack(await ask([CARD, ZOOM, { name: 'whole', output_format: 'PNG' }]));
    expect([...files.keys()]).to.deep.equal([
      'a photo-card.webp',
      'a photo-zoom.jpg',
      'a photo-whole.png',
      'manifest.json',
    ]);
    const manifest = manifestOf(files);
    expect(manifest.map(({ variant }) => variant)).to.deep.equal(['card', 'zoom', 'whole']);
    for (const entry of manifest) {
      const file = files.get(entry.name) as Buffer;
      const { width, height, format } = await sharp(file).metadata();
      expect(entry).to.include({ width, height, bytes: file.length });
      expect(OUTPUTS[entry.type].mediaType).to.equal(`image/${format}`);
      expect(entry.sha256).to.equal(createHash('sha256').update(file).digest('hex'));
      expect(entry.notes).to.deep.equal([]);
    }
  });

  it('have the bytes of single conversions', async () => {
    const files = await unpack(await ask([CARD, ZOOM], { quality: '50' }));
    const single = [
      ['a photo-card.webp', { width: '60', height: '40', fit: 'cover', quality: '50' }],
      ['a photo-zoom.jpg', { width: '100', format: 'jpg', quality: '90' }],
    ] as const;
    for (const [name, fields] of single)
      expect(files.get(name)?.equals((await convert(service.base, photo, fields)).body), name).to.equal(true);
  });

  it('can be sent one by one, in repeated fields', async () => {
    const form = formOf({}, [['x.jpg', photo]]);
    for (const variant of [CARD, ZOOM]) form.append('variants', JSON.stringify(variant));
    const files = await unpack(await postForm(`${service.base}/convert`, form));
    expect([...files.keys()]).to.deep.equal(['x-card.webp', 'x-zoom.jpg', 'manifest.json']);
  });

  it('can have a dozen with long names and many options in one field, which has at most 8 KiB', async () => {
    const options = { ...CARD, position: 'right bottom', background: '#336699', strip_metadata: false };
    const wanted = Array.from({ length: 12 }, (_, at) => ({ ...options, name: `${at}-`.padEnd(64, 'x') }));
    expect((await unpack(await ask(wanted))).size).to.equal(13);
    const { outcome } = await ask([...wanted, ...wanted, ...wanted, ...wanted, ...wanted]);
    expect(outcome).to.match(
      /^400 Invalid variants ".*": expected at most 8192 bytes\. Send the rest in another field/,
    );
  });

  it('are made of each file of a batch, which shares the results of identical files', async () => {
    const sent = ['one.jpg', 'broken.jpg', 'two.jpg'].map(
      (name): FormFile => [name, name === 'broken.jpg' ? photo.subarray(0, 100) : photo],
    );
    const fields = { variants: JSON.stringify([CARD, ZOOM]), on_error: 'skip' };
    const files = await unpack(await sendBatch(service.base, sent, fields));
    expect([...files.keys()]).to.deep.equal([
      'one-card.webp',
      'one-zoom.jpg',
      'two-card.webp',
      'two-zoom.jpg',
      'errors.json',
      'manifest.json',
    ]);
    const manifest = manifestOf(files).map(({ variant, name, error }) => [variant, name ?? error?.reason]);
    expect(manifest).to.deep.equal([
      ['card', 'one-card.webp'],
      ['zoom', 'one-zoom.jpg'],
      ['card', 'corrupt_image'],
      ['zoom', 'corrupt_image'],
      ['card', 'two-card.webp'],
      ['zoom', 'two-zoom.jpg'],
    ]);
    const [error] = JSON.parse(String(files.get('errors.json')));
    expect(error).to.include({ index: 1, file: 'broken.jpg', variant: 'card' });
    expect(error.error.message).to.match(/^File 2 \("broken\.jpg"\) \(variant "card"\) is damaged/);
  });

  describe('with a variant that fails', () => {
    const LARGE = { name: 'huge', width: 1001, height: 1001, fit: 'fill', enlarge: true, format: 'png' };
    const IMPOSSIBLE = { name: 'tiny', format: 'jpg', max_bytes: 10 };

    it('fail the request with the status of the variant, and name it', async () => {
      for (const [variants, says] of [
        [[CARD, IMPOSSIBLE], 'The file (variant "tiny") cannot be reduced to 10 bytes'],
        [
          [CARD, { name: 'out', crop: '0,0,9000,9000' }],
          'The file (variant "out") is 120 × 80 pixels when upright',
        ],
      ] as const) {
        expect((await ask(variants)).outcome)
          .to.match(/^400 /)
          .and.include(says);
      }
    });

    it('are sent without it with on_error=skip, and the manifest names it', async () => {
      const files = await unpack(await ask([IMPOSSIBLE, CARD], { on_error: 'skip' }));
      expect([...files.keys()]).to.deep.equal(['a photo-card.webp', 'errors.json', 'manifest.json']);
      const [tiny, card] = manifestOf(files);
      expect(tiny).to.include({ variant: 'tiny' });
      expect(tiny?.error?.message).to.include('(variant "tiny") cannot be reduced');
      expect(card).to.include({ variant: 'card', name: 'a photo-card.webp' });
    });

    it('return the error if all fail', async () => {
      expect((await ask([IMPOSSIBLE], { on_error: 'skip' })).outcome)
        .to.match(/^400 /)
        .and.include('(variant "tiny")');
    });

    it('count together toward the pixels of the request', async () => {
      const half = { width: 800, height: 700, fit: 'fill', enlarge: true };
      const both = ['a', 'b'].map((name) => ({ name, ...half }));
      const { body, outcome } = await ask(both, { on_error: 'skip' });
      expect(outcome).to.equal(
        '413 The file would become 2 variants with 1120000 pixels, more than the limit of 1000000 in total (MAX_TOTAL_PIXELS): set a smaller width or height, or send fewer variants.',
      );
      expect(JSON.parse(body.toString()).error.reason).to.equal('variants_too_large_in_total');
      expect((await ask([CARD, LARGE])).status).to.equal(413);
    });
  });

  it('return 400 naming the variant for names and options that are not valid', async () => {
    for (const [variants, says] of [
      [[CARD, { ...ZOOM, name: 'CARD' }], 'Variant "CARD": another variant has this name.'],
      [
        [CARD, { name: 'b', quality: 101 }],
        'Variant "b": Invalid quality "101": expected a whole number from 1 to 100, or auto.',
      ],
      [[{ name: 'b', widht: 5 }], 'Variant "b": Invalid option "widht": expected one of '],
      [
        [{ name: 'b', fit: 'cover' }],
        'Variant "b": Invalid fit "cover": expected width and height, of which both are missing.',
      ],
      [[CARD, { width: 5 }], 'Variant 2: name: expected up to 64 letters, digits'],
      [
        [{ name: '../x' }],
        'Variant 1: name: expected up to 64 letters, digits, dots, hyphens and underscores.',
      ],
      [[{ name: 'b', width: [5] }], 'Variant 1: width: expected a text, a number, true or false'],
      [[{ name: 'b', variants: '[]' }], 'Variant "b": Invalid option "variants"'],
      [[], 'Invalid variants "[]": expected a JSON array of objects, each with a name and options.'],
      [[5], 'Invalid variants "[5]": expected a JSON array'],
      [[[CARD]], 'expected a JSON array of objects, each with a name and options.'],
      [[{ name: 'b', 'line\nbreak': [5] }], 'Variant 1: line\u{fffd}break: expected a text'],
    ] as const) {
      expect((await ask(variants)).outcome, JSON.stringify(variants))
        .to.match(/^400 /)
        .and.include(says);
    }
    expect((await convert(service.base, photo, { variants: '{' })).outcome).to.equal(
      '400 Invalid variants "{": expected a JSON array of objects, each with a name and options.',
    );
  });

  it('return 400 for more than MAX_VARIANTS', async () => {
    const variants = Array.from({ length: 13 }, (_, at) => ({ name: `v${at}`, width: 10 }));
    expect((await ask(variants)).outcome).to.equal(
      '400 Too many variants: 13, more than the limit of 12 (MAX_VARIANTS).',
    );
    expect((await unpack(await ask(variants.slice(1)))).size).to.equal(13);
  });

  it('leave no files behind', async () => {
    await ask([CARD, ZOOM]);
    await ask([CARD, { name: 'tiny', format: 'jpg', max_bytes: 10 }]);
    const [home] = await readdir(service.tempDir);
    const left = (await readdir(`${service.tempDir}/${home}`)).filter((name) => /^\d+$/.test(name));
    expect(left).to.deep.equal([]);
  });
});
