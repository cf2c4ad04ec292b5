// @full: samples of profiles and formats, some beside Chromium
// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
/** @module Images with an ICC profile that is not sRGB, and JPEGs with an HDR gain map. */
import { expect } from 'chai';
import sharp, { type Sharp } from 'sharp';
import { jpegOf, opened } from '../../scripts/fixtures/edge-case.ts';
import { HEIGHT, scene, WIDTH } from '../../scripts/fixtures/scene.ts';
import {
  ico,
  profileSegment,
  withChromaticities,
  withoutChunk,
  withoutPrimaries,
  withProfileChunk,
  withSegment,
} from '../../scripts/fixtures/writers.ts';
import { declaredProfile, powerCurve } from '../../src/images/colour/declared-colour.ts';
import {
  rgbToXyzD50,
  sampledCurve,
  transpose,
  writeProfile,
  xyz,
} from '../../src/images/colour/icc-writer.ts';
import type { Primaries } from '../../src/images/image-info.ts';
import { ALL_OUTPUT_TYPES, type OutputType } from '../../src/tables/formats.ts';
import { MAX_MEAN_ERROR, useBrowserDecoder } from '../helpers/chromium.ts';
import { convert, converted, identify } from '../helpers/client.ts';
import { ALL_EXTRAS, decodeAny } from '../helpers/extra.ts';
import { decode, difference, type Pixels, pixelAt, toPixels } from '../helpers/pixels.ts';
import { useService, useServiceWith } from '../helpers/service.ts';

const D65 = [0.3127, 0.329] as const;

/** Profiles of wide colour spaces, by their primaries and a gamma of 2.2. */
const WIDE = {
  'Adobe RGB': { red: [0.64, 0.33], green: [0.21, 0.71], blue: [0.15, 0.06], white: D65 },
  'Display P3': { red: [0.68, 0.32], green: [0.265, 0.69], blue: [0.15, 0.06], white: D65 },
} as const;

const D50 = [0.3457, 0.3585] as const;
const PRO_PHOTO = {
  red: [0.7347, 0.2653],
  green: [0.1596, 0.8404],
  blue: [0.0366, 0.0001],
  white: D50,
} as const;
const APPLE_RGB = { red: [0.625, 0.34], green: [0.28, 0.595], blue: [0.155, 0.07], white: D65 } as const;

/** A curve as an exponent or as samples (ICC.1:2022, 10.6). */
function exponentOrSamples(...values: number[]): Buffer {
  const tag = Buffer.alloc(12 + Math.ceil(values.length / 2) * 4);
  tag.write('curv', 'latin1');
  tag.writeUInt32BE(values.length, 8);
  for (const [at, value] of values.entries()) tag.writeUInt16BE(value, 12 + at * 2);
  return tag;
}

/** A curve as a formula (ICC.1:2022, 10.18). */
function formula(type: number, ...parameters: number[]): Buffer {
  const tag = Buffer.alloc(12 + parameters.length * 4);
  tag.write('para', 'latin1');
  tag.writeUInt16BE(type, 8);
  for (const [at, value] of parameters.entries()) tag.writeInt32BE(Math.round(value * 65_536), 12 + at * 4);
  return tag;
}

const SRGB_CURVE = [2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.040_45] as const;
const squares = Array.from({ length: 26 }, (_, at) => Math.round((at / 25) ** 2 * 65_535));

/** Curves and primaries of profiles of photos: of colour spaces, phones, cameras and scanners. */
const PHOTO_PROFILES: Readonly<Record<string, readonly [Primaries, Buffer]>> = {
  'Display P3': [WIDE['Display P3'], formula(3, ...SRGB_CURVE)],
  'Adobe RGB': [WIDE['Adobe RGB'], exponentOrSamples(563)],
  'ProPhoto RGB': [PRO_PHOTO, exponentOrSamples(461)],
  'Apple RGB': [APPLE_RGB, exponentOrSamples(461)],
  'an Android phone': [WIDE['Display P3'], formula(4, ...SRGB_CURVE, 0, 0)],
  'a camera with a gamma of 2.2': [WIDE['Adobe RGB'], formula(0, 2.2)],
  'a camera with a table': [
    WIDE['Adobe RGB'],
    sampledCurve([1 / 0.45, 1 / 1.099, 0.099 / 1.099, 1 / 4.5, 0.081]),
  ],
  'a scanner with few samples': [APPLE_RGB, exponentOrSamples(...squares)],
  'linear light': [WIDE['Display P3'], exponentOrSamples()],
};

