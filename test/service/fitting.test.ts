// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { expect } from 'chai';
import sharp, { type FitEnum, type Sharp } from 'sharp';
import { frame } from '../../scripts/fixtures/scene.ts';
import { OUTPUT_TYPES, OUTPUTS, type OutputType } from '../../src/formats.ts';
import { OPTIONS } from '../../src/options.ts';
import { convert, converted, edgeCase, type Fields, fixture } from '../helpers/client.ts';
import {
  decode,
  difference,
  drawPdf,
  onGrey,
  type Pixels,
  pixelAt,
  sizeOf,
  toPixels,
} from '../helpers/pixels.ts';
import { useService } from '../helpers/service.ts';

/** @module Compares fit, position and enlarge with sharp, whose names and semantics they have. */
describe('fit, position and enlarge', () => {
  const service = useService();

  /** Image of smooth waves: a shift by one pixel shows everywhere, the kernel of a resize hardly. */
  function waves(width: number, height: number): Sharp {
    const data = Buffer.alloc(width * height * 3);
    for (let y = 0; y < height; y += 1) {
      for (let x = 0; x < width; x += 1) {
        const wave = 127 + 60 * Math.sin((x / width) * 18) + 60 * Math.cos((y / height) * 14);
        data.set([wave, 255 - wave, (x * 255) / width], (y * width + x) * 3);
      }
    }
    return sharp(data, { raw: { width, height, channels: 3 } });
  }

  interface FitRequest {
    readonly fit: keyof FitEnum;
    readonly width: number;
    readonly height: number;
    readonly position?: string;
    readonly enlarge?: boolean;
    readonly background?: string;
  }

  const bySharp = async (
    file: Buffer,
    { enlarge = false, background, ...request }: FitRequest,
  ): Promise<Pixels> => {
    const image = sharp(file).autoOrient();
    const padding = background ?? { r: 0, g: 0, b: 0, alpha: 0 };
    return toPixels(image.resize({ ...request, background: padding, withoutEnlargement: !enlarge }));
  };

  const byService = async (
    file: Buffer,
    request: FitRequest,
    format: OutputType = 'png',
  ): Promise<Pixels> => {
    const fields = Object.entries(request).map(([name, value]) => [name, String(value)]);
    const answer = await converted(service.base, file, { format, ...Object.fromEntries(fields) });
    return decode(answer.body, format);
  };

  /** Minimum PSNR in dB. A shift by one pixel gives less than 30. */
  const LEAST = 34;

  const expectSame = async (file: Buffer, request: FitRequest): Promise<void> => {
    const [ours, theirs] = await Promise.all([byService(file, request), bySharp(file, request)]);
    const what = JSON.stringify(request);
    expect(sizeOf(ours), what).to.deep.equal(sizeOf(theirs));
    expect(difference(ours, theirs).psnr, what).to.be.greaterThan(LEAST);
  };

  for (const fit of ['inside', 'cover', 'contain', 'fill'] as const) {
    it(`fit=${fit} gives the same size and pixels as sharp, for smaller, larger and mixed boxes`, async () => {
      const file = await waves(181, 121).png().toBuffer();
      for (const [width, height] of [
        [60, 60],
        [51, 90],
        [150, 20],
        [240, 60],
        [90, 200],
        [240, 220],
      ] as const) {
        for (const enlarge of [false, true]) await expectSame(file, { fit, width, height, enlarge });
      }
    });
  }

  for (const fit of ['cover', 'contain'] as const) {
    it(`fit=${fit} puts the image at every position exactly where sharp does`, async () => {
      const file = await waves(161, 121).png().toBuffer();
      for (const position of Object.keys(OPTIONS.position.type.labels).filter((one) => one !== 'attention')) {
        // For an odd number of cropped or added pixels, both round differently.
        await expectSame(file, { fit, position, width: 59, height: 80 });
        await expectSame(file, { fit, position, width: 75, height: 41 });
      }
    });
  }

  const POINTS = ['0%,0%', '30%,70%', '62.5%,41.3%', '50%,50%', '95%,20%', '100%,100%'] as const;
  /** A format of each path to the pixels, and the picture that sharp judges. */
  const FOCAL: Readonly<Record<string, (picture: Sharp) => Sharp>> = {
    jpg: (picture) => picture.jpeg({ quality: 100, chromaSubsampling: '4:4:4' }),
    png: (picture) => picture.png(),
    webp: (picture) => picture.webp({ lossless: true, effort: 0 }),
    tiff: (picture) => picture.tiff(),
    gif: (picture) => picture.gif({ dither: 0, effort: 1 }),
    avif: (picture) => picture.avif({ quality: 100, effort: 0, chromaSubsampling: '4:4:4' }),
  };
  const shares = (point: string): number[] => point.split(',').map((text) => Number.parseFloat(text) / 100);

  for (const [kind, write] of Object.entries(FOCAL))
    it(`cover puts a point of a ${kind} into the centre, or as near to it as the edges permit`, async () => {
      const file = await write(waves(403, 241)).toBuffer();
      for (const position of POINTS)
        for (const [width, height] of [
          [59, 80],
          [75, 41],
          [90, 20],
        ] as const) {
          const ours = await byService(file, { fit: 'cover', position, width, height });
          const scale = Math.max(width / 403, height / 241);
          const sides = [Math.round(403 * scale), Math.round(241 * scale)] as const;
          const [left = 0, top = 0] = [width, height].map((kept, at) => {
            const [side = 0, share = 0] = [sides[at], shares(position)[at]];
            return Math.min(
              side - kept,
              Math.max(0, Math.ceil(Number((side * share - kept / 2).toFixed(9)))),
            );
          });
          const resized = await sharp(file)
            .resize(...sides, { fit: 'fill' })
            .png()
            .toBuffer();
          const theirs = await toPixels(sharp(resized).extract({ left, top, width, height }));
          const title = `${position} in ${width} × ${height}`;
          expect(sizeOf(ours), title).to.deep.equal([width, height]);
          expect(difference(ours, theirs).psnr, title).to.be.above(kind === 'gif' ? 28 : LEAST);
        }
    });

  it('contain puts a point of the image at the same point of the result', async () => {
    for (const kind of ['png', 'gif']) {
      const file = await (FOCAL[kind] as (typeof FOCAL)[string])(waves(160, 120)).toBuffer();
      const [image, wide, tall] = [
        await byService(file, { fit: 'fill', width: 40, height: 30 }),
        await byService(file, { fit: 'contain', width: 73, height: 30, position: '30%,70%' }),
        await byService(file, { fit: 'contain', width: 40, height: 61, position: '30%,70%' }),
      ];
      for (const [result, left, top] of [
        [wide, 9, 0], // 33 columns are added, and 31 rows
        [tall, 0, 21],
      ] as const) {
        const { width, height, data } = result;
        const raw = { raw: { width, height, channels: 4 } } as const;
        const part = sharp(data, raw).extract({ left, top, width: 40, height: 30 });
        expect(difference(await toPixels(part), image).max).to.equal(0);
        expect(pixelAt(result, left === 0 ? 0 : left - 1, top === 0 ? 0 : top - 1)[3]).to.equal(0);
      }
    }
  });

  it('a point is that of each page, whose sizes can differ, and of the image after rotate and flip', async () => {
    const pages = await edgeCase('mixed.tiff');
    const whole = await converted(service.base, pages, { format: 'pdf' }).then(({ body }) => body);
    for (const position of ['20%,50%', '75%,50%'] as const) {
      const fields = { fit: 'cover', width: '16', height: '32', position };
      const made = await converted(service.base, pages, { format: 'pdf', ...fields });
      for (const page of [1, 2, 3]) {
        const { width, height, data } = await decode(await drawPdf(whole, page), 'png');
        const left = Math.ceil(width * (shares(position)[0] as number) - 8);
        const raw = { raw: { width, height, channels: 4 } } as const;
        const theirs = await toPixels(sharp(data, raw).extract({ left, top: 0, width: 16, height: 32 }));
        const ours = await decode(await drawPdf(made.body, page), 'png');
        expect(difference(ours, theirs).psnr, `${position} of page ${page}`).to.be.above(LEAST);
      }
    }
    const file = await waves(160, 120).png().toBuffer();
    const turned = await sharp(await sharp(file).rotate(90).png().toBuffer())
      .flip()
      .png()
      .toBuffer();
    const box = { format: 'png', fit: 'cover', width: '40', height: '20', position: '20%,90%' };
    const [one, other] = await Promise.all([
      converted(service.base, file, { ...box, rotate: '90', flip: 'vertical' }),
      converted(service.base, turned, box),
    ]);
    const [ours, theirs] = await Promise.all([one, other].map(({ body }) => decode(body, 'png')));
    expect(difference(ours as Pixels, theirs as Pixels).psnr).to.be.above(LEAST);
  });

  it('position accepts compass points in any case', async () => {
    const file = await waves(160, 120).png().toBuffer();
    const of = (position: string) => byService(file, { fit: 'cover', position, width: 40, height: 80 });
    for (const [name, same] of [
      ['WEST', 'left'],
      ['southeast', 'Right Bottom'],
      ['centre', 'center'],
    ] as const) {
      expect(difference(await of(name), await of(same)).max, name).to.equal(0);
    }
  });

  it('a much smaller box gives the same size and pixels as sharp, from each kind of file', async () => {
    const kinds: Readonly<Record<string, (picture: Sharp) => Sharp>> = {
      jpg: (picture) => picture.jpeg({ quality: 100, chromaSubsampling: '4:4:4' }),
      png: (picture) => picture.png(),
      tiff: (picture) => picture.tiff(),
      webp: (picture) => picture.webp({ lossless: true, effort: 0 }),
      gif: (picture) => picture.gif({ dither: 0 }),
      avif: (picture) => picture.avif({ quality: 100, effort: 0, chromaSubsampling: '4:4:4' }),
    };
    for (const [kind, write] of Object.entries(kinds)) {
      const file = await write(waves(1200, 800)).toBuffer();
      for (const fit of ['cover', 'contain', 'fill'] as const) {
        const request = { fit, width: 100, height: 100, position: 'right top' } as const;
        const [ours, theirs] = await Promise.all([byService(file, request), bySharp(file, request)]);
        expect(sizeOf(ours), `${kind} ${fit}`).to.deep.equal(sizeOf(theirs));
        expect(difference(ours, theirs).psnr, `${kind} ${fit}`).to.be.greaterThan(30);
      }
    }
  });

  it('the orientation is applied before the fit', async () => {
    const file = await waves(161, 121).jpeg({ quality: 100 }).withMetadata({ orientation: 6 }).toBuffer();
    for (const fit of ['cover', 'contain', 'fill'] as const)
      await expectSame(file, { fit, width: 70, height: 44, position: 'left top' });
  });

  describe('borders', () => {
    const contain = { fit: 'contain', width: '120', height: '120' } as const; // 20 pixels above and below
    const bordered = async (name: string, fields: Fields) => {
      const answer = await converted(service.base, await fixture(name), { ...contain, ...fields });
      const pixels = await decode(answer.body, fields.format as OutputType);
      expect(sizeOf(pixels)).to.deep.equal([120, 120]);
      return { pixels, notes: answer.notes };
    };
    const border = ({ pixels }: { pixels: Pixels }) => pixelAt(pixels, 60, 5);
    const near = (actual: number[], expected: readonly number[], what: string): void => {
      for (const [channel, value] of expected.entries())
        expect(actual[channel], `${what}: ${actual}`).to.be.closeTo(value, 6);
    };

    for (const format of OUTPUT_TYPES) {
      const hasAlpha = OUTPUTS[format].alpha !== 'none';
      it(`of contain are ${hasAlpha ? 'transparent' : 'white'} in ${format}, without a note`, async () => {
        for (const name of ['scene.png', 'scene.jpg', 'scene.gif', 'grey.jpg']) {
          const result = await bordered(name, { format });
          if (hasAlpha) expect(border(result)[3], name).to.equal(0);
          else near(border(result), [255, 255, 255], name);
          expect(result.notes, name).to.equal(null);
        }
      });

      it(`of contain have the background colour in ${format}, in any colour space`, async () => {
        for (const name of ['scene.png', 'scene.jpg', 'scene.gif', 'grey.jpg', 'p3.jpg', 'scene.svg']) {
          const result = await bordered(name, { format, background: '#e04020', quality: '100' });
          near(border(result), [224, 64, 32, 255], `${name} in ${format}`);
        }
      });
    }

    it('of contain with a background colour do not change an image of one channel', async () => {
      const jpeg = await edgeCase('one-channel.jpg');
      expect((await sharp(jpeg).metadata()).channels).to.equal(1);
      for (const file of [jpeg, await sharp(jpeg).tiff({ compression: 'lzw' }).toBuffer()]) {
        for (const format of OUTPUT_TYPES) {
          const fields = {
            ...contain,
            width: '32',
            height: '32',
            format,
            quality: '100',
            background: '#3080c0',
          };
          const pixels = await decode((await convert(service.base, file, fields)).body, format);
          near(pixelAt(pixels, 8, 16), [100, 100, 100], format);
          near(pixelAt(pixels, 24, 16), [30, 30, 30], format);
          near(pixelAt(pixels, 24, 2), [48, 128, 192], format);
        }
      }
    });

    it('of contain do not change the transparency of the image', async () => {
      for (const name of ['window.png', 'window.webp', 'window.gif']) {
        for (const format of ['png', 'webp', 'gif'] as const) {
          const result = await bordered(name, { format, background: '#e04020', quality: '100' });
          near(border(result), [224, 64, 32, 255], `${name} in ${format}`);
          expect(pixelAt(result.pixels, 60, 40)[3], `${name} in ${format}`).to.equal(0);
        }
      }
    });

    it('of contain have the colour that replaces transparency if the format has none', async () => {
      const result = await bordered('window.png', { format: 'jpg', background: '#e04020', quality: '100' });
      near(border(result), [224, 64, 32], 'border');
      near(pixelAt(result.pixels, 60, 40), [224, 64, 32], 'window');
      expect(result.notes).to.equal('alpha-flattened');
    });

    it('of contain have the background colour in an image that stays CMYK', async () => {
      const cmyk = await waves(120, 80).toColourspace('cmyk').withIccProfile('cmyk').jpeg().toBuffer();
      const fields = { ...contain, format: 'jpg', background: '#ffffff', strip_metadata: 'false' };
      const { body } = await convert(service.base, cmyk, fields);
      expect((await sharp(body).metadata()).space).to.equal('cmyk');
      near(pixelAt(await decode(body), 60, 5), [255, 255, 255], 'border');
    });
  });

  describe('an animation', () => {
    for (const input of ['gif', 'webp'] as const) {
      for (const format of ['gif', 'webp'] as const) {
        for (const fit of ['cover', 'contain', 'fill'] as const) {
          it(`from ${input} to ${format} has every frame fitted by ${fit}, with unchanged timing`, async () => {
            const file = await fixture(`moving.${input}`); // 48 by 32
            const fields = { format, fit, width: '30', height: '40', position: 'right', quality: '100' };
            const { body } = await convert(service.base, file, { ...fields, enlarge: 'true' });
            const { pages, delay, loop, width, pageHeight } = await sharp(body, {
              animated: true,
            }).metadata();
            expect({ pages, delay, loop, width, pageHeight }).to.deep.equal({
              pages: 3,
              delay: [100, 250, 40],
              loop: 3,
              width: 30,
              pageHeight: 40,
            });
            for (const at of [0, 1, 2]) {
              const { data, width, height } = frame(at);
              const source = await sharp(data, { raw: { width, height, channels: 4 } })
                .png()
                .toBuffer();
              const theirs = await bySharp(source, {
                fit,
                width: 30,
                height: 40,
                position: 'right',
                enlarge: true,
              });
              const ours = await toPixels(sharp(body, { page: at }));
              expect(difference(ours, theirs).psnr, `frame ${at}`).to.be.greaterThan(22);
            }
          });
        }
      }
    }
  });

  it('every page of a TIFF fills the box in a PDF', async () => {
    const fields = { format: 'pdf', fit: 'cover', width: '20', height: '30' };
    const { body } = await convert(service.base, await fixture('pages.tiff'), fields);
    for (const page of [1, 2, 3]) {
      const { width, height } = await decode(await drawPdf(body, page));
      expect([width, height], `page ${page}`).to.deep.equal([20, 30]);
    }
  });

  describe('an SVG', () => {
    const SIZES: Readonly<Record<string, string>> = {
      'a size and a viewBox': 'width="40" height="20" viewBox="0 0 40 20"',
      'a size': 'width="40" height="20"',
      'a viewBox': 'viewBox="0 0 40 20"',
      'no size': '',
    };
    /** Lines of one pixel, which would be blurred if pixels were enlarged. */
    const drawing = (root: string): Buffer => {
      const lines = Array.from({ length: 10 }, (_, at) => `<rect x="${at * 4}" width="2" height="20"/>`);
      return Buffer.from(
        `<svg xmlns="http://www.w3.org/2000/svg" ${root}><rect width="40" height="20" fill="red"/>${lines.join('')}</svg>`,
      );
    };
    const REQUESTS: readonly FitRequest[] = [
      { fit: 'cover', width: 400, height: 400, position: 'left' },
      { fit: 'cover', width: 800, height: 100, position: 'bottom' },
      { fit: 'contain', width: 400, height: 400, position: 'top' },
      { fit: 'fill', width: 200, height: 400 },
      { fit: 'inside', width: 400, height: 400 },
    ];
    /** What sharp makes of the drawing for each request. */
    let references: readonly (readonly [FitRequest, Pixels])[];
    before(async () => {
      const large = await sharp(drawing(SIZES['a viewBox'] as string), { density: 96 * 40 })
        .png()
        .toBuffer();
      references = await Promise.all(
        REQUESTS.map(async (request) => [request, await bySharp(large, request)] as const),
      );
    });
    for (const [what, root] of Object.entries(SIZES)) {
      it(`with ${what} is rendered at the size that the fit needs, even without enlarge`, async () => {
        for (const [request, theirs] of references) {
          for (const format of ['png', 'webp', 'pdf'] as const) {
            const ours = await byService(drawing(root), { ...request }, format);
            const name = `${request.fit} in ${format}`;
            expect(sizeOf(ours), name).to.deep.equal(sizeOf(theirs));
            const limit = format === 'webp' ? 18 : 24;
            expect(difference(onGrey(ours, 255), onGrey(theirs, 255)).psnr, name).to.be.greaterThan(limit);
          }
        }
      });
    }

    it('that covers a box of a very different shape is rendered no larger than the box', async () => {
      const strip = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="10000" height="1"/>');
      const { width, height } = await byService(strip, { fit: 'cover', width: 100, height: 100 });
      expect([width, height]).to.deep.equal([100, 100]);
    });
  });

  it('a box that requires no change keeps every pixel', async () => {
    const file = await fixture('scene.png');
    for (const fit of ['inside', 'cover', 'contain', 'fill'] as const) {
      const ours = await byService(file, { fit, width: 120, height: 80, enlarge: true });
      expect(difference(ours, await decode(file)).max, fit).to.equal(0);
    }
  });
});
