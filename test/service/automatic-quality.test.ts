// @full, @imagemagick-7: many formats
import { readdir } from 'node:fs/promises';
import { hitchhikersSSIM } from '@blazediff/ssim/hitchhikers-ssim';
import { expect } from 'chai';
import sharp from 'sharp';
import { open } from '../../scripts/fixtures/scene.ts';
import type { ConversionEngine } from '../../src/conversion/engine.ts';
import type { Step } from '../../src/conversion/plan/step.ts';
import type { ConvertOptions } from '../../src/conversion/plan/types.ts';
import type { OutputType } from '../../src/tables/formats.ts';
import {
  type ClientResponse,
  convert,
  expectSuccess,
  type Fields,
  fixture,
  fixturePath,
  postImage,
  sendBatch,
} from '../helpers/client.ts';
import { convertWith } from '../helpers/engine.ts';
import { ALL_EXTRAS, decodeAny } from '../helpers/extra.ts';
import { madePhotos } from '../helpers/made-photos.ts';
import { decode, difference, onGrey, type Pixels } from '../helpers/pixels.ts';
import { startEngine, useServiceWith } from '../helpers/service.ts';

/** Formats of `quality=auto`. */
const SEARCHED = ['webp', 'jpg', 'avif', 'jxl'] as const;