function photoProfile([primaries, curve]: readonly [Primaries, Buffer]): Buffer {
  const [red, green, blue] = transpose(rgbToXyzD50(primaries));
  const colours = {
    rXYZ: xyz(red),
    gXYZ: xyz(green),
    bXYZ: xyz(blue),
    rTRC: curve,
    gTRC: curve,
    bTRC: curve,
  };
  return writeProfile('A photo', Object.entries(colours));
}

/**
 * A picture of 0.3 megapixels: greys and the edges of each primary, then 216 mixtures of saturated
 * colours.
 */
function colourChart(): Sharp {
  const [width, height] = [640, 480];
  const values = [0, 51, 102, 153, 204, 255];
  const data = Buffer.alloc(width * height * 3);
  for (let at = 0; at < width * height; at += 1) {
    const [x, y] = [at % width, Math.floor(at / width)];
    const ramp = Math.floor((x * 256) / width);
    const patch = Math.floor(x / 32) + Math.floor((y - 160) / 32) * 20;
    const mixed = [patch, Math.floor(patch / 6), Math.floor(patch / 36)].map((step) => values[step % 6]);
    const ramps = [0, 1, 2].map((channel) => (y < 40 || Math.floor(y / 40) === channel + 1 ? ramp : 0));
    data.set((y < 160 ? ramps : mixed) as number[], at * 3);
  }
  return sharp(data, { raw: { width, height, channels: 3 } });
}

/** Creates a profile that a test can change. */
const wideProfile = async (name: keyof typeof WIDE): Promise<Buffer> =>
  Buffer.from(await declaredProfile({ primaries: WIDE[name], transfer: powerCurve(2.2) }));

/**
 * Maximum mean error of lossy results and palettes, of 255. Colours of these profiles that are
 * taken for sRGB are off by more than 5.
 */
const MAX_LOSSY_ERROR = 3;

const ADOBE_RGB = [64_000, 33_000, 21_000, 71_000, 15_000, 6_000] as const;
const mediaTypeOf = (format: string): string => `image/${format === 'jpg' ? 'jpeg' : format}`;

function greyProfile(): Buffer {
  const profile = writeProfile('Linear grey', [['kTRC', sampledCurve([1, 1, 0, 1, 0])]]);
  profile.write('GRAY', 16, 'latin1');
  return profile;
}

const jpegWith = (jpeg: Buffer, profile: Buffer): Buffer => withSegment(jpeg, 0xe2, profileSegment(profile));

const GAIN_MAP_XMP =
  'http://ns.adobe.com/xap/1.0/\0<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">' +
  '<rdf:Description xmlns:hdrgm="http://ns.adobe.com/hdr-gain-map/1.0/" hdrgm:Version="1.0"/></rdf:RDF></x:xmpmeta>';

/**
 * Appends a gain map to a JPEG as phones do, with an index of both images (CIPA DC-007, sections
 * 5.2 and 6.2).
 */
function withGainMap(base: Buffer, gainMap: Buffer): Buffer {
  const index = Buffer.alloc(4 + 8 + 2 + 3 * 12 + 4 + 2 * 16);
  index.write('MPF\0II*\0', 0, 'latin1');
  index.writeUInt32LE(8, 8);
  index.writeUInt16LE(3, 12);
  for (const [at, [tag, type, count, value]] of [
    [0xb000, 7, 4, 0x30303130],
    [0xb001, 4, 1, 2],
    [0xb002, 7, 32, 8 + 2 + 3 * 12 + 4],
  ].entries()) {
    const entry = 14 + at * 12;
    index.writeUInt16LE(tag as number, entry);
    index.writeUInt16LE(type as number, entry + 2);
    index.writeUInt32LE(count as number, entry + 4);
    index.writeUInt32LE(value as number, entry + 8);
  }
  const entries = index.length - 32;
  const described = withSegment(base, 0xe1, Buffer.from(GAIN_MAP_XMP, 'latin1'));
  index.writeUInt32LE(0x030000, entries); // the primary image
  index.writeUInt32LE(described.length + index.length + 4, entries + 4);
  index.writeUInt32LE(gainMap.length, entries + 20);
  index.writeUInt32LE(described.length + index.length + 4 - 10, entries + 24); // from the byte order on
  return Buffer.concat([withSegment(described, 0xe2, index), gainMap]);
}

