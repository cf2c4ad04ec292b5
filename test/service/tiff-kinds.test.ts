// @full: the kinds of public test suites
// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
/**
 * @module Converts TIFFs of each encoding, with several images of which one is a page, and with
 * invalid or missing tags, which libtiff ignores and ImageMagick does not.
 */
import { expect } from 'chai';
import sharp, { type Sharp, type TiffOptions } from 'sharp';
import { littleUint16, littleUint32 } from '../../scripts/fixtures/boxes.ts';
import { opened } from '../../scripts/fixtures/edge-case.ts';
import { type TiffPage, tiff } from '../../scripts/fixtures/writers.ts';
import { ALL_OUTPUT_TYPES } from '../../src/tables/formats.ts';
import {
  convert,
  converted,
  edgeCase,
  expectSuccess,
  type Fields,
  formOf,
  postForm,
} from '../helpers/client.ts';
import { ALL_EXTRAS, decodeAny } from '../helpers/extra.ts';
import { countPages } from '../helpers/pdf.ts';
import { byPillow } from '../helpers/pillow.ts';
import { decode, difference, pixelAt, plain, sizeOf, toPixels } from '../helpers/pixels.ts';
import { useService, useServiceWith } from '../helpers/service.ts';

const [WIDTH, HEIGHT] = [32, 16];
const COLOURS = [
  [200, 40, 40],
  [40, 90, 160],
] as const;

const page = (colour: readonly number[], tags: TiffPage['tags'] = {}): TiffPage => ({
  tags: { 256: WIDTH, 257: HEIGHT, 258: [8, 8, 8], 262: 2, 277: 3, 278: HEIGHT, ...tags },
  strip: Buffer.alloc(WIDTH * HEIGHT * 3, Buffer.from(colour)),
});

/** The scene in greys whose 0 is black. */
const greys = (): Sharp => opened().greyscale().toColourspace('b-w');
const PREDICTED: TiffOptions = { compression: 'deflate', predictor: 'horizontal' };
const COMPRESSIONS: readonly TiffOptions[] = [
  { compression: 'none' },
  { compression: 'lzw', predictor: 'none' },
  { compression: 'lzw', predictor: 'horizontal' },
  PREDICTED,
  { compression: 'packbits' },
  { compression: 'none', tile: true, tileWidth: 32, tileHeight: 16 },
  { ...PREDICTED, tile: true, tileWidth: 64, tileHeight: 64 },
  { compression: 'none', bigtiff: true },
];
/** Images that libtiff stores with fewer or more bits per sample than 8. */
const DEPTHS: Readonly<Record<string, Sharp>> = {
  'bilevel pixels in Group 4 compression': greys().tiff({ bitdepth: 1, compression: 'ccittfax4' }),
  'uncompressed bilevel pixels': greys().tiff({ bitdepth: 1, compression: 'none' }),
  'greys of 2 bits': greys().tiff({ bitdepth: 2, compression: 'none' }),
  'compressed greys of 4 bits': greys().tiff({ bitdepth: 4, compression: 'lzw', predictor: 'none' }),
  'compressed greys of 16 bits': opened().toColourspace('grey16').tiff(PREDICTED),
  'compressed colours of 16 bits': opened().toColourspace('rgb16').tiff(PREDICTED),
};
/** Invalid values by the name of the tag. libtiff ignores each of them. */
const INVALID: Readonly<Record<string, TiffPage['tags']>> = {
  FillOrder: { 266: 0 },
  Orientation: { 274: 9 },
  RowsPerStrip: { 278: 0 },
  MinSampleValue: { 280: [5, 6] },
  PlanarConfiguration: { 284: 3 },
  ResolutionUnit: { 296: 7 },
  InkNames: { 333: Buffer.from('a') },
  ExtraSamples: { 338: [9] },
  SampleFormat: { 339: [9, 9, 9] },
  SMinSampleValue: { 340: [1, 2] },
  ExifIFD: { 34665: 0x7fffffff },
  GPSIFD: { 34853: 0 },
};

/** A mask of 1 bit per pixel, all set. */
const MASK: TiffPage = {
  tags: { 254: 4, 256: WIDTH, 257: HEIGHT, 258: 1, 262: 4, 277: 1, 278: HEIGHT },
  strip: Buffer.alloc((WIDTH / 8) * HEIGHT, 0xff),
};

/** Moves the second directory of a TIFF to the tag SubIFDs of the first. */
function withSubdirectory(image: TiffPage, other: TiffPage): Buffer {
  const file = tiff([{ ...image, tags: { ...image.tags, 330: 0 } }, other]);
  const next = 10 + file.readUInt16LE(8) * 12;
  file.writeUInt32LE(file.readUInt32LE(next), entryAt(file, 330) + 8);
  return file.fill(0, next, next + 4);
}