describe('quality=auto', () => {
  const service = useServiceWith(ALL_EXTRAS);
  let photo: Buffer;
  let page: Buffer;
  before(async () => {
    photo = await toPng(480, 320);
    page = await textPage();
  });

  const converted = (file: Buffer, fields: Fields): Promise<ClientResponse> =>
    expectSuccess(convert(service.base, file, { quality: 'auto', ...fields }));
  const qualityOf = ({ headers }: ClientResponse): number => Number(headers.get('x-image-quality'));

  for (const format of SEARCHED) {
    it(`makes the ${format} of a lower quality that looks like the image, and states it`, async () => {
      for (const [what, file] of Object.entries({ photo, page })) {
        const answer = await converted(file, { format });
        const quality = qualityOf(answer);
        expect(quality, what).to.be.within(30, 95);
        expect(answer.headers.get('x-conversion-quality'), what).to.equal(String(quality));
        const plain = await converted(file, { format, quality: String(quality) });
        expect(plain.body.equals(answer.body), `${what} as quality=${quality}`).to.equal(true);
        expect(await similarity(file, answer.body, format), what).to.be.within(0.94, 0.9995);
        const again = await converted(file, { format });
        expect(again.body.equals(answer.body), what).to.equal(true);
      }
    });
  }

  it('changes nothing for formats without a quality, and for results without loss', async () => {
    for (const fields of [
      { format: 'png' },
      { format: 'gif' },
      { format: 'bmp' },
      { format: 'webp', lossless: 'yes' },
    ]) {
      const [auto, plain] = [
        await converted(photo, fields),
        await converted(photo, { ...fields, quality: '80' }),
      ];
      expect(auto.headers.get('etag'), fields.format).to.equal(plain.headers.get('etag'));
      expect(auto.headers.get('x-image-quality'), fields.format).to.equal(null);
    }
  });

  it('has the quality 80 for an animation and for a PDF', async () => {
    for (const [name, format] of [
      ['moving.gif', 'webp'],
      ['scene.jpg', 'pdf'],
    ] as const)
      expect(qualityOf(await converted(await fixture(name), { format })), name).to.equal(80);
  });

  it('does not make a JPEG larger that had a low quality', async () => {
    for (const quality of [25, 40, 70, 90]) {
      const source = await sharp(photo).jpeg({ quality }).toBuffer();
      const answer = await converted(source, { format: 'jpg' });
      expect(answer.body.length, `${quality}`).to.be.at.most(source.length);
      expect(qualityOf(answer), `${quality}`).to.be.at.most(quality);
    }
  });

  it('lowers the quality of a JPEG that was compressed better, and notes it', async () => {
    const source = await sharp(photo).jpeg({ quality: 60, mozjpeg: true }).toBuffer();
    const answer = await converted(source, { format: 'jpg' });
    expect(answer.body.length).to.be.at.most(source.length);
    const larger = await converted(source, { format: 'jpg', quality: '60' });
    expect(larger.body.length, 'as it would be').to.be.above(source.length);
  });

  it('makes no fixture larger in its own format, unless a note says so', async () => {
    const names = await readdir(fixturePath('.'));
    for (const name of names.filter((name) => !name.endsWith('.svg'))) {
      const file = await fixture(name);
      const { body, notes } = await converted(file, { format: name.replace(/.*\./, '') });
      const isNoted = /quality-reduced|larger-than-source/.test(notes ?? '');
      expect(
        body.length <= file.length || isNoted,
        `${name}: ${file.length} to ${body.length}, ${notes}`,
      ).to.equal(true);
    }
  });

  it('has the lower quality of two with max_bytes', async () => {
    const { body, headers } = await converted(photo, { format: 'webp' });
    const maxBytes = Math.round(body.length * 0.7);
    const limited = await converted(photo, { format: 'webp', max_bytes: String(maxBytes) });
    expect(limited.body.length).to.be.at.most(maxBytes);
    expect(limited.notes).to.equal('quality-lowered');
    expect(qualityOf(limited)).to.be.below(Number(headers.get('x-image-quality')));
    const loose = await converted(photo, { format: 'webp', max_bytes: '9000000' });
    expect([loose.body.equals(body), loose.notes]).to.deep.equal([true, null]);
  });

  it('sees transparent pixels over any background', async () => {
    const white = await sharp({ create: { width: 300, height: 200, channels: 4, background: '#ffffff00' } })
      .composite([{ input: Buffer.from(WHITE_TEXT) }])
      .png()
      .toBuffer();
    const { data } = await sharp((await converted(white, { format: 'webp' })).body)
      .ensureAlpha()
      .flatten({ background: '#000' })
      .raw()
      .toBuffer({ resolveWithObject: true });
    const wanted = await sharp(white).flatten({ background: '#000' }).raw().toBuffer();
    expect(ssimOf({ data, width: 300, height: 200 }, { data: wanted, width: 300, height: 200 })).to.be.above(
      0.94,
    );
  });

  it('compares strips of a large image, and encodes at most five times, also within bytes', async () => {
    const large = await toPng(1800, 1200);
    const engine = await startEngine(ALL_EXTRAS);
    try {
      for (const [what, bytes] of Object.entries({ photo, large, page })) {
        for (const format of what === 'large' ? SEARCHED.slice(0, 2) : SEARCHED) {
          let whole: number | undefined;
          for (const share of [1, 0.8, 0.65]) {
            const maxBytes = whole && Math.round(whole * share);
            const { bytes: made, steps } = await encodingsOf(engine, bytes, { format, maxBytes });
            whole ??= made;
            const name = `${what} as ${format}, ${share}`;
            expect(steps.filter(isEncoding).length, name).to.be.within(1, 5);
            if (maxBytes) expect(made, name).to.be.within(0.4 * maxBytes, maxBytes);
            const cuts = steps.some(({ args }) => args.includes('-append'));
            expect(cuts, name).to.equal(what === 'large');
          }
        }
      }
    } finally {
      await engine.close();
    }
    const answer = await converted(large, { format: 'webp' });
    expect(await similarity(large, answer.body, 'webp')).to.be.within(0.94, 0.9995);
  });

  it('finds a quality for each file of a batch, and for variants that share a command', async () => {
    const answer = await expectSuccess(
      sendBatch(
        service.base,
        [
          ['a.png', photo],
          ['b.png', page],
        ],
        { format: 'webp', quality: 'AUTO' },
      ),
    );
    const own = [photo, page].map(async (file) => qualityOf(await converted(file, { format: 'webp' })));
    const stated = answer.headers
      .get('x-image-quality')
      ?.match(/\d+(?=;)/g)
      ?.map(Number);
    expect(stated).to.have.members([...new Set(await Promise.all(own))]);
  });
});