describe('an image with a profile, beside Chromium,', () => {
  const service = useService();
  const browser = useBrowserDecoder();

  /** A segment of a JPEG with a part of a profile, its number and the number of parts. */
  type Part = readonly [number: number, count: number, part: Buffer];

  async function fileOf(parts: readonly Part[]): Promise<Buffer> {
    const segments = parts.map(([number, count, part]) =>
      Buffer.concat([Buffer.from('ICC_PROFILE\0'), Buffer.of(number, count), part]),
    );
    return segments.reduceRight((jpeg, body) => withSegment(jpeg, 0xe2, body), await jpegOf(opened()));
  }

  it('in parts has the colours that Chromium shows, in any order and if it lacks parts', async () => {
    const whole = await wideProfile('Display P3');
    const [first, second] = [whole.subarray(0, 240), whole.subarray(240)];
    const cases: Readonly<Record<string, readonly [isApplied: boolean, ...parts: Part[]]>> = {
      'in order': [true, [1, 2, first], [2, 2, second]],
      'in another order': [true, [2, 2, second], [1, 2, first]],
      'without the second part': [false, [1, 2, first]],
      'a whole profile that is numbered as the second part': [false, [2, 2, whole]],
      'numbers from 0': [false, [0, 1, whole]],
      'another number of parts': [false, [1, 3, first], [2, 3, second]],
    };
    for (const [what, [isApplied, ...parts]] of Object.entries(cases)) {
      const file = await fileOf(parts);
      const note = isApplied ? ['colour-converted-to-srgb'] : [];
      const { notes, body } = await converted(service.base, file, { format: 'png' });
      expect(notes, what).to.equal(note[0] ?? null);
      const { mae } = difference(await decode(body), await browser.show(file, 'image/jpeg'));
      expect(mae, what).to.be.below(MAX_MEAN_ERROR);
      const { conversion } = await identify(service.base, file, { format: 'png' });
      expect(conversion.notes, what).to.deep.equal(note);
    }
  });

  it('in parts keeps the whole profile on request if they are in another order', async () => {
    const whole = await wideProfile('Display P3');
    const file = await fileOf([
      [2, 2, whole.subarray(240)],
      [1, 2, whole.subarray(0, 240)],
    ]);
    const { body } = await converted(service.base, file, { format: 'webp', strip_metadata: 'false' });
    expect((await sharp(body).metadata()).icc?.equals(whole)).to.equal(true);
  });

  it('of greys looks the same in every format that keeps metadata', async () => {
    const greys = opened().removeAlpha().toColourspace('b-w');
    const [png, jpeg] = [await greys.clone().png().toBuffer(), await greys.clone().jpeg().toBuffer()];
    const mac = withChromaticities(png, [31_270, 32_900, ...ADOBE_RGB], 55_556);
    for (const [file, mediaType] of [
      [withProfileChunk(png, greyProfile()), 'image/png'],
      [jpegWith(jpeg, greyProfile()), 'image/jpeg'],
      [mac, 'image/png'],
    ] as const) {
      const wanted = await browser.show(file, mediaType);
      for (const format of ['png', 'webp', 'jpg']) {
        const fields = { format, quality: '100', strip_metadata: 'false' };
        const { body } = await convert(service.base, file, fields);
        const { mae } = difference(await browser.show(body, mediaTypeOf(format)), wanted);
        expect(mae, format).to.be.below(MAX_MEAN_ERROR);
        const borders = { width: '120', height: '100', fit: 'contain', background: '#ff8000' };
        const bordered = await convert(service.base, file, { ...fields, ...borders });
        const shown = await browser.show(bordered.body, mediaTypeOf(format));
        const [grey = 0] = pixelAt(wanted, 20, 20);
        expect(pixelAt(shown, 20, 30)[0], `${format} in borders`).to.be.closeTo(grey, 3);
        expect(pixelAt(shown, 20, 4)[2], `border of ${format}`).to.be.below(9);
      }
    }
  });

  it('of greys is converted if a JPEG shows the colour of the background', async () => {
    const transparent = opened().toColourspace('b-w').ensureAlpha(0.5);
    const file = withProfileChunk(await transparent.png().toBuffer(), greyProfile());
    const shown = async (strip_metadata: string) => {
      const fields = { format: 'jpg', quality: '100', background: '#ff8000', strip_metadata };
      return browser.show((await convert(service.base, file, fields)).body, 'image/jpeg');
    };
    expect(difference(await shown('false'), await shown('true')).max).to.be.at.most(1);
  });

  it('that states more bytes than it has is ignored, as in Chromium', async () => {
    const profile = Buffer.from(
      await declaredProfile({ primaries: WIDE['Adobe RGB'], transfer: powerCurve(1.4) }),
    );
    profile.writeUInt32BE(profile.length + 4, 0);
    const [jpeg, png, plainWebp] = [await jpegOf(opened()), await opened().png().toBuffer(), opened().webp()];
    const webp = await plainWebp.withIccProfile('p3').toBuffer();
    const stated = webp.indexOf('ICCP') + 8;
    webp.writeUInt32BE(webp.readUInt32BE(stated) + 4, stated);
    for (const [file, mediaType] of [
      [jpegWith(jpeg, profile), 'image/jpeg'],
      [withProfileChunk(png, profile), 'image/png'],
      [webp, 'image/webp'],
    ] as const) {
      const { notes, body } = await converted(service.base, file, { format: 'png' });
      expect(notes, mediaType).to.equal(null);
      const { mae } = difference(await decode(body), await browser.show(file, mediaType));
      expect(mae, mediaType).to.be.below(MAX_MEAN_ERROR);
    }
  });
});