/** Two layers of Photoshop in one colour, which cover the image. */
function photoshopLayers(colour: readonly number[]): Buffer {
  const channels = colour.map((value) =>
    Buffer.concat([Buffer.alloc(2), Buffer.alloc(WIDTH * HEIGHT, value)]),
  );
  const lengths = channels.flatMap(({ length }, at) => [littleUint16(at), littleUint32(length)]);
  const layer = Buffer.concat([
    littleUint32(0, 0, HEIGHT, WIDTH),
    littleUint16(channels.length),
    ...lengths,
    Buffer.from('MIB8mron\xff\0\0\0', 'latin1'),
    littleUint32(12, 0, 0),
    Buffer.from('\x01L\0\0'),
  ]);
  const layers = Buffer.concat([littleUint16(2), layer, layer, ...channels, ...channels]);
  const title = Buffer.from('Adobe Photoshop Document Data Block\0MIB8ryaL');
  return Buffer.concat([title, littleUint32(layers.length), layers]);
}

/** Position of the entry of a tag in the first directory of a little-endian TIFF. */
function entryAt(file: Buffer, tag: number): number {
  const directory = file.readUInt32LE(4);
  const places = Array.from({ length: file.readUInt16LE(directory) }, (_, at) => directory + 2 + at * 12);
  return places.find((at) => file.readUInt16LE(at) === tag) ?? 0;
}

/** Position of the entry of a tag in the first directory of a little-endian BigTIFF. */
function entryOf(file: Buffer, tag: number): number {
  const directory = Number(file.readBigUInt64LE(8));
  const count = Number(file.readBigUInt64LE(directory));
  const places = Array.from({ length: count }, (_, at) => directory + 8 + at * 20);
  return places.find((at) => file.readUInt16LE(at) === tag) ?? 0;
}

/** YCbCr of ITU-R BT.601 with full range, of 8 bits. */
const yCbCrOf = ([red = 0, green = 0, blue = 0]: readonly number[]): number[] => {
  const luma = 0.299 * red + 0.587 * green + 0.114 * blue;
  return [luma, (blue - luma) / 1.772 + 128, (red - luma) / 1.402 + 128].map((value) =>
    Math.min(255, Math.round(value)),
  );
};

describe('a TIFF in YCbCr without JPEG', () => {
  const own = useServiceWith(ALL_EXTRAS);
  const PATCHES = [...COLOURS, [255, 255, 255], [0, 0, 0], [20, 220, 30]] as const;

  function patches(encode: (colour: readonly number[]) => readonly number[], tags: TiffPage['tags']): Buffer {
    const row = PATCHES.flatMap((colour) => Array<readonly number[]>(16).fill(encode(colour))).flat();
    const size = { 256: 16 * PATCHES.length, 257: 16, 278: 16 };
    return tiff([
      {
        ...page([0]),
        tags: { ...page([0]).tags, ...size, ...tags },
        strip: Buffer.from(Array(16).fill(row).flat()),
      },
    ]);
  }

  const COLOUR_OPTIONS: readonly Fields[] = [
    {},
    { metadata: 'all' },
    { width: '100', height: '40', fit: 'contain', background: '#ff0000', quality: '100' },
    { watermark_scale: '1', watermark_opacity: '1' },
    { greyscale: 'true' },
  ];
  for (const format of ALL_OUTPUT_TYPES.filter((one) => one !== 'ico'))
    it(`has its colours in ${format} with each option that compares or adds colours`, async () => {
      const { icc } = await sharp(await plain(8, 8).withIccProfile('p3').png().toBuffer()).metadata();
      for (const profile of [undefined, icc])
        for (const options of COLOUR_OPTIONS) {
          const tags = profile ? { 34675: profile } : {};
          const send = async (file: Buffer) => {
            const mark = options.watermark_scale
              ? [['m.png', await plain(1, 1).png().toBuffer(), 'watermark'] as const]
              : [];
            const form = formOf({ format, quality: '100', lossless: String(format === 'webp'), ...options }, [
              ['a.tiff', file],
              ...mark,
            ]);
            return decodeAny((await expectSuccess(postForm(`${own.base}/convert`, form))).body, format);
          };
          const shown = await send(patches(yCbCrOf, { ...tags, 262: 6, 530: [1, 1] }));
          const rgb = patches((colour) => colour, tags);
          const expected = options === COLOUR_OPTIONS[0] ? await decode(rgb) : await send(rgb);
          const { max } = difference(shown, expected);
          // AVIF and JPEG at quality 100 have losses, which differ for pixels that differ by 1.
          expect(max, JSON.stringify([profile?.length, options])).to.be.at.most(9);
        }
    });
});