describe('output_format=smallest', () => {
  const service = useServiceWith(ALL_EXTRAS);
  const send = (file: Buffer, accept: string) =>
    expectSuccess(
      postImage(`${service.base}/convert?output_format=Smallest`, file, {
        'content-type': 'image/png',
        accept,
      }),
    );
  const typeOf = ({ headers }: ClientResponse) => [headers.get('content-type'), headers.get('vary')];

  it('is no larger than each permitted format at quality=auto', async () => {
    const photo = await toPng(400, 300);
    const accept = 'image/avif, image/webp, image/jpeg, image/png';
    const { body, headers } = await send(photo, accept);
    expect(headers.get('vary')).to.equal('Accept');
    for (const format of ['avif', 'webp', 'jpg', 'png']) {
      const one = await expectSuccess(convert(service.base, photo, { format, quality: 'auto' }));
      expect(body.length, format).to.be.at.most(one.body.length * 1.03);
    }
    const repeated = await send(photo, accept);
    expect(repeated.body.equals(body)).to.equal(true);
  });

  it('encodes each format but the first at most twice', async () => {
    const engine = await startEngine(ALL_EXTRAS);
    try {
      for (const bytes of [await toPng(400, 300), await toPng(1800, 1200), await textPage()]) {
        const candidates = ['avif', 'webp', 'jpg'] as const;
        const { steps } = await encodingsOf(engine, bytes, { format: 'avif', candidates });
        const isFirst = ({ tool }: Step) => tool === 'avifenc';
        expect(steps.filter(isFirst).length).to.be.within(1, 5);
        expect(steps.filter((step) => isEncoding(step) && !isFirst(step)).length).to.be.within(2, 4);
      }
    } finally {
      await engine.close();
    }
  });

  it('is only a format that Accept permits', async () => {
    const photo = await toPng(200, 150);
    for (const [accept, types] of [
      ['image/jpeg', ['image/jpeg']],
      ['*/*', ['image/jpeg']],
      ['image/webp;q=0.1, image/jpeg', ['image/webp', 'image/jpeg']],
    ] as const) {
      const [type, vary] = typeOf(await send(photo, accept));
      expect(types, accept).to.include(type);
      expect(vary).to.equal('Accept');
    }
  });

  it('has a palette where that looks the same and is smaller, for a drawing with transparency', async () => {
    const drawing = await sharp(Buffer.from(SHADED)).png().toBuffer();
    const { body, headers } = await send(drawing, 'image/png');
    expect([headers.get('content-type'), body[25]]).to.deep.equal(['image/png', 3]);
    const [whole, shown] = await Promise.all([drawing, body].map((file) => decode(file)));
    for (const grey of [0, 255])
      expect(difference(onGrey(shown as Pixels, grey), onGrey(whole as Pixels, grey)).psnr).to.be.above(40);
    const exact = await expectSuccess(convert(service.base, drawing, { format: 'png' }));
    expect(body.length).to.be.below(0.7 * exact.body.length);
  });

  it('has no palette where that looks different', async () => {
    const [width, height, channels] = [256, 256, 4] as const;
    const data = Buffer.from(
      Array.from({ length: width * height }, (_, at) => [at % 256, at >> 8]).flatMap(([x = 0, y = 0]) => [
        x,
        y,
        255 - x,
        128 + y / 2,
      ]),
    );
    const picture = await sharp(data, { raw: { width, height, channels } }).png().toBuffer();
    expect((await send(picture, 'image/png')).body[25]).to.equal(6);
  });

  it('has no loss for a drawing of few colours, where that is smaller', async () => {
    const drawing = await sharp(Buffer.from(PIXEL_ART)).png({ palette: true }).toBuffer();
    const answer = await send(drawing, 'image/png, image/jpeg');
    expect(typeOf(answer)).to.deep.equal(['image/png', 'Accept']);
    const [one, other] = await Promise.all(
      [drawing, answer.body].map((file) => sharp(file).removeAlpha().raw().toBuffer()),
    );
    expect(one?.equals(other as Buffer)).to.equal(true);
  });

  it('keeps an animation, and a picture with transparency', async () => {
    const moving = await send(await fixture('moving.gif'), 'image/webp, image/gif, image/jpeg');
    expect((await sharp(moving.body, { animated: true }).metadata()).pages).to.be.above(1);
    const window = await send(await fixture('window.png'), 'image/webp, image/png, image/jpeg');
    expect((await sharp(window.body).metadata()).hasAlpha).to.equal(true);
  });
});

