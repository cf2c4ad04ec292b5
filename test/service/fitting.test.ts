// @full: fit of each kind of file
// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { expect } from 'chai';
import sharp, { type FitEnum, type Sharp } from 'sharp';
import { frame, open, scene, square } from '../../scripts/fixtures/scene.ts';
import { PHOTOMETRIC, tagsOf } from '../../scripts/fixtures/tiff-samples.ts';
import { bmp24, tiff } from '../../scripts/fixtures/writers.ts';
import { EXTRA_INPUT_TYPES, OUTPUT_TYPES, OUTPUTS, type OutputType } from '../../src/tables/formats.ts';
import { OPTIONS } from '../../src/tables/options.ts';
import { convert, converted, edgeCase, type Fields, fixture } from '../helpers/client.ts';
import { ALL_EXTRAS, decodeAny, extra } from '../helpers/extra.ts';
import {
  decode,
  difference,
  drawPdf,
  onGrey,
  type Pixels,
  pixelAt,
  plain,
  sizeOf,
  toPixels,
} from '../helpers/pixels.ts';
import { useServiceWith } from '../helpers/service.ts';

interface FitRequest {
  readonly fit: keyof FitEnum;
  readonly width: number;
  readonly height: number;
  readonly position?: string;
  readonly enlarge?: boolean;
}

/** Minimum PSNR in dB. A shift by one pixel gives less than 30. */
const MIN_PSNR = 34;
/**
 * The same for the pictures of fixtures, which have sharp edges and are converted with loss: a
 * shift gives at most 22.
 */
const MIN_SCENE_PSNR = 24;

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

/** Encodes a picture in a format of each path to the pixels. */
const WRITERS: Readonly<Record<string, (picture: Sharp) => Sharp>> = {
  jpg: (picture) => picture.jpeg({ quality: 100, chromaSubsampling: '4:4:4' }),
  png: (picture) => picture.png(),
  webp: (picture) => picture.webp({ lossless: true, effort: 0 }),
  tiff: (picture) => picture.tiff(),
  gif: (picture) => picture.gif({ dither: 0, effort: 1 }),
  avif: (picture) => picture.avif({ quality: 100, effort: 0, chromaSubsampling: '4:4:4' }),
};

const shares = (point: string): number[] => point.split(',').map((text) => Number.parseFloat(text) / 100);