describe('a TIFF', () => {
  const service = useService();

  it('with a thumbnail and the picture in SubIFDs shows the picture, and is described by it', async () => {
    const thumbnail = { 254: 1, 256: 8, 257: 4, 278: 4 };
    const file = withSubdirectory(page(COLOURS[0], thumbnail), page(COLOURS[1]));
    for (const format of ['png', 'pdf', 'webp']) {
      const { body, notes } = await converted(service.base, file, { format });
      expect(notes, format).to.equal(null);
      if (format === 'pdf') continue;
      const shown = await decode(body);
      expect(sizeOf(shown), format).to.deep.equal([WIDTH, HEIGHT]);
      if (format === 'png') expect(pixelAt(shown, 9, 9)).to.deep.equal([...COLOURS[1], 255]);
    }
    const form = formOf({}, [['scan.tiff', file]]);
    const described = JSON.parse((await postForm(`${service.base}/identify`, form)).body.toString());
    expect([described.width, described.height]).to.deep.equal([WIDTH, HEIGHT]);
  });

  it('does not count a page that an old SubfileType declares to be a smaller version', async () => {
    const file = tiff([page(COLOURS[0]), page(COLOURS[1], { 255: 2 })]);
    const { body, notes } = await converted(service.base, file, { format: 'png' });
    expect([notes, pixelAt(await decode(body), 9, 9)]).to.deep.equal([null, [...COLOURS[0], 255]]);
  });

  for (const [what, image] of [
    ...COMPRESSIONS.map((options) => [JSON.stringify(options), opened().ensureAlpha(0.5).tiff(options)]),
    ...Object.entries(DEPTHS),
  ] as [string, Sharp][])
    it(`with ${what} is what libvips shows`, async () => {
      const file = await image.toBuffer();
      const { body } = await converted(service.base, file, { format: 'png' });
      expect(difference(await decode(body), await decode(file)).max).to.be.at.most(1);
    });

  it('of fax lines that are damaged has the note truncated-input', async () => {
    const lines = opened().resize(400, 300).threshold(120).png();
    const save = 'image.convert("1").save(file, "TIFF", compression="group3")';
    const whole = byPillow(await lines.toBuffer(), save);
    expect((await converted(service.base, whole, { format: 'png' })).notes).to.equal(null);
    const [at, length] = [
      whole.readUInt32LE(entryAt(whole, 273) + 8),
      whole.readUInt32LE(entryAt(whole, 279) + 8),
    ];
    const damaged = Buffer.from(whole).fill(0, at, at + length);
    const { notes, body } = await converted(service.base, damaged, { format: 'png' });
    expect(notes).to.equal('truncated-input');
    expect(sizeOf(await decode(body))).to.deep.equal([400, 300]);
  });

  it('in big-endian byte order is what was stored', async () => {
    const png = await opened().greyscale().toColourspace('b-w').png().toBuffer();
    const save =
      'image.convert("I").point(lambda value: value * 257 + 0).convert("I;16B").save(file, "TIFF")';
    const file = byPillow(png, save);
    expect(file.toString('latin1', 0, 2)).to.equal('MM');
    const { body } = await converted(service.base, file, { format: 'png' });
    expect(difference(await decode(body), await decode(png)).max).to.equal(0);
  });

  for (const [name, tags] of Object.entries(INVALID)) {
    it(`with an invalid ${name} on one of its pages is converted without it`, async () => {
      const file = tiff([page(COLOURS[0], tags), page(COLOURS[1], tags)]);
      const { body } = await converted(service.base, file, { format: 'png' });
      expect(pixelAt(await decode(body), 5, 5)).to.deep.equal([...COLOURS[0], 255]);
      await converted(service.base, file, { format: 'pdf' });
    });
  }

  it('in Group 3 compression is upright for each orientation', async () => {
    const png = await opened().threshold(100).png().toBuffer();
    for (const orientation of [1, 2, 3, 4, 5, 6, 7, 8]) {
      const save = `image.convert("1").save(file, "TIFF", compression="group3", tiffinfo={274: ${orientation}})`;
      const file = byPillow(png, save);
      const { body } = await converted(service.base, file, { format: 'png' });
      const { psnr } = difference(await decode(body), await toPixels(sharp(file).autoOrient()));
      expect(psnr, `${orientation}`).to.be.above(25);
    }
  });

  it('of old-style JPEG without SamplesPerPixel is converted, or rejected, as one with it', async () => {
    const file = await edgeCase('old-jpeg.tiff');
    const without = Buffer.from(file);
    without.writeUInt16LE(276, entryAt(file, 277)); // a tag that does not exist
    const [expected, found] = [await convert(service.base, file), await convert(service.base, without)];
    expect(found.outcome).to.equal(expected.outcome);
    expect(found.body.equals(expected.body)).to.equal(true);
  });

  for (const [what, scale] of [
    ['8 bits and 8 zeros, as Pillow writes them', 256],
    ['16 bits', 257],
  ] as const) {
    it(`with a palette whose colours are ${what} keeps all 256 levels`, async () => {
      const levels = Array.from({ length: 256 }, (_, level) => level);
      const file = tiff([
        {
          tags: {
            256: 256,
            257: 1,
            258: [8],
            262: 3,
            278: 1,
            320: [levels, levels.toReversed(), levels].flat().map((level) => level * scale),
          },
          strip: Buffer.from(levels),
        },
      ]);
      const { body } = await convert(service.base, file, { format: 'png' });
      const found = await decode(body);
      for (const level of levels)
        expect(pixelAt(found, level, 0)).to.deep.equal([level, 255 - level, level, 255]);
    });
  }

  it('of 64-bit offsets with CMYK and an invalid RowsPerStrip is no negative', async () => {
    const cmyk = opened().toColourspace('cmyk');
    const file = await cmyk.tiff({ bigtiff: true, compression: 'deflate', predictor: 'none' }).toBuffer();
    const valid = await convert(service.base, file, { format: 'png' });
    file.fill(0, entryOf(file, 278) + 12, entryOf(file, 278) + 20);
    const { body } = await converted(service.base, file, { format: 'png' });
    expect(difference(await decode(body), await decode(valid.body)).max).to.equal(0);
    expect(pixelAt(await decode(body), 8, 8)[0], 'red of the red corner').to.be.above(180);
  });

  for (const [what, tags] of [
    ['one sample per pixel of RGB', { 277: 1 }],
    ['two samples per pixel of RGB', { 277: 2 }],
    ['fewer samples per pixel than its colours and its alpha', { 258: [8, 8, 8, 8], 338: [2] }],
    ['fewer samples per pixel than its grey and its alpha', { 258: [8, 8], 262: 1, 277: 1, 338: [2] }],
  ] as const) {
    it(`that states ${what} is rejected as damaged, unless that page is not converted`, async () => {
      const damaged = page(COLOURS[0], tags);
      const convertPages = (pages: readonly TiffPage[], format: string) =>
        convert(service.base, tiff(pages), { format });
      const outcome = '400 The file is damaged or not a valid TIFF image.';
      expect((await convertPages([damaged], 'png')).outcome).to.equal(outcome);
      expect((await convertPages([page(COLOURS[0]), damaged], 'pdf')).outcome).to.equal(outcome);
      expect((await convertPages([page(COLOURS[0]), damaged], 'png')).outcome).to.equal('200');
    });
  }

  it('with PrintIM is rejected as the raw image of a camera only if its first image is a preview', async () => {
    const printIm = { 50341: Buffer.from('PrintIM\x000300\0\0') };
    const raw = tiff([page(COLOURS[0], { ...printIm, 254: 1 })]);
    expect((await convert(service.base, raw, { format: 'png' })).status).to.equal(415);
    await converted(service.base, tiff([page(COLOURS[0], printIm)]), { format: 'png' });
  });

  it('that is a tiled pyramid, as libvips writes it, shows the whole image, and is one page', async () => {
    const file = await plain(600, 400, '#c82828')
      .tiff({ tile: true, pyramid: true, compression: 'lzw' })
      .toBuffer();
    expect((await sharp(file).metadata()).pages).to.be.above(1);
    const shown = await decode((await converted(service.base, file, { format: 'png' })).body);
    expect([...sizeOf(shown), ...pixelAt(shown, 300, 200)]).to.deep.equal([600, 400, ...COLOURS[0], 255]);
    const { body } = await converted(service.base, file, { format: 'pdf' });
    expect(await countPages(body)).to.equal(1);
  });

  for (const [what, file] of [
    ['a mask in front of the image', tiff([MASK, page(COLOURS[0])])],
    ['a smaller image in a subdirectory', withSubdirectory(page(COLOURS[0]), page(COLOURS[1], { 254: 1 }))],
    ['layers of Photoshop', tiff([page(COLOURS[0], { 37724: photoshopLayers(COLOURS[1]) })])],
  ] as const)
    it(`with ${what} shows the image, and is one page`, async () => {
      const { body } = await converted(service.base, file, { format: 'png' });
      expect(pixelAt(await decode(body), 20, 10)).to.deep.equal([...COLOURS[0], 255]);
      expect(await countPages((await converted(service.base, file, { format: 'pdf' })).body)).to.equal(1);
    });
});
