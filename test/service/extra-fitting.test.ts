import { expect } from 'chai';
import sharp, { type FitEnum } from 'sharp';
import { scene, square } from '../../scripts/fixtures/scene.ts';
import { EXTRA_INPUT_TYPES, type OutputType } from '../../src/formats.ts';
import { type ClientResponse, convert, converted, fixture } from '../helpers/client.ts';
import { ALL_EXTRAS, decodeAny, extra } from '../helpers/extra.ts';
import { difference, type Pixels, pixelAt, sizeOf, toPixels } from '../helpers/pixels.ts';
import { useServiceWith } from '../helpers/service.ts';

interface Box {
  readonly fit: keyof FitEnum;
  readonly width: number;
  readonly height: number;
  readonly position?: string;
}

const BOXES: readonly Box[] = [
  { fit: 'inside', width: 60, height: 50 },
  { fit: 'cover', width: 40, height: 50, position: 'left' },
  { fit: 'contain', width: 50, height: 60, position: 'top' },
  { fit: 'fill', width: 50, height: 30 },
];

/** Minimum PSNR in dB. The inputs and outputs are lossy, and a shift by one pixel is at most 22 dB. */
const MIN_PSNR = 24;

async function bySharp({ width, height, data }: Pixels, box: Box): Promise<Pixels> {
  const transparent = { r: 0, g: 0, b: 0, alpha: 0 };
  const fitted = sharp(data, { raw: { width, height, channels: 4 } }).resize({
    ...box,
    background: transparent,
  });
  return toPixels(fitted);
}

describe('fit, position, enlarge and max_bytes for the formats of EXTRA_INPUTS and EXTRA_OUTPUTS', () => {
  const own = useServiceWith(ALL_EXTRAS);

  const post = async (
    file: Buffer,
    fields: Readonly<Record<string, string | number>>,
  ): Promise<ClientResponse> => {
    const texts = Object.entries(fields).map(([name, value]) => [name, String(value)]);
    return converted(own.base, file, Object.fromEntries(texts));
  };

  const expectFitted = async (file: Buffer, image: Pixels, box: Box, format: OutputType): Promise<void> => {
    const [result, expected] = await Promise.all([
      post(file, { ...box, format, quality: 95 }).then(({ body }) => decodeAny(body, format)),
      bySharp(image, box),
    ]);
    const what = JSON.stringify(box);
    expect(sizeOf(result), what).to.deep.equal(sizeOf(expected));
    expect(difference(result, expected).psnr, what).to.be.at.least(MIN_PSNR);
  };

  const imageOf = (type: (typeof EXTRA_INPUT_TYPES)[number]): Pixels =>
    type === 'cur' ? square(64) : scene({ flat: type === 'pdf' });

  for (const type of EXTRA_INPUT_TYPES) {
    it(`${type} is fitted like in sharp`, async () => {
      for (const box of BOXES) await expectFitted(await extra(`scene.${type}`), imageOf(type), box, 'png');
    });
  }

  for (const format of ['avif', 'jxl', 'tiff'] as const) {
    it(`${format} results are fitted like in sharp`, async () => {
      for (const box of BOXES) await expectFitted(await fixture('scene.png'), scene(), box, format);
    });
  }

  it('HEIC and JPEG XL are oriented before they are fitted', async () => {
    const box = { fit: 'cover', width: 60, height: 30, position: 'top' } as const;
    for (const name of ['turned.heic', 'turned.jxl'])
      await expectFitted(await extra(name), scene(), box, 'png');
  });

  it('all pages of a TIFF and all frames of a JPEG XL have the size of the box', async () => {
    const box = { fit: 'contain', width: 60, height: 70, enlarge: 'true' };
    for (const [file, format] of [
      [await fixture('pages.tiff'), 'tiff'],
      [await extra('moving.jxl'), 'webp'],
      [await fixture('moving.gif'), 'tiff'],
    ] as const) {
      const { body } = await post(file, { ...box, format });
      const { pages = 1 } = await sharp(body).metadata();
      expect(pages, format).to.equal(3);
      for (let page = 0; page < pages; page += 1) {
        const { info } = await sharp(body, { page }).raw().toBuffer({ resolveWithObject: true });
        expect(sizeOf(info), `${format} ${page}`).to.deep.equal([60, 70]);
      }
    }
  });

  it('an icon of equal sides has no borders with fit=cover, and coloured ones with contain and background', async () => {
    for (const name of ['scene.png', 'scene.svg']) {
      const sides = { format: 'ico', width: 64, height: 64 };
      const file = await fixture(name);
      const cut = await decodeAny((await post(file, { ...sides, fit: 'cover' })).body, 'ico');
      expect(sizeOf(cut), name).to.deep.equal([48, 48]);
      expect(pixelAt(cut, 24, 1)[3], name).to.equal(255);
      const inside = await decodeAny((await post(file, sides)).body, 'ico');
      expect(pixelAt(inside, 24, 1)[3], name).to.equal(0);
      const red = await post(file, { ...sides, fit: 'contain', background: '#ff0000' });
      expect(pixelAt(await decodeAny(red.body, 'ico'), 24, 1), name).to.deep.equal([255, 0, 0, 255]);
    }
  });

  for (const format of ['avif', 'jxl'] as const) {
    it(`max_bytes gives ${format} the result of a lower quality, and states it`, async () => {
      const file = await extra('grid.heic');
      const full = (await post(file, { format, quality: 90 })).body.length;
      const maxBytes = Math.round(full * 0.6);
      const { body, headers } = await post(file, { format, quality: 90, max_bytes: maxBytes });
      expect(body.length).to.be.within(maxBytes * 0.7, maxBytes);
      expect(headers.get('x-conversion-notes')).to.include('quality-lowered');
      const quality = Number(headers.get('x-conversion-quality'));
      expect(quality).to.be.within(10, 89);
      expect((await post(file, { format, quality })).body.equals(body)).to.equal(true);
    });
  }

  it('max_bytes with another format is rejected, and the message names the enabled formats', async () => {
    const file = await fixture('scene.png');
    const { outcome } = await convert(own.base, file, { format: 'tiff', max_bytes: '9000' });
    expect(outcome).to.equal(
      '400 Invalid max_bytes "9000": expected a format with a quality to lower (webp, jpg, avif, jxl), which tiff does not have.',
    );
  });
});
