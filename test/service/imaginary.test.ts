// @slow
import { expect } from 'chai';
import sharp from 'sharp';
import { toPasses } from '../../src/server/imaginary/pipeline.ts';
import {
  type ClientResponse,
  type Fields,
  fixture,
  fixturePath,
  formOf,
  jsonOf,
  sendForm,
} from '../helpers/client.ts';
import { extra } from '../helpers/extra.ts';
import { fakeMagick } from '../helpers/fake-magick.ts';
import { decode, difference, type Pixels, toPixels } from '../helpers/pixels.ts';
import { useOwnServices } from '../helpers/service.ts';

const KEY = 'secret of the cloud';
const SETTINGS = {
  IMAGINARY_PATH: '/imaginary',
  IMAGINARY_KEY: KEY,
  EXTRA_INPUTS: 'heic,pdf',
  RATE_LIMIT_PER_MINUTE: '5',
};

describe('the interface of imaginary', () => {
  const { start, startShared, current } = useOwnServices();

  const request = (path: string, query: Fields, init: RequestInit = {}) => {
    const url = new URL(`/imaginary${path}`, current().base);
    url.search = new URLSearchParams({ key: KEY, ...query }).toString();
    return sendForm(url.href, init);
  };
  const post = (path: string, query: Record<string, string>, file: Uint8Array, type?: string) =>
    request(path, query, {
      method: 'POST',
      body: new Uint8Array(file),
      headers: type ? { 'content-type': type } : {},
    });
  /** Media type, size in the headers and size of the image itself. */
  const described = async ({ status, headers, body }: ClientResponse) => {
    expect(status, body.toString('latin1').slice(0, 200)).to.equal(200);
    const { width, height } = await sharp(body).metadata();
    expect(`${headers.get('image-width')}x${headers.get('image-height')}`).to.equal(`${width}x${height}`);
    return `${headers.get('content-type')} ${width}x${height}`;
  };

  it('takes heads of 64 kB, and only below its path: other paths answer 431 above 16 kB', async () => {
    await startShared(SETTINGS);
    const statusOf = async (path: string, length: number) => {
      const { status, headers, body } = await sendForm(new URL(path, current().base).href, {
        headers: { 'x-filler': 'x'.repeat(length) },
      });
      if (status === 431) expect(JSON.parse(body.toString()).error.reason).to.equal('headers_too_large');
      return `${status} ${headers.has('x-ratelimit-limit')}`;
    };
    const path = `/imaginary/?key=${encodeURIComponent(KEY)}`;
    expect(await statusOf(path, 60_000)).to.equal('200 false');
    expect(await statusOf(path, 66_000)).to.equal('431 false');
    for (const [path, isApi] of [
      ['/api/v1/formats', true],
      ['/docs', false],
      ['/livez', false],
      ['/imaginary-other', false],
    ] as const)
      expect(await statusOf(path, 16_300), path).to.equal(`431 ${isApi}`);
    expect(await statusOf('/livez', 15_000)).to.equal('200 false');
  });

  describe('answers what Nextcloud sends for a preview:', () => {
    const last = (operation: 'fit' | 'smartcrop', type: string) => ({
      operation,
      params: { width: 64, height: 64, stripmeta: 'true', type, norotation: 'true', quality: '80' },
    });
    const rotate = { operation: 'autorotate' };
    const toPng = { operation: 'convert', params: { type: 'png' } };
    for (const [what, file, operations, expected] of [
      ['a photo', () => fixture('scene.jpg'), [rotate, last('fit', 'jpeg')], 'image/jpeg 64x43'],
      ['a cropped photo', () => fixture('scene.jpg'), [last('smartcrop', 'jpeg')], 'image/jpeg 64x64'],
      [
        'a rotated photo',
        () => fixture('orientation-6.jpg'),
        [rotate, last('fit', 'webp')],
        'image/webp 64x43',
      ],
      ['a PNG', () => fixture('scene.png'), [rotate, last('fit', 'png')], 'image/png 64x43'],
      ['an animated GIF', () => fixture('moving.gif'), [rotate, last('fit', 'webp')], 'image/webp 48x32'],
      ['an SVG', () => fixture('scene.svg'), [toPng, last('fit', 'png')], 'image/png 64x43'],
      ['a page of a PDF', () => extra('scene.pdf'), [toPng, last('fit', 'jpeg')], 'image/jpeg 64x43'],
      ['a HEIC, without autorotate', () => extra('scene.heic'), [last('fit', 'jpeg')], 'image/jpeg 64x43'],
    ] as const) {
      it(what, async () => {
        await startShared(SETTINGS);
        const answer = await post('/pipeline', { operations: JSON.stringify(operations) }, await file());
        expect(await described(answer)).to.equal(expected);
        expect(await sharp(answer.body).metadata()).to.not.have.any.keys('exif', 'pages');
      });
    }

    it('also in a body with another type, and in chunks', async () => {
      await startShared(SETTINGS);
      const bytes = await fixture('scene.jpg');
      const query = { operations: JSON.stringify([last('fit', 'jpeg')]) };
      const { body } = await post('/pipeline', query, bytes);
      for (const type of ['application/x-www-form-urlencoded', 'image/svg+xml'])
        expect((await post('/pipeline', query, bytes, type)).body.equals(body), type).to.equal(true);
      const stream = new Blob([new Uint8Array(bytes)]).stream();
      const chunked = { method: 'POST', body: stream, duplex: 'half' } as RequestInit;
      expect((await request('/pipeline', query, chunked)).body.equals(body)).to.equal(true);
    });
  });

  describe('answers what its apps send:', () => {
    it('the index, the properties of a form, and an exact size of Face Recognition', async () => {
      await startShared(SETTINGS);
      expect(jsonOf(await request('/', {}))).to.deep.equal({ imaginary: '1.2.4', imagemill: '0.0.0-test' });
      const photo = await fixture('orientation-6.jpg');
      const form = formOf({}, [['photo.jpg', photo]]);
      const info = await request('/info', {}, { method: 'POST', body: form });
      expect(jsonOf(info)).to.deep.equal({
        width: 120,
        height: 80,
        type: 'jpeg',
        space: 'srgb',
        hasAlpha: false,
        hasProfile: true,
        channels: 3,
        orientation: 1,
      });
      const operations = [
        { operation: 'autorotate' },
        {
          operation: 'resize',
          params: {
            width: 200,
            height: 333,
            force: 'true',
            type: 'jpeg',
            stripmeta: 'true',
            norotation: 'true',
          },
        },
      ];
      const resized = await post('/pipeline', { operations: JSON.stringify(operations) }, photo);
      expect(await described(resized)).to.equal('image/jpeg 200x333');
    });

    it('/info of Passwords', async () => {
      await startShared(SETTINGS);
      const size = { width: 120, height: 80, space: 'srgb', orientation: 1 };
      for (const [name, expected] of [
        ['scene.png', { ...size, type: 'png', hasAlpha: false, channels: 3 }],
        ['window.png', { ...size, type: 'png', hasAlpha: true, channels: 4 }],
        ['grey.jpg', { type: 'jpeg', space: 'srgb', channels: 3 }],
        ['p3.jpg', { hasProfile: true }],
      ] as const)
        expect(jsonOf(await post('/info', {}, await fixture(name))), name).to.include(expected);
    });
  });

  it('applies a second size, an area of a resized picture and a later rotation, in order', async () => {
    await startShared(SETTINGS);
    const png = await fixture('scene.png'); // 120×80
    const operations = JSON.stringify([
      { operation: 'thumbnail', params: { width: 60, height: 40 } },
      { operation: 'extract', params: { left: 10, top: 5, areawidth: 30, areaheight: 20 } },
      { operation: 'rotate', params: { rotate: 90, type: 'png' } },
    ]);
    const { body, status } = await post('/pipeline', { operations }, png);
    expect(status).to.equal(200);
    const area = { left: 10, top: 5, width: 30, height: 20 };
    const resized = await sharp(png).resize(60, 40, { fit: 'fill' }).png().toBuffer();
    const expected = await sharp(resized).extract(area).png().toBuffer();
    expect(difference(await decode(body), await toPixels(sharp(expected).rotate(90))).psnr).to.be.above(40);
    const query = { left: '10', top: '5', areawidth: '30', areaheight: '20', width: '60', height: '40' };
    const extracted = await post('/extract', query, png);
    expect(difference(await decode(extracted.body), await decode(expected)).psnr).to.be.above(40);
  });

  it('leaves the picture as it is if an operation with ignore_failure fails', async () => {
    await startShared(SETTINGS);
    const png = await fixture('scene.png');
    const outside = { left: 100, top: 0, areawidth: 50, areaheight: 50 };
    const pipeline = (ignore_failure: boolean, params: object, operation = 'extract') =>
      post(
        '/pipeline',
        {
          operations: JSON.stringify([
            { operation: 'flip' },
            { operation, params, ignore_failure },
            { operation: 'thumbnail', params: { width: 60, type: 'webp' } },
          ]),
        },
        png,
      );
    for (const params of [outside, {}]) {
      expect((await pipeline(false, params)).status).to.equal(400);
      expect(await described(await pipeline(true, params))).to.equal('image/webp 60x40');
    }
    const inside = { left: 60, top: 0, areawidth: 60, areaheight: 80 };
    expect(await described(await pipeline(true, inside))).to.equal('image/webp 60x80');
    expect((await pipeline(true, {}, 'constructor')).status).to.equal(400);
    expect((await pipeline(true, { ...inside, width: 60 })).status).to.equal(400);
  });

  it('extracts exactly the pixels of the area, also from a form with another field', async () => {
    await startShared(SETTINGS);
    const png = await fixture('scene.png');
    const form = formOf({}, [['a.png', png]], 'image');
    const query = { top: '10', left: '20', areawidth: '50', areaheight: '40', field: 'image' };
    const { body } = await request('/extract', query, { method: 'POST', body: form });
    const area = { left: 20, top: 10, width: 50, height: 40 };
    const expected = await toPixels(sharp(png).extract(area));
    expect(difference(await decode(body), expected).psnr).to.equal(Number.POSITIVE_INFINITY);
  });

  it('has one time limit for all conversions of a pipeline', async () => {
    // Each takes more than a third of the limit.
    const MAGICK_BIN = await fakeMagick(`sleep 1.1; cp ${fixturePath('scene.png')} image.png`);
    const operations = (count: number) =>
      JSON.stringify(
        Array.from({ length: count }, () => ({ operation: 'resize', params: { width: 30, height: 20 } })),
      );
    await start({ ...SETTINGS, EXTRA_INPUTS: '', MAGICK_BIN, CONVERT_TIMEOUT_MS: '3000' });
    const scene = await fixture('scene.png');
    const { status, body } = await post('/pipeline', { operations: operations(3) }, scene);
    expect([status, body.toString()]).to.deep.equal([
      413,
      '{"message":"The file took longer to convert than the limit of 3 seconds (CONVERT_TIMEOUT_MS).","status":413}',
    ]);
  });

  describe('puts a watermark', () => {
    const mark = async (query: Record<string, string>) => {
      const { status, body } = await post(
        '/watermark',
        { type: 'png', ...query },
        await fixture('scene.png'),
      );
      expect(status, body.toString('latin1').slice(0, 200)).to.equal(200);
      return decode(body);
    };
    /**
     * Returns the box around the pixels that differ by more than 8 of 255, as left, top, right and
     * bottom.
     */
    const changedBox = (one: Pixels, other: Pixels): number[] => {
      const places = Array.from({ length: one.width * one.height }, (_, at) => at).filter((at) =>
        [0, 1, 2].some((channel) => {
          const index = at * 4 + channel;
          return Math.abs((one.data[index] ?? 0) - (other.data[index] ?? 0)) > 8;
        }),
      );
      const [xs, ys] = [places.map((at) => at % one.width), places.map((at) => Math.floor(at / one.width))];
      return [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
    };

    it('of text in its font, colour and opacity, once from its margin, no wider than textwidth', async () => {
      await startShared(SETTINGS);
      const plain = await decode(await fixture('scene.png'));
      const red = {
        text: 'A & <B>',
        font: 'sans bold 30',
        color: '255,0,0',
        opacity: '1',
        noreplicate: 'true',
      };
      const marked = await mark({ ...red, textwidth: '60', margin: '20' });
      const [left = 0, top = 0, right = 0, bottom = 0] = changedBox(plain, marked);
      expect(left).to.be.within(20, 23);
      expect(right).to.be.within(72, 79);
      expect(top).to.be.within(20, 26);
      expect(bottom).to.be.within(28, 40);
      const reds = Array.from({ length: 120 * 80 }, (_, at) => [...marked.data.subarray(at * 4, at * 4 + 3)]);
      expect(reds.filter((pixel) => pixel.join() === '255,0,0')).to.have.lengthOf.above(50);
      const faint = await mark({ ...red, opacity: '0.1', textwidth: '60', margin: '20' });
      expect(difference(plain, faint).max).to.be.within(8, 26);
      const [small] = changedBox(plain, await mark({ ...red, font: 'sans 8', dpi: '72', margin: '50' }));
      expect(small).to.be.within(50, 52);
    });

    it('of text again and again without noreplicate, by default a sixth of the width apart', async () => {
      await startShared(SETTINGS);
      const plain = await decode(await fixture('scene.png'));
      const [left, top, right, bottom] = changedBox(plain, await mark({ text: 'MMM', opacity: '1' }));
      expect(left).to.be.within(20, 22);
      expect(top).to.be.within(20, 24);
      expect(right).to.be.within(112, 119);
      expect(bottom).to.be.within(50, 79);
    });

    it('of text whose own size would be 300 megapixels, reduced to textwidth', async () => {
      await startShared(SETTINGS);
      const plain = await decode(await fixture('scene.png'));
      const large = { text: 'a', font: 'sans 1000', dpi: '1200', opacity: '1', noreplicate: 'true' };
      const [left, , right] = changedBox(plain, await mark({ ...large, textwidth: '40', margin: '10' }));
      expect(left).to.be.within(10, 30);
      expect(right).to.be.within(35, 50);
    });

    it('of text with a margin beyond the picture, so that nothing of it is visible', async () => {
      await startShared(SETTINGS);
      const plain = await decode(await fixture('scene.png'));
      const marked = await mark({ text: 'a', opacity: '1', margin: '9000' });
      expect(difference(plain, marked).psnr).to.equal(Number.POSITIVE_INFINITY);
    });

    it('that is the second file of a form, at its own size and place, once for each operation', async () => {
      await startShared(SETTINGS);
      const scene = await fixture('scene.png');
      const image = await sharp(await fixture('window.png'))
        .resize(40, 30)
        .png()
        .toBuffer();
      const operations = JSON.stringify([
        { operation: 'watermarkimage', params: { left: 70, top: 10 } },
        { operation: 'flip' },
        { operation: 'watermarkimage', params: { left: 0, top: '60' } },
      ]);
      const form = formOf({}, [
        ['w.png', image, 'watermark'],
        ['a.png', scene],
      ]);
      const { status, body } = await request('/pipeline', { operations }, { method: 'POST', body: form });
      expect(status, body.toString('latin1').slice(0, 200)).to.equal(200);
      const composite = (picture: Buffer, input: Buffer, left: number, top: number) =>
        sharp(picture).composite([{ input, left, top }]).png().toBuffer();
      const first = await composite(scene, image, 70, 10);
      const inside = await sharp(image).extract({ left: 0, top: 0, width: 40, height: 20 }).png().toBuffer();
      const expected = await composite(await sharp(first).flip().png().toBuffer(), inside, 0, 60);
      expect(difference(await decode(body), await decode(expected)).psnr).to.be.above(45);
    });
  });

  for (const [path, query, expected] of [
    // What Passwords sends.
    ['/resize', { width: '30' }, 'image/png 30x20'],
    ['/resize', { width: '30', height: '30' }, 'image/png 30x30'],
    ['/extract', { top: '10', left: '20', areawidth: '50', areaheight: '40' }, 'image/png 50x40'],
    ['/smartcrop', { width: '40', aspectratio: '1:1' }, 'image/png 40x40'],
    ['/convert', { type: 'jpeg', quality: '70', compression: '9' }, 'image/jpeg 120x80'],
    ['/convert', { type: 'jpeg', quality: 'auto' }, 'image/jpeg 120x80'],
    // Other operations.
    ['/fit', { width: '60', height: '60' }, 'image/png 60x40'],
    ['/fit', { width: '600', height: '600' }, 'image/png 120x80'],
    ['/crop', { width: '60' }, 'image/png 60x80'],
    ['/crop', { width: '60', height: '60', gravity: 'west' }, 'image/png 60x60'],
    ['/enlarge', { width: '300', height: '300' }, 'image/png 300x300'],
    ['/enlarge', { width: '300', height: '300', nocrop: 'true' }, 'image/png 300x200'],
    ['/thumbnail', { height: '40' }, 'image/png 60x40'],
    ['/thumbnail', { width: '33.4', height: '20' }, 'image/png 33x20'],
    ['/resize', { width: '240', height: '', force: '1' }, 'image/png 240x160'],
    ['/resize', { width: '40', rotate: '270' }, 'image/png 40x60'],
    ['/zoom', { factor: '1' }, 'image/png 240x160'],
    ['/zoom', { factor: '2', top: '4', left: '5', areawidth: '10', areaheight: '20' }, 'image/png 30x60'],
    ['/zoom', { factor: '1', top: '0', left: '0' }, 'image/png 240x160'],
    ['/zoom', { factor: '3', height: '100' }, 'image/png 150x100'],
    ['/rotate', { rotate: '90', width: '40' }, 'image/png 40x60'],
    ['/flip', { height: '40' }, 'image/png 60x40'],
    ['/flop', {}, 'image/png 120x80'],
    ['/blur', { sigma: '1.5', width: '240' }, 'image/png 240x160'],
    ['/convert', { type: 'webp', width: '60' }, 'image/webp 60x40'],
  ] as const) {
    it(`makes ${expected} of 120x80 for ${path}?${new URLSearchParams(query)}`, async () => {
      await startShared(SETTINGS);
      expect(await described(await post(path, query, await fixture('scene.png')))).to.equal(expected);
    });
  }

  it('makes the same of zoom with a width as of thumbnail, and with an area as of extract, and refuses to ignore its failure', async () => {
    await startShared(SETTINGS);
    const scene = await fixture('scene.png');
    const area = { top: '5', left: '7', areawidth: '20', areaheight: '30' };
    for (const [size, other, more] of [
      [{ width: '60' }, '/thumbnail', {}],
      [{ width: '50', height: '70' }, '/thumbnail', {}],
      [{ width: '60' }, '/extract', area],
      [{ width: '200', height: '200' }, '/extract', area],
    ] as const) {
      const [zoomed, expected] = await Promise.all([
        post('/zoom', { factor: '3', ...size, ...more }, scene),
        post(other, { ...size, ...more }, scene),
      ]);
      await described(zoomed);
      expect(zoomed.body.equals(expected.body), `${other} ${JSON.stringify(size)}`).to.equal(true);
    }
    const params = { factor: 1, width: 60, ...area };
    const operations = JSON.stringify([{ operation: 'zoom', params, ignore_failure: true }]);
    const { status, body } = await post('/pipeline', { operations }, scene);
    expect([status, JSON.parse(body.toString()).message]).to.deep.equal([
      400,
      'Invalid ignore_failure "true": expected zoom without width and height.',
    ]);
  });

  it('answers type=auto with the best format that Accept permits', async () => {
    await startShared(SETTINGS);
    const body = new Uint8Array(await fixture('grey.jpg'));
    for (const [accept, type] of [
      ['image/png', 'image/png'],
      ['image/webp;q=0.5, image/jpeg', 'image/jpeg'],
    ] as const) {
      const { status, headers } = await request(
        '/convert',
        { type: 'auto' },
        { method: 'POST', body, headers: { accept } },
      );
      expect([status, headers.get('content-type'), headers.get('vary')]).to.deep.equal([200, type, 'Accept']);
    }
  });

  describe('refuses', () => {
    const refusal = async (answer: ClientResponse | Promise<ClientResponse>) => {
      const { status, headers, body } = await answer;
      expect(headers.get('content-type')).to.equal('application/json; charset=utf-8');
      const parsed = JSON.parse(body.toString()) as { message: string; status: number };
      expect(Object.keys(parsed)).to.deep.equal(['message', 'status']);
      expect(parsed.status).to.equal(status);
      return `${status} ${parsed.message}`;
    };
    const pipeline = async (operations: unknown) => {
      const text = typeof operations === 'string' ? operations : JSON.stringify(operations);
      return refusal(post('/pipeline', { operations: text }, await fixture('grey.jpg')));
    };

    it('a wrong or missing key with 401, which counts toward the rate limit; the right key does not', async () => {
      await start({ ...SETTINGS, RATE_LIMIT_PER_MINUTE: '3' });
      const photo = await fixture('scene.jpg');
      for (let count = 0; count < 5; count += 1)
        expect((await post('/resize', { width: '9' }, photo)).status).to.equal(200);
      for (const key of ['wrong', '', `${KEY}x`])
        expect(await refusal(post('/resize', { width: '9', key }, photo))).to.match(
          /^401 The API key is not/,
        );
      expect(await refusal(request('/', { key: '' }))).to.match(
        /^429 Too many requests: at most 3 per minute/,
      );
      expect((await post('/resize', { width: '9' }, photo)).status).to.equal(200);
      const inHeader = { headers: { 'api-key': KEY } };
      expect((await fetch(new URL('/imaginary/', current().base), inHeader)).status).to.equal(200);
      expect(JSON.stringify(current().logged)).to.not.include(KEY);
    });

    it('other operations, and names those that it has', async () => {
      await startShared(SETTINGS);
      const names =
        'autorotate, convert, resize, fit, crop, smartcrop, enlarge, thumbnail, extract, zoom, rotate, flip, flop, blur, watermark, watermarkimage';
      for (const operation of ['form', 'constructor'])
        expect(await pipeline([{ operation }])).to.equal(
          `400 Invalid operation "${operation}": expected one of ${names}.`,
        );
      for (const path of ['/mirror', '/form', '/resize/', '/a/b', '/constructor'])
        expect(await refusal(post(path, { factor: '2' }, await fixture('grey.jpg'))), path).to.match(/^404 /);
      expect(await refusal(request('/form', {}))).to.match(/^404 /);
      expect(await refusal(request('/resize', { width: '9', url: 'http://a.example' }))).to.match(/^405 /);
    });

    it('operations that are no JSON array of one to ten with names', async () => {
      await startShared(SETTINGS);
      for (const operations of [
        '[{',
        '{"operation":"fit"}',
        '[]',
        [{ params: {} }],
        Array(11).fill({ operation: 'autorotate' }),
      ])
        expect(await pipeline(operations), String(operations)).to.match(
          /^400 Invalid operations ".*": expected a JSON array of 1 to 10/,
        );
    });

    it('parameters that are objects without a text, or arrays in thousands of arrays', async () => {
      await startShared(SETTINGS);
      for (const value of ['{"toString":1,"valueOf":1}', `${'['.repeat(6000)}${']'.repeat(6000)}`])
        for (const name of ['width', 'type', 'gravity', 'rotate', 'background'])
          expect(await pipeline(`[{"operation":"crop","params":{"height":9,"${name}":${value}}}]`)).to.equal(
            `400 Invalid ${name} "": expected a text, a number, true or false.`,
          );
    });

    it('operations of more than 16 KiB', async () => {
      await startShared(SETTINGS);
      const params = (quotes: number) => ({ width: 9, height: 9, ignored: '"'.repeat(quotes) });
      const resizing = (quotes: number) => JSON.stringify([{ operation: 'fit', params: params(quotes) }]);
      expect(await pipeline(resizing(8200))).to.match(/^400 .* at most 16384 characters/);
      const { status } = await post('/pipeline', { operations: resizing(8000) }, await fixture('grey.jpg'));
      expect(status).to.equal(200);
    });

    /** Operations with their parameters, and what the message says. */
    const INVALID: Readonly<Record<string, string>> = {
      '/fit?width=9': 'height "": expected width and height to be set.',
      '/resize': 'width "": expected width or height to be set.',
      '/resize?width=-9': 'width "-9": expected a number.',
      '/resize?width=99999': 'width "99999": expected a whole number from 1 to 16384.',
      '/resize?width=9&quality=101': 'quality "101": expected a whole number from 1 to 100, or auto.',
      '/resize?width=9&rotate=45': 'rotate "45": expected 90, 180 or 270.',
      '/convert': 'type "": expected a format.',
      '/convert?type=exe': 'type "exe": expected one of webp, png, jpg, gif, bmp, pdf, auto, smallest.',
      '/extract?areawidth=9': 'areawidth "": expected areawidth and areaheight to be set.',
      '/rotate': 'rotate "": expected 90, 180 or 270.',
      '/zoom?factor=1&top=5': 'areawidth "": expected areawidth and areaheight to be set.',
      '/zoom?width=9': 'factor "": expected a whole number from 1 to 9.',
      '/zoom?width=9&top=5': 'factor "": expected a whole number from 1 to 9.',
      '/zoom?factor=10': 'factor "10": expected a whole number from 1 to 9.',
      '/blur?minampl=0.2': 'sigma "": expected a number above 0.',
      '/blur?sigma=0.1': 'sigma "0.1": expected a number from 0.3 to 100.',
      '/watermark?text=%20': 'text "": expected a text of 1 to 500 characters.',
      '/watermark?text=a&font=a";b 9':
        'font "a";b 9": expected a family, style and size such as "sans bold 12".',
      '/watermark?text=a&color=url(%23a)': 'color "url(#a)": expected a colour such as 255,200,150.',
      '/watermark?text=a&dpi=9999': 'dpi "9999": expected a whole number from 1 to 1200.',
      '/watermark?text=a&opacity=none': 'opacity "none": expected a number from 0 to 1.',
      '/watermarkimage?image=http://a.example/b.png':
        'image "http://a.example/b.png": expected the form part watermark, since no address is fetched.',
      '/watermarkimage?left=9': 'watermark "": expected an image as the form part watermark.',
    };
    it('invalid parameters, each with what was expected', async () => {
      await startShared(SETTINGS);
      const grey = await fixture('grey.jpg');
      for (const [call, message] of Object.entries(INVALID)) {
        const { pathname, searchParams } = new URL(call, 'http://x');
        const query = Object.fromEntries(searchParams);
        expect(await refusal(post(pathname, query, grey)), call).to.equal(`400 Invalid ${message}`);
      }
    });

    it('what is no image, is empty, too large or encoded', async () => {
      await startShared({ ...SETTINGS, MAX_FILE_BYTES: '5000' });
      const send = (file: Uint8Array, headers: Record<string, string> = {}) =>
        refusal(request('/resize', { width: '9' }, { method: 'POST', body: new Uint8Array(file), headers }));
      expect(await send(Buffer.from('text'))).to.match(/^415 The file is not an image of a supported format/);
      expect(await send(Buffer.alloc(0))).to.match(/^400 The file is empty/);
      expect(await send(Buffer.alloc(5001))).to.match(/^413 The file is too large/);
      expect(await send(Buffer.alloc(9), { 'content-encoding': 'gzip' })).to.match(/^415 An encoded/);
      const damaged = (await fixture('scene.png')).subarray(0, 20);
      expect(await refusal(post('/info', {}, damaged))).to.match(/^400 The file is damaged/);
      expect(await send(Buffer.from('x'), { 'content-type': 'multipart/form-data' })).to.match(/^400 /);
    });
  });

  describe('at the root', () => {
    const ROOT = { ...SETTINGS, IMAGINARY_PATH: '/' };
    const at = (path: string, accept?: string, init: RequestInit = {}) =>
      sendForm(new URL(path, current().base).href, { ...init, headers: accept ? { accept } : {} });
    const type = async (answer: Promise<ClientResponse>) => {
      const { status, headers } = await answer;
      return `${status} ${headers.get('content-type')?.split(';')[0]}`;
    };

    it('answers GET / with the page if HTML is accepted by name, and otherwise with the index', async () => {
      await startShared(ROOT);
      for (const accept of ['application/json', '*/*', '']) {
        const answer = await at(`/?key=${KEY}`, accept);
        expect(jsonOf(answer), accept).to.deep.equal({ imaginary: '1.2.4', imagemill: '0.0.0-test' });
        expect(answer.headers.get('vary')).to.include('Accept');
      }
      expect(await type(at('/', '*/*'))).to.equal('401 application/json');
      for (const method of ['GET', 'HEAD']) {
        const page = await at('/', 'text/html,application/xhtml+xml,*/*;q=0.8', { method });
        expect([page.status, page.headers.get('content-type')]).to.deep.equal([
          200,
          'text/html; charset=UTF-8',
        ]);
        expect(page.headers.get('vary')).to.match(/\bAccept\b(?!-)/);
      }
    });

    it('leaves all other paths as they are, and answers unknown ones with 404', async () => {
      await start({ ...ROOT, RATE_LIMIT_PER_MINUTE: '1' });
      const paths = ['/livez', '/readyz', '/metrics', '/docs', '/manifest.webmanifest', '/icon-192.png'];
      for (const path of [...paths, ...paths]) {
        const { status, headers } = await at(path);
        expect([status, headers.get('x-ratelimit-limit')], path).to.deep.equal([200, null]);
      }
      expect((await at('/api/v1/formats')).status).to.equal(200);
      expect((await at('/api/v1/formats')).status).to.equal(429);
      for (const [path, method, status] of [
        ['/mirror', 'POST', 404],
        ['/api/v1/pipeline', 'POST', 429],
        ['/pipeline/', 'POST', 404],
        ['/mirror', 'GET', 404],
        ['/', 'POST', 405],
        ['/docs', 'POST', 405],
      ] as const)
        expect((await at(path, undefined, { method })).status, `${method} ${path}`).to.equal(status);
      expect((await at(`/pipeline?key=${KEY}`)).status).to.equal(405);
      expect(current().logged.map(({ route }) => route))
        .to.include('/pipeline')
        .and.not.include('/mirror');
    });

    it('answers unknown paths with 404 in the format of imaginary, and below the API in that of the API', async () => {
      await startShared(ROOT);
      for (const [path, members] of [
        ...['/mirror', '/pipeline/', '/%ff', '/docs/x', '/api', '/api/v10/convert'].map(
          (path) => [path, ['message', 'status']] as const,
        ),
        ...['/api/v1', '/api/v1/mirror'].map((path) => [path, ['error']] as const),
      ]) {
        const { status, body } = await at(path);
        expect([status, Object.keys(JSON.parse(body.toString()))], path).to.deep.equal([404, members]);
      }
    });
  });

  it('is absent by default', async () => {
    await startShared({});
    expect((await request('/', {})).status).to.equal(404);
  });
});

describe('the operations of a pipeline become as few sets of fields as possible', () => {
  const passes = (...operations: [string, object][]) =>
    toPasses(operations.map(([operation, params]) => ({ operation, params: { ...params } }))).map((pass) =>
      Object.fromEntries(pass.fields),
    );
  const fields = (...operations: [string, object][]) => {
    const [only = {}, ...others] = passes(...operations);
    expect(others).to.deep.equal([]);
    return only;
  };

  it('with the type of the last one, and the crop before the size', () => {
    const extract = { top: 1, left: 2, areawidth: 30, areaheight: 40 };
    const second = { left: 5, areawidth: 10, areaheight: '20' };
    const outside = { ...second, left: 21 };
    expect(() => fields(['extract', extract], ['extract', outside])).to.throw('inside of that');
    expect(
      fields(
        ['convert', { type: 'png' }],
        ['extract', extract],
        ['extract', second],
        ['smartcrop', { width: 8, height: 8, type: 'webp', stripmeta: true, background: '255, 0,128' }],
      ),
    ).to.deep.equal({
      strip_metadata: 'true',
      frames: 'first',
      pages: 'first',
      output_format: 'webp',

      crop: '7,1,10,20',
      width: '8',
      height: '8',
      fit: 'cover',
      position: 'attention',
      background: '#ff0080',
    });
  });

  it('with the rotation and the reflections of all, before the crop and the size', () => {
    const turned = (...operations: [string, object][]) => {
      const { rotate, flip } = fields(...operations);
      return `${rotate ?? 0} ${flip ?? 'none'}`;
    };
    expect(turned(['rotate', { rotate: 90 }], ['rotate', { rotate: '270' }])).to.equal('0 none');
    expect(turned(['rotate', { rotate: 90 }], ['flip', {}])).to.equal('90 vertical');
    expect(turned(['flip', {}], ['rotate', { rotate: 90 }])).to.equal('270 vertical');
    expect(turned(['flip', {}], ['flop', {}], ['rotate', { rotate: 90 }])).to.equal('90 both');
    expect(turned(['fit', { width: 8, height: 8, rotate: 180, flop: 'true' }])).to.equal('180 horizontal');
    expect(turned(['flip', { flip: true }])).to.equal('0 vertical');
    expect(turned(['flop', { flop: 'true', flip: 'true' }])).to.equal('0 both');
    expect(fields(['blur', { sigma: 2, colorspace: 'bw' }])).to.include({ blur: '2', greyscale: 'true' });
  });

  it('with the position of a gravity, and the centre without one', () => {
    for (const [gravity, position] of [
      ['smart', 'attention'],
      ['North', 'north'],
      ['constructor', 'center'],
      [undefined, 'center'],
    ])
      expect(fields(['crop', { width: 8, height: 8, gravity }]).position, gravity).to.equal(position);
  });
});