describe('the colours of an image with a profile', () => {
  const own = useServiceWith(ALL_EXTRAS);

  /** Fits an image into the size of another one, as the images of an icon. */
  const containedIn = ({ width, height }: Pixels, { data, ...raw }: Pixels): Promise<Pixels> =>
    toPixels(
      sharp(data, { raw: { ...raw, channels: 4 } }).resize(width, height, {
        fit: 'contain',
        background: '#0000',
      }),
    );
  const FILES: Readonly<Record<string, () => Promise<Buffer>>> = {
    'Display P3 JPEG': async () => jpegWith(await jpegOf(opened()), await wideProfile('Display P3')),
    'JPEG with a profile whose length is not a multiple of 4': async () => {
      const profile = Buffer.concat([await wideProfile('Display P3'), Buffer.of(1, 2, 3)]);
      profile.writeUInt32BE(profile.length);
      return jpegWith(await jpegOf(opened()), profile);
    },
    'Adobe RGB PNG': async () =>
      withProfileChunk(await opened().png().toBuffer(), await wideProfile('Adobe RGB')),
    'Display P3 TIFF': async () => opened().withIccProfile('p3').tiff({ compression: 'lzw' }).toBuffer(),
    'linear grey PNG': async () =>
      withProfileChunk(await opened().removeAlpha().toColourspace('b-w').png().toBuffer(), greyProfile()),
    'linear grey JPEG': async () => jpegWith(await jpegOf(opened().toColourspace('b-w')), greyProfile()),
    'CMYK JPEG': () => opened().toColourspace('cmyk').withIccProfile('cmyk').jpeg({ quality: 95 }).toBuffer(),
  };
  let files: readonly (readonly [what: string, file: Buffer, shown: Pixels])[];
  before(async () => {
    files = await Promise.all(
      Object.entries(FILES).map(async ([what, make]) => {
        const file = await make();
        return [what, file, await decode(file)] as const;
      }),
    );
  });
  /** Formats whose profile sharp reads. */
  const WITH_PROFILE: readonly OutputType[] = ['png', 'jpg', 'webp', 'avif', 'tiff'];
  const profileOf = async (file: Buffer) => (await sharp(file).metadata()).icc;
  for (const format of ALL_OUTPUT_TYPES)
    for (const metadata of ['none', 'copyright', 'all'])
      it(`are the same in ${format} with metadata=${metadata}`, async () => {
        for (const [what, file, shown] of files) {
          const { body } = await converted(own.base, file, {
            format,
            metadata,
            quality: '100',
            lossless: String(format === 'webp'),
          });
          const pixels = await decodeAny(body, format);
          const { mae } = difference(pixels, await containedIn(pixels, shown));
          expect(mae, what).to.be.below(what.startsWith('CMYK') ? 9 : MAX_LOSSY_ERROR);
          if (metadata === 'all' && what.startsWith('Display P3') && WITH_PROFILE.includes(format))
            expect(await profileOf(body), what).to.deep.equal(await profileOf(file));
        }
      });
});