/** Converts a PNG with `quality=auto`, and returns the bytes of the result and the commands. */
async function encodingsOf(
  engine: ConversionEngine,
  bytes: Buffer,
  options: Pick<ConvertOptions, 'format'> & Partial<ConvertOptions>,
): Promise<{ bytes: number; steps: Step[] }> {
  const steps: Step[] = [];
  const input = { type: 'png', bytes, onCommand: (step: Step) => steps.push(step) } as const;
  const all = { quality: 'auto', metadata: 'none', ...options } as const;
  return { bytes: await convertWith(engine, input, all, async (result) => result.bytes), steps };
}

const isEncoding = ({ tool, args }: Step): boolean =>
  args.includes('-quality') || tool === 'cjxl' || tool === 'avifenc';

const WHITE_TEXT = `<svg xmlns="http://www.w3.org/2000/svg" width="300" height="200"><g fill="#fff" font-size="14">${Array.from(
  { length: 12 },
  (_, row) => `<text x="4" y="${16 * (row + 1)}">white text on nothing, line ${row}</text>`,
).join('')}</g></svg>`;

/** A drawing with shades of a few colours, and a soft shadow on a transparent ground. */
const SHADED = `<svg xmlns="http://www.w3.org/2000/svg" width="400" height="300"><defs>
<linearGradient id="g"><stop stop-color="#35f"/><stop offset="1" stop-color="#68f"/></linearGradient>
<filter id="f"><feGaussianBlur stdDeviation="5"/></filter></defs>
<circle cx="155" cy="155" r="100" filter="url(#f)" opacity="0.5"/><circle cx="150" cy="150" r="100" fill="url(#g)"/>
<path d="M250 40l100 60-60 140z" fill="#d33" stroke="#300" stroke-width="5"/></svg>`;

const PIXEL_ART = `<svg xmlns="http://www.w3.org/2000/svg" width="256" height="256" shape-rendering="crispEdges"><rect width="256" height="256" fill="#fff"/>${Array.from(
  { length: 64 },
  (_, at) =>
    `<rect x="${(at % 8) * 32}" y="${(at >> 3) * 32}" width="16" height="16" fill="${at % 3 ? '#d00' : '#00a'}"/>`,
).join('')}</svg>`;

async function toPng(width: number, height: number): Promise<Buffer> {
  const [photo] = (await madePhotos(width, height, 1)) as [Pixels];
  return open(photo).removeAlpha().png().toBuffer();
}

function textPage(): Promise<Buffer> {
  const lines = Array.from(
    { length: 18 },
    (_, row) => `<text x="10" y="${20 + 16 * row}">The quick brown fox jumps, line ${row}</text>`,
  );
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="400" height="320"><rect width="400" height="320" fill="#fffef8"/><g font-size="13" fill="#222">${lines.join('')}</g></svg>`;
  return sharp(Buffer.from(svg)).removeAlpha().png().toBuffer();
}

/** Mean SSIM of an image and its result, by libraries that the service does not use for it. */
async function similarity(image: Buffer, result: Buffer, format: OutputType): Promise<number> {
  const { data, info } = await sharp(image).removeAlpha().raw().toBuffer({ resolveWithObject: true });
  const decoded = await decodeAny(result, format === 'jxl' ? 'jxl' : format);
  return ssimOf({ data, ...info }, decoded);
}

interface Shown {
  readonly width: number;
  readonly height: number;
  readonly data: Uint8Array;
}

function ssimOf(one: Shown, other: Shown): number {
  const [a, b] = [one, other].map(({ width, height, data }) => {
    const channels = data.length / width / height;
    return Uint8Array.from({ length: width * height * 4 }, (_, at) =>
      at % 4 === 3 ? 255 : (data[Math.floor(at / 4) * channels + Math.min(at % 4, channels - 1)] as number),
    );
  }) as [Uint8Array, Uint8Array];
  return hitchhikersSSIM(a, b, undefined, one.width, one.height, { windowSize: 8, covPooling: false });
}