/** @module Compares fit, position and enlarge with sharp, whose names and semantics they have. */
describe('fit, position and enlarge', () => {
  const service = useServiceWith(ALL_EXTRAS);

  const bySharp = (image: Sharp, { enlarge = false, ...request }: FitRequest): Promise<Pixels> =>
    toPixels(
      image.resize({ ...request, background: { r: 0, g: 0, b: 0, alpha: 0 }, withoutEnlargement: !enlarge }),
    );

  const byService = async (
    file: Buffer,
    request: FitRequest & { readonly quality?: number },
    format: OutputType = 'png',
  ): Promise<Pixels> => {
    const fields = Object.entries(request).map(([name, value]) => [name, String(value)]);
    const answer = await converted(service.base, file, { format, ...Object.fromEntries(fields) });
    return decodeAny(answer.body, format);
  };

  function expectSame(ours: Pixels, theirs: Pixels, what: string, least = MIN_PSNR): void {
    expect(sizeOf(ours), what).to.deep.equal(sizeOf(theirs));
    expect(difference(ours, theirs).psnr, what).to.be.above(least);
  }

  const expectAsBySharp = async (file: Buffer, request: FitRequest): Promise<void> =>
    expectSame(
      await byService(file, request),
      await bySharp(sharp(file).autoOrient(), request),
      JSON.stringify(request),
    );

  for (const fit of ['inside', 'cover', 'contain', 'fill'] as const) {
    it(`fit=${fit} gives the same size and pixels as sharp, for smaller, larger and mixed boxes`, async () => {
      const file = await waves(181, 121).png().toBuffer();
      for (const [width, height, enlarge] of [
        [51, 90, true],
        [150, 20, false],
        [240, 60, false],
        [90, 200, true],
        [240, 220, false],
        [240, 220, true],
      ] as const)
        await expectAsBySharp(file, { fit, width, height, enlarge });
    });
  }

  it('cover and contain put the image at every position exactly where sharp does', async () => {
    const file = await waves(161, 121).png().toBuffer();
    const places = Object.keys(OPTIONS.position.type.labels).filter((one) => one !== 'attention');
    // Cover cuts off columns, and contain adds rows. For an odd number of them, both round
    // differently.
    for (const position of [...places, 'WEST', 'southeast', 'centre'])
      for (const fit of ['cover', 'contain'] as const)
        await expectSame(
          await byService(file, { fit, position, width: 59, height: 80 }),
          await bySharp(sharp(file), { fit, position: position.toLowerCase(), width: 59, height: 80 }),
          `${fit} ${position}`,
        );
  });

  for (const [kind, write] of Object.entries(WRITERS))
    it(`cover puts a point of a ${kind} into the centre, or as near to it as the edges permit`, async () => {
      const file = await write(waves(403, 241)).toBuffer();
      for (const [position, width, height] of [
        ['0%,0%', 59, 80],
        ['62.5%,41.3%', 59, 80],
        ['30%,70%', 75, 41],
        ['95%,20%', 90, 20],
      ] as const) {
        const ours = await byService(file, { fit: 'cover', position, width, height });
        const scale = Math.max(width / 403, height / 241);
        const sides = [Math.round(403 * scale), Math.round(241 * scale)] as const;
        const [left = 0, top = 0] = [width, height].map((kept, at) => {
          const [side = 0, share = 0] = [sides[at], shares(position)[at]];
          const wanted = Math.ceil(Number((side * share - kept / 2).toFixed(9)));
          return Math.min(side - kept, Math.max(0, wanted));
        });
        const resized = await toPixels(sharp(file).resize(...sides, { fit: 'fill' }));
        const theirs = await toPixels(open(resized).extract({ left, top, width, height }));
        expectSame(ours, theirs, `${position} in ${width} × ${height}`, kind === 'gif' ? 28 : MIN_PSNR);
      }
    });

  for (const kind of ['png', 'gif'])
    it(`contain puts a point of a ${kind} at the same point of the result`, async () => {
      const file = await (WRITERS[kind] as (typeof WRITERS)[string])(waves(160, 120)).toBuffer();
      const image = await byService(file, { fit: 'fill', width: 40, height: 30 });
      for (const [width, height, left, top] of [
        [73, 30, 9, 0], // 33 columns are added
        [40, 61, 0, 21],
      ] as const) {
        const result = await byService(file, { fit: 'contain', width, height, position: '30%,70%' });
        const part = open(result).extract({ left, top, width: 40, height: 30 });
        expect(difference(await toPixels(part), image).max).to.equal(0);
        expect(pixelAt(result, left === 0 ? 0 : left - 1, top === 0 ? 0 : top - 1)[3]).to.equal(0);
      }
    });

  it('a point is that of each page, whose sizes can differ', async () => {
    const pages = await edgeCase('mixed.tiff');
    const { body: whole } = await converted(service.base, pages, { format: 'pdf' });
    for (const position of ['20%,50%', '75%,50%'] as const) {
      const fields = { fit: 'cover', width: '16', height: '32', position };
      const made = await converted(service.base, pages, { format: 'pdf', ...fields });
      for (const page of [1, 2, 3]) {
        const drawn = await decode(await drawPdf(whole, page));
        const left = Math.ceil(drawn.width * (shares(position)[0] as number) - 8);
        const theirs = await toPixels(open(drawn).extract({ left, top: 0, width: 16, height: 32 }));
        expectSame(await decode(await drawPdf(made.body, page)), theirs, `${position} of page ${page}`);
      }
    }
  });

  it('the orientation is applied before the fit', async () => {
    const file = await waves(161, 121).jpeg({ quality: 100 }).withMetadata({ orientation: 6 }).toBuffer();
    for (const fit of ['cover', 'contain', 'fill'] as const)
      await expectAsBySharp(file, { fit, width: 70, height: 44, position: 'left top' });
  });

  const BOXES: readonly FitRequest[] = [
    { fit: 'cover', width: 40, height: 50, position: 'left' },
    { fit: 'contain', width: 50, height: 60, position: 'top' },
  ];

  for (const type of EXTRA_INPUT_TYPES)
    it(`an image of type ${type} is fitted as in sharp`, async () => {
      const image = type === 'cur' ? square(64) : scene({ flat: type === 'pdf' });
      for (const box of BOXES) {
        const ours = await byService(await extra(`scene.${type}`), box);
        expectSame(ours, await bySharp(open(image), box), box.fit, MIN_SCENE_PSNR);
      }
    });

  for (const format of ['avif', 'jxl', 'tiff'] as const)
    it(`a result in ${format} is fitted as in sharp`, async () => {
      for (const box of BOXES) {
        const ours = await byService(await fixture('scene.png'), { ...box, quality: 95 }, format);
        expectSame(ours, await bySharp(open(scene()), box), box.fit, MIN_SCENE_PSNR);
      }
    });

  it('HEIC and JPEG XL are oriented before they are fitted', async () => {
    const box = { fit: 'cover', width: 60, height: 30, position: 'top' } as const;
    for (const name of ['turned.heic', 'turned.jxl'])
      expectSame(
        await byService(await extra(name), box),
        await bySharp(open(scene()), box),
        name,
        MIN_SCENE_PSNR,
      );
  });

  it('all pages of a TIFF and all frames of a JPEG XL have the size of the box', async () => {
    const box = { fit: 'contain', width: '60', height: '70', enlarge: 'true' };
    for (const [file, format] of [
      [await fixture('pages.tiff'), 'tiff'],
      [await extra('moving.jxl'), 'webp'],
      [await fixture('moving.gif'), 'tiff'],
    ] as const) {
      const { body } = await converted(service.base, file, { ...box, format });
      for (const page of [0, 1, 2]) {
        const { info } = await sharp(body, { page }).raw().toBuffer({ resolveWithObject: true });
        expect(sizeOf(info), `${format} ${page}`).to.deep.equal([60, 70]);
      }
    }
  });

  it('an icon of equal sides has no borders with fit=cover, and coloured ones with contain and background', async () => {
    for (const name of ['scene.png', 'scene.svg']) {
      const file = await fixture(name);
      const icon = async (fields: Fields): Promise<Pixels> => {
        const sides = { format: 'ico', width: '64', height: '64' };
        return decodeAny((await converted(service.base, file, { ...sides, ...fields })).body, 'ico');
      };
      const cut = await icon({ fit: 'cover' });
      expect(sizeOf(cut), name).to.deep.equal([48, 48]);
      expect(pixelAt(cut, 24, 1)[3], name).to.equal(255);
      expect(pixelAt(await icon({}), 24, 1)[3], name).to.equal(0);
      const red = await icon({ fit: 'contain', background: '#ff0000' });
      expect(pixelAt(red, 24, 1), name).to.deep.equal([255, 0, 0, 255]);
    }
  });

  describe('borders of contain', () => {
    const contain = { fit: 'contain', width: '120', height: '120' } as const; // 20 pixels above and below
    const bordered = async (name: string, fields: Fields) => {
      const answer = await converted(service.base, await fixture(name), { ...contain, ...fields });
      const pixels = await decode(answer.body, fields.format as OutputType);
      expect(sizeOf(pixels)).to.deep.equal([120, 120]);
      return { pixels, border: pixelAt(pixels, 60, 5), notes: answer.notes };
    };
    const near = (actual: number[], expected: readonly number[], what: string): void => {
      for (const [channel, value] of expected.entries())
        expect(actual[channel], `${what}: ${actual}`).to.be.closeTo(value, 6);
    };

    for (const format of OUTPUT_TYPES) {
      const hasAlpha = OUTPUTS[format].alpha !== 'none' && !OUTPUTS[format].takesBackground;
      it(`are ${hasAlpha ? 'transparent' : 'white'} in ${format}, without a note, or have the background`, async () => {
        for (const name of ['scene.gif', 'grey.jpg', 'p3.jpg', 'scene.svg']) {
          const { border, notes } = await bordered(name, { format });
          if (hasAlpha) expect(border[3], name).to.equal(0);
          else near(border, [255, 255, 255], name);
          expect(notes ?? 'colour-converted-to-srgb', name).to.equal('colour-converted-to-srgb');
          const coloured = await bordered(name, { format, background: '#e04020', quality: '100' });
          near(coloured.border, [224, 64, 32, 255], `${name} in ${format}`);
        }
      });
    }

    it('with a background colour do not change an image of one channel', async () => {
      const jpeg = await edgeCase('one-channel.jpg');
      expect((await sharp(jpeg).metadata()).channels).to.equal(1);
      const box = { ...contain, width: '32', height: '32' };
      for (const file of [jpeg, await sharp(jpeg).tiff({ compression: 'lzw' }).toBuffer()])
        for (const format of OUTPUT_TYPES) {
          const fields = { ...box, format, quality: '100', background: '#3080c0' };
          const pixels = await decode((await convert(service.base, file, fields)).body, format);
          near(pixelAt(pixels, 8, 16), [100, 100, 100], format);
          near(pixelAt(pixels, 24, 16), [30, 30, 30], format);
          near(pixelAt(pixels, 24, 2), [48, 128, 192], format);
        }
    });

    it('do not change the transparency of the image', async () => {
      for (const [name, format] of [
        ['window.png', 'gif'],
        ['window.webp', 'png'],
        ['window.gif', 'webp'],
      ] as const) {
        const { border, pixels } = await bordered(name, { format, background: '#e04020', quality: '100' });
        near(border, [224, 64, 32, 255], `${name} in ${format}`);
        expect(pixelAt(pixels, 60, 40)[3], `${name} in ${format}`).to.equal(0);
      }
    });

    it('have the colour that replaces transparency if the format has none', async () => {
      const fields = { format: 'jpg', background: '#e04020', quality: '100' };
      const { border, pixels, notes } = await bordered('window.png', fields);
      near(border, [224, 64, 32], 'border');
      near(pixelAt(pixels, 60, 40), [224, 64, 32], 'window');
      expect(notes).to.equal('alpha-flattened');
    });

    it('have the background colour in an image that stays CMYK', async () => {
      const cmyk = await waves(120, 80).toColourspace('cmyk').withIccProfile('cmyk').jpeg().toBuffer();
      const fields = { ...contain, format: 'jpg', background: '#ffffff', strip_metadata: 'false' };
      const { body } = await convert(service.base, cmyk, fields);
      expect((await sharp(body).metadata()).space).to.equal('cmyk');
      near(pixelAt(await decode(body), 60, 5), [255, 255, 255], 'border');
    });
  });

  for (const [input, format, fit] of [
    ['gif', 'gif', 'cover'],
    ['gif', 'webp', 'contain'],
    ['webp', 'gif', 'fill'],
    ['webp', 'webp', 'cover'],
    ['gif', 'gif', 'contain'],
  ] as const) {
    it(`an animation from ${input} to ${format} has every frame fitted by ${fit}, with unchanged timing`, async () => {
      const box = { fit, width: 30, height: 40, position: 'right', enlarge: true };
      const fields = { format, fit, width: '30', height: '40', position: 'right', enlarge: 'true' };
      const file = await fixture(`moving.${input}`); // 48 by 32
      const { body } = await convert(service.base, file, { ...fields, quality: '100' });
      expect(await sharp(body, { animated: true }).metadata()).to.deep.include({
        pages: 3,
        delay: [100, 250, 40],
        loop: 3,
        width: 30,
        pageHeight: 40,
      });
      for (const at of [0, 1, 2]) {
        const ours = await toPixels(sharp(body, { page: at }));
        expectSame(ours, await bySharp(open(frame(at)), box), `frame ${at}`, 22);
      }
    });
  }

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
    const REQUESTS: readonly (readonly [FitRequest, format: OutputType])[] = [
      [{ fit: 'cover', width: 400, height: 400, position: 'left' }, 'webp'],
      [{ fit: 'cover', width: 800, height: 100, position: 'bottom' }, 'pdf'],
      [{ fit: 'contain', width: 400, height: 400, position: 'top' }, 'png'],
      [{ fit: 'contain', width: 400, height: 400, position: 'top' }, 'pdf'],
      [{ fit: 'fill', width: 200, height: 400 }, 'png'],
      [{ fit: 'fill', width: 200, height: 400 }, 'pdf'],
      [{ fit: 'inside', width: 400, height: 400 }, 'png'],
    ];
    /** What sharp makes of the drawing for each request. */
    let references: readonly Pixels[];
    before(async () => {
      const large = drawing(SIZES['a viewBox'] as string);
      references = await Promise.all(
        REQUESTS.map(([request]) => bySharp(sharp(large, { density: 96 * 40 }), request)),
      );
    });
    for (const [what, root] of Object.entries(SIZES)) {
      it(`with ${what} is rendered at the size that the fit needs, even without enlarge`, async () => {
        for (const [at, [request, format]] of REQUESTS.entries()) {
          const ours = onGrey(await byService(drawing(root), request, format), 255);
          const theirs = onGrey(references[at] as Pixels, 255);
          expectSame(ours, theirs, `${request.fit} in ${format}`, format === 'webp' ? 18 : 24);
        }
      });
    }

    it('that covers a box of a very different shape is rendered no larger than the box', async () => {
      const strip = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="10000" height="1"/>');
      const result = await byService(strip, { fit: 'cover', width: 100, height: 100 });
      expect(sizeOf(result)).to.deep.equal([100, 100]);
    });
  });

  const line = () => plain(100, 1);
  const pages = () =>
    tiff(
      [
        [100, 1],
        [40, 4],
      ].map(([width = 0, height = 0]) => ({
        tags: tagsOf(width, height, [8, 8, 8], PHOTOMETRIC.rgb),
        strip: Buffer.alloc(width * height * 3, 90),
      })),
    );
  const LINES: Readonly<Record<string, () => Buffer | Promise<Buffer>>> = {
    ...Object.fromEntries(
      Object.entries(WRITERS).map(([type, write]) => [type, () => write(line()).toBuffer()]),
    ),
    bmp: () => bmp24({ width: 100, height: 1, data: Buffer.alloc(400, 90) }),
    'tiff of two pages': pages,
  };
  for (const [type, make] of Object.entries(LINES)) {
    it(`keeps a pixel of a side of which scale leaves less than half a pixel, in a ${type}`, async () => {
      const file = await make();
      for (const format of ['png', 'tiff'] as const) {
        const { body } = await converted(service.base, file, { format, scale: '37' });
        const sizes = [0, 1].map((page) => sharp(body, { page }).metadata().then(sizeOf));
        const count = format === 'tiff' && type.endsWith('pages') ? 2 : 1;
        expect(await Promise.all(sizes.slice(0, count))).to.deep.equal(
          [
            [37, 1],
            [15, 1],
          ].slice(0, count),
        );
      }
    });
  }
});