describe('an image with a profile', () => {
  const service = useService();

  const inPng = (image: Sharp): Promise<Buffer> => image.png().toBuffer();
  const CONTAINERS: Readonly<Record<string, (image: Sharp) => Promise<Buffer>>> = {
    PNG: inPng,
    'PNG of 16 bits': (image) => inPng(image.toColourspace('rgb16')),
    JPEG: (image) => image.jpeg({ quality: 98, chromaSubsampling: '4:4:4' }).toBuffer(),
    WebP: (image) => image.webp({ lossless: true }).toBuffer(),
    TIFF: (image) => image.tiff({ compression: 'lzw' }).toBuffer(),
    AVIF: (image) => image.avif({ quality: 95, chromaSubsampling: '4:4:4' }).toBuffer(),
    'PNG in an icon': async (image) => {
      const file = ico([{ side: WIDTH, bytes: await inPng(image) }]);
      file[7] = HEIGHT;
      return file;
    },
  };
  for (const [container, encode] of Object.entries(CONTAINERS))
    it(`of Display P3 in a ${container} is converted to sRGB`, async () => {
      const file = await encode(opened().withIccProfile('p3'));
      const { body } = await converted(service.base, file, { format: 'png' });
      expect(difference(await decode(body), scene()).mae).to.be.below(1); // taken for sRGB: above 5
      if (container.includes('16 bits')) expect((await sharp(body).metadata()).depth).to.equal('ushort');
    });

  it('has the colours of Little CMS in a small picture, for which tables are not interpolated', async () => {
    for (const profile of Object.values(PHOTO_PROFILES).map(photoProfile)) {
      const chart = await colourChart()
        .extract({ left: 0, top: 0, width: 320, height: 240 })
        .png()
        .toBuffer();
      const file = withProfileChunk(chart, profile);
      const { body } = await converted(service.base, file, { format: 'webp', lossless: 'true' });
      const { mae, max } = difference(await decode(body), await decode(file));
      expect([mae, max], `${mae} in the mean, ${max} at most`).to.satisfy(() => mae < 0.3 && max <= 3);
    }
  });

  for (const [name, profile] of Object.entries(PHOTO_PROFILES))
    it(`of ${name} has the colours of Little CMS`, async () => {
      const file = withProfileChunk(await colourChart().png().toBuffer(), photoProfile(profile));
      const fields = { format: 'webp', lossless: 'true' };
      const { body, notes } = await converted(service.base, file, fields);
      expect(notes).to.equal('colour-converted-to-srgb');
      const { mae, max } = difference(await decode(body), await decode(file));
      expect([mae, max], `${mae} in the mean, ${max} at most`).to.satisfy(() => mae < 0.2 && max <= 3);
    });

  it('of curves and a matrix has the colours of Little CMS in every format of photos', async () => {
    const profile = photoProfile(PHOTO_PROFILES['Adobe RGB'] as readonly [Primaries, Buffer]);
    const own = (await sharp(await opened().withIccProfile('p3').png().toBuffer()).metadata()).icc;
    const chart = colourChart().withIccProfile('p3');
    for (const [what, file] of [
      ['JPEG', jpegWith(await colourChart().jpeg({ quality: 95 }).toBuffer(), profile)],
      ['WebP', await chart.clone().webp({ lossless: true }).toBuffer()],
      ['TIFF', await chart.clone().tiff({ compression: 'lzw' }).toBuffer()],
      ['AVIF', await chart.clone().avif({ quality: 95 }).toBuffer()],
    ] as const) {
      const { body } = await converted(service.base, file, { format: 'webp', lossless: 'true' });
      expect(difference(await decode(body), await decode(file)).mae, what).to.be.below(1);
      const kept = await converted(service.base, file, { format: 'webp', strip_metadata: 'false' });
      expect((await sharp(kept.body).metadata()).icc, what).to.deep.equal(what === 'JPEG' ? profile : own);
    }
  });

  it('of greys keeps its colours if the pixels are RGB', async () => {
    const image = opened().withIccProfile('p3');
    for (const file of [
      await image.clone().jpeg({ quality: 100, chromaSubsampling: '4:4:4' }).toBuffer(),
      await image.clone().webp({ lossless: true }).toBuffer(),
      await image.clone().tiff({ compression: 'lzw' }).toBuffer(),
    ]) {
      file.write('GRAY', file.indexOf('RGB XYZ '), 'latin1');
      file.write('kTRC', file.indexOf('rTRC'), 'latin1');
      const { notes, body } = await converted(service.base, file, { format: 'png' });
      expect(notes).to.equal(null);
      const stored = await decode(file);
      expect(difference(await decode(body), stored).mae).to.be.below(MAX_MEAN_ERROR);
    }
  });

  it('in a PNG has the same effect as in sharp if it is of another kind or has wrong lengths', async () => {
    const rgb = await opened().png().toBuffer();
    const grey = await opened().toColourspace('b-w').png().toBuffer();
    const wide = (await sharp(await opened().withIccProfile('p3').png().toBuffer()).metadata()).icc as Buffer;
    const { length } = wide;
    const stating = (bytes: number): Buffer => {
      const profile = Buffer.from(wide);
      profile.writeUInt32BE(bytes, 0);
      return profile;
    };
    const lab = Buffer.from(wide);
    lab.write('Lab ', 16, 'latin1');
    const palette = await opened().png({ palette: true }).toBuffer();
    const files: [string, Buffer][] = [
      ['a profile of greys', withProfileChunk(rgb, greyProfile())],
      ['a profile of colours in a greyscale PNG', withProfileChunk(grey, wide)],
      ['a profile of CIELab', withProfileChunk(rgb, lab)],
      ['a profile of CIELab in a greyscale PNG', withProfileChunk(grey, lab)],
      ['a profile of greys in a palette', withProfileChunk(palette, greyProfile())],
    ];
    for (const profile of [
      ...[0, -4, -3, 4].map((more) => stating(length + more)),
      wide.subarray(0, length - 20),
      wide.subarray(0, 100),
      Buffer.concat([wide, Buffer.alloc(7)]),
    ])
      files.push([
        `${profile.length} bytes that state ${profile.readUInt32BE()}`,
        withProfileChunk(rgb, profile),
      ]);
    for (const [what, file] of files) {
      const isApplied = (await sharp(file).metadata()).icc !== undefined;
      const { notes, body } = await converted(service.base, file, { format: 'png' });
      expect(notes, what).to.equal(isApplied ? 'colour-converted-to-srgb' : null);
      expect(difference(await decode(body), await decode(file)).mae, what).to.be.below(MAX_MEAN_ERROR);
    }
  });

  it('whose primaries are the same is ignored in every format, and is not kept', async () => {
    const steps = Buffer.alloc(32 * 32 * 3);
    for (const at of steps.keys()) steps[at] = Math.floor((at % 96) / 3) * 8;
    const image = sharp(steps, { raw: { width: 32, height: 32, channels: 3 } }).withIccProfile('p3');
    const { icc = Buffer.alloc(0) } = await sharp(await image.clone().png().toBuffer()).metadata();
    const files = {
      jpg: withoutPrimaries(
        await image.clone().jpeg({ quality: 100, chromaSubsampling: '4:4:4' }).toBuffer(),
      ),
      png: withProfileChunk(
        withoutChunk(await image.clone().png().toBuffer(), 'iCCP'),
        withoutPrimaries(icc),
      ),
      tiff: withoutPrimaries(await image.clone().tiff({ compression: 'lzw' }).toBuffer()),
      webp: withoutPrimaries(await image.clone().webp({ lossless: true }).toBuffer()),
      avif: withoutPrimaries(
        await image.clone().avif({ quality: 100, chromaSubsampling: '4:4:4' }).toBuffer(),
      ),
    };
    for (const [type, file] of Object.entries(files)) {
      for (const strip_metadata of ['true', 'false']) {
        const { status, message, body } = await convert(service.base, file, {
          format: 'png',
          strip_metadata,
        });
        expect(status, `${type}: ${message}`).to.equal(200);
        expect((await sharp(body).metadata()).icc, type).to.equal(undefined);
        const shown = await decode(body);
        for (const column of [2, 16, 30])
          for (const value of pixelAt(shown, column, 16).slice(0, 3))
            expect(value, `${type}, column ${column}`).to.be.closeTo(column * 8, 2);
      }
    }
  });

  it('that is a JPEG with an HDR gain map is converted without it, also if metadata is kept', async () => {
    const base = await jpegOf(opened());
    const gainMap = await opened().greyscale().resize(30, 20).jpeg().toBuffer();
    const file = withGainMap(base, gainMap);
    for (const [format, strip] of [
      ['png', 'true'],
      ['jpg', 'true'],
      ['jpg', 'false'],
    ] as const) {
      const fields = { format, quality: '100', strip_metadata: strip };
      const { notes, body } = await converted(service.base, file, fields);
      expect(notes).to.equal('hdr-removed');
      expect(difference(await decode(body), await decode(base)).psnr).to.be.at.least(40);
      const starts = body.toString('latin1').split('\xff\xd8\xff').length - 1;
      expect(starts, 'images in the file').to.equal(format === 'jpg' ? 1 : 0);
      expect(body.includes('MPF\0'), 'an index of several images').to.equal(false);
      expect(body.includes('hdrgm:Version')).to.equal(false);
    }
  });
});
