// @full: all defects and harmless changes in two sizes
// @slow
/**
 * @module Defects that a comparison must find, and changes that it must not report, each in a small
 * and a large image: neither verdict depends on the size of the frame.
 */
import { expect } from 'chai';
import sharp, { type Sharp } from 'sharp';
import { open } from '../../scripts/fixtures/scene.ts';
import { comparePixels, metadataReasons } from '../../src/regress/compare-images.ts';
import { decode } from '../../src/regress/image/codec.ts';
import { clearHidden, type DecodedImage, type Raster } from '../../src/regress/image/image.ts';
import { defaultThresholds } from '../../src/regress/thresholds.ts';
import { verify } from '../../src/regress/verify.ts';
import { madePhotos } from '../helpers/made-photos.ts';
import { image, pixel, redrawn, shifted } from './images.ts';

const SIZES = [
  [120, 80],
  [900, 600],
] as const;

const clamp = (value: number): number => Math.max(0, Math.min(255, Math.round(value)));

async function toRaster(edited: Sharp): Promise<Raster> {
  const { data, info } = await edited.ensureAlpha().raw().toBuffer({ resolveWithObject: true });
  return { width: info.width, height: info.height, data };
}

type Edit = (raster: Raster) => Raster | Promise<Raster>;

/** Changes every pixel by its channels. */
const recoloured =
  (colour: (red: number, green: number, blue: number) => readonly number[]): Edit =>
  (raster) =>
    redrawn(raster, (x, y) => {
      const [red = 0, green = 0, blue = 0, alpha = 255] = pixel(raster, x, y);
      return [...colour(red, green, blue).map(clamp), alpha];
    });

/** Changes the pixels of a square whose upper left corner is in the lower right part. */
const spot =
  (side: number, colour: (x: number, y: number, raster: Raster) => readonly number[]): Edit =>
  (raster) => {
    const [left, top] = [Math.floor(raster.width * 0.6), Math.floor(raster.height * 0.6)];
    return redrawn(raster, (x, y) => colour(x, y, raster), { left, top, width: side, height: side });
  };

const filtered =
  (edit: (image: Sharp, raster: Raster) => Sharp): Edit =>
  (raster) =>
    toRaster(edit(open(raster), raster));

/** Moves each pixel. The function returns the place that a pixel comes from. */
const moved =
  (from: (x: number, y: number, raster: Raster) => readonly [number, number]): Edit =>
  (raster) =>
    redrawn(raster, (x, y) => {
      const [left, top] = from(x, y, raster);
      const inside = (at: number, side: number) => Math.min(side - 1, Math.max(0, at));
      return pixel(raster, inside(left, raster.width), inside(top, raster.height));
    });

const BLACK = [0, 0, 0, 255];
const inverted = (x: number, y: number, raster: Raster): number[] =>
  pixel(raster, x, y).map((value, at) => (at < 3 ? 255 - value : value));

/** Defects of a picture without transparency, each with the formats in which it must be found. */
const LOSSLESS_ONLY = ['png'] as const;
const EVERYWHERE = ['png', 'jpg', 'webp', 'gif'] as const;
const DEFECTS: Readonly<Record<string, readonly [Edit, readonly (typeof EVERYWHERE)[number][]]>> = {
  'a black dot of 4 × 4 pixels': [spot(4, () => BLACK), LOSSLESS_ONLY],
  'a faint dot of 4 × 4 pixels': [
    spot(4, (x, y, raster) => pixel(raster, x, y).map((value, at) => (at < 3 ? value ^ 8 : value))),
    LOSSLESS_ONLY,
  ],
  'an inverted dot of 2 × 2 pixels': [spot(2, inverted), LOSSLESS_ONLY],
  'a red line of one pixel': [
    spot(20, (x, y, raster) =>
      x === Math.floor(raster.width * 0.6) ? [255, 0, 0, 255] : pixel(raster, x, y),
    ),
    LOSSLESS_ONLY,
  ],
  'a black block of 16 × 16 pixels': [spot(16, () => BLACK), EVERYWHERE],
  'a block without blue': [
    spot(16, (x, y, raster) => pixel(raster, x, y).map((value, at) => (at === 2 ? 0 : value))),
    ['png', 'gif'],
  ],
  'a block moved by two pixels': [spot(16, (x, y, raster) => pixel(raster, x - 2, y)), LOSSLESS_ONLY],
  'a row missing': [moved((x, y, { height }) => [x, y > height / 2 ? y - 1 : y]), LOSSLESS_ONLY],
  'the last sixteen rows grey': [
    (raster) =>
      redrawn(raster, (x, y) => (y >= raster.height - 16 ? [128, 128, 128, 255] : pixel(raster, x, y))),
    EVERYWHERE,
  ],
  'a blur': [filtered((shown) => shown.blur(0.8)), LOSSLESS_ONLY],
  'a strong blur': [filtered((shown) => shown.blur(4)), EVERYWHERE],
  'a sharper image': [filtered((shown) => shown.sharpen()), LOSSLESS_ONLY],
  'an image resized twice': [
    async (raster) => {
      const { width, height } = raster;
      const narrower = await toRaster(open(raster).resize(width - 1, height, { fit: 'fill' }));
      return toRaster(open(narrower).resize(width, height, { fit: 'fill' }));
    },
    LOSSLESS_ONLY,
  ],
  noise: [
    (raster) =>
      redrawn(raster, (x, y) =>
        pixel(raster, x, y).map((value, at) => (at < 3 ? clamp(value + ((x * 7 + y * 13) % 11) - 5) : value)),
      ),
    LOSSLESS_ONLY,
  ],
  'too few levels': [
    recoloured((...colour) => colour.map((value) => Math.floor(value / 16) * 16)),
    EVERYWHERE,
  ],
  'two levels lighter': [recoloured((...colour) => colour.map((value) => value + 2)), LOSSLESS_ONLY],
  lighter: [recoloured((...colour) => colour.map((value) => value + 12)), EVERYWHERE],
  'a hue turned by 1.8°': [filtered((shown) => shown.modulate({ hue: 2 })), LOSSLESS_ONLY],
  'a hue turned by 25°': [filtered((shown) => shown.modulate({ hue: 25 })), EVERYWHERE],
  'no colour': [recoloured((red, green, blue) => Array(3).fill((red + green + blue) / 3)), EVERYWHERE],
  'another gamma': [
    recoloured((...colour) => colour.map((value) => 255 * (value / 255) ** 0.85)),
    EVERYWHERE,
  ],
  'red and blue exchanged': [recoloured((red, green, blue) => [blue, green, red]), EVERYWHERE],
  'a warmer white': [recoloured((red, green, blue) => [red + 8, green, blue - 8]), EVERYWHERE],
  'a corner with a tint': [
    (raster) =>
      redrawn(raster, (x, y) => {
        const [red = 0, ...rest] = pixel(raster, x, y);
        return [x < raster.width / 2 && y < raster.height / 2 ? clamp(red + 16) : red, ...rest];
      }),
    ['png', 'jpg', 'webp'],
  ],
  'a shift by a pixel': [(raster) => shifted(raster, 1), LOSSLESS_ONLY],
  'a shift by eight pixels': [(raster) => shifted(raster, 8), EVERYWHERE],
  'a mirrored image': [filtered((shown) => shown.flop()), EVERYWHERE],
  'one column fewer': [
    filtered((shown, { width, height }) => shown.extract({ left: 0, top: 0, width: width - 1, height })),
    EVERYWHERE,
  ],
};

/** Makes a disc in the middle transparent, with a soft edge. */
const withDisc: Edit = (raster) =>
  redrawn(raster, (x, y) => {
    const radius = Math.hypot(x - raster.width / 2, y - raster.height / 2);
    return [...pixel(raster, x, y).slice(0, 3), clamp((radius - raster.height / 4) * 32)];
  });
const withAlpha =
  (alpha: (value: number, x: number, y: number) => number): Edit =>
  (raster) =>
    redrawn(raster, (x, y) => {
      const [red = 0, green = 0, blue = 0, value = 0] = pixel(raster, x, y);
      return [red, green, blue, clamp(alpha(value, x, y))];
    });
const ALPHA_DEFECTS: Readonly<Record<string, Edit>> = {
  'transparency lost': withAlpha(() => 255),
  'transparency of a tenth': withAlpha((value) => value * 0.9),
  'a hard edge': withAlpha((value) => (value < 128 ? 0 : 255)),
  'a hole of 4 × 4 pixels': withAlpha((value, x, y) => (x < 4 && y < 4 ? 0 : value)),
  'inverted transparency': withAlpha((value) => 255 - value),
};

interface Moving {
  readonly frames: readonly Raster[];
  readonly delays: readonly number[];
  readonly plays: number;
}
const TIMING_DEFECTS: Readonly<Record<string, (moving: Moving) => Moving>> = {
  'a delay of 10 ms more': (moving) => ({ ...moving, delays: [100, 50, 70] }),
  'another number of repetitions': (moving) => ({ ...moving, plays: 1 }),
  'a frame missing': ({ frames, plays }) => ({ frames: frames.slice(1), delays: [40, 70], plays }),
  'exchanged frames': ({ frames: [first, ...rest], ...moving }) => ({
    ...moving,
    frames: [...rest.toReversed(), first as Raster],
  }),
  'a dot in the last frame': ({ frames, ...moving }) => ({
    ...moving,
    frames: frames.with(
      2,
      redrawn(frames[2] as Raster, (x, y) => (x < 4 && y < 4 ? BLACK : pixel(frames[2] as Raster, x, y))),
    ),
  }),
};

type Format = 'png' | 'jpg' | 'webp' | 'gif' | 'avif' | 'tiff';

function verdict(before: DecodedImage, after: DecodedImage, format: Format): string {
  const reasons = metadataReasons(before.facts, after.facts);
  const found = comparePixels(before, after, reasons, defaultThresholds({ format }));
  return `${found.verdict} ${found.reasons.map(({ text }) => text).join('; ')}`;
}

type Encode = (shown: Sharp) => Sharp;
const ENCODERS: Readonly<Record<Format, Encode>> = {
  png: (shown) => shown.png(),
  jpg: (shown) => shown.removeAlpha().jpeg(),
  webp: (shown) => shown.webp(),
  gif: (shown) => shown.gif({ dither: 0 }),
  avif: (shown) => shown.avif({ quality: 60, effort: 2 }),
  tiff: (shown) => shown.tiff({ compression: 'deflate' }),
};

async function encoded(raster: Raster, format: Format, encode = ENCODERS[format]): Promise<DecodedImage> {
  return decode(await encode(open(raster)).toBuffer(), format);
}

const photos = new Map<number, Raster>();
const photo = (width: number): Raster => photos.get(width) as Raster;
const encodings = new Map<string, Promise<DecodedImage>>();
/** Encodes the photo of a width once for each format. */
function encodedPhoto(width: number, format: Format): Promise<DecodedImage> {
  const key = `${width} ${format}`;
  const made = encodings.get(key) ?? encoded(photo(width), format);
  encodings.set(key, made);
  return made;
}
/** Makes the photos once for all suites. */
async function makePhotos(): Promise<void> {
  if (photos.size > 0) return;
  for (const [width, height] of SIZES) photos.set(width, (await madePhotos(width, height, 1))[0] as Raster);
}

describe('planted defects', () => {
  before(makePhotos);

  for (const [name, [edit, formats]] of Object.entries(DEFECTS)) {
    it(`of a picture are found in every size: ${name}`, async () => {
      for (const [width] of SIZES) {
        const defective = await edit(photo(width));
        for (const format of formats) {
          const [before, after] =
            format === 'png'
              ? [image([photo(width)]), image([defective])]
              : [await encodedPhoto(width, format), await encoded(defective, format)];
          expect(verdict(before, after, format), `${format} of ${width} pixels`).to.match(/^changed/);
        }
      }
    });
  }

  describe('in a JPEG that is large enough to be reduced for its verification', () => {
    const OPTIONS = { format: 'jpg', quality: 80, metadata: 'none' } as const;
    let large: Raster;
    let source: Buffer;
    const judge = async (result: Buffer) => verify('visual', 'jpg', source, result, OPTIONS);
    before(async () => {
      large = (await madePhotos(2500, 1700, 1))[0] as Raster;
      source = await open(large).removeAlpha().jpeg({ quality: 92 }).toBuffer();
    });

    it('do not exist in a sound result, which is compared reduced', async () => {
      const sound = await judge(await ENCODERS.jpg(open(large)).toBuffer());
      expect(sound).to.include({ passed: true, reduction: 4 });
      const small = await ENCODERS.jpg(open(photo(900))).toBuffer();
      expect(await verify('visual', 'jpg', small, small, OPTIONS)).to.not.have.property('reduction');
    });

    it('are found if only the EXIF orientation turns the result upright', async () => {
      const turned = await open(large).rotate(270).removeAlpha().jpeg({ quality: 92 }).toBuffer();
      const tagged = await sharp(turned).withMetadata({ orientation: 6 }).jpeg({ quality: 92 }).toBuffer();
      expect(await judge(tagged)).to.include({ passed: false });
    });

    for (const name of [
      'a black block of 16 × 16 pixels',
      'a faint dot of 4 × 4 pixels',
      'a strong blur',
      'a blur',
      'a hue turned by 25°',
      'a corner with a tint',
      'two levels lighter',
      'one column fewer',
    ]) {
      const [edit, formats] = DEFECTS[name] as (typeof DEFECTS)[string];
      it(`are found as in the whole image: ${name}`, async () => {
        const result = await ENCODERS.jpg(open(await edit(large))).toBuffer();
        const { passed } = await judge(result);
        if (formats.includes('jpg')) expect(passed).to.equal(false);
        const [whole, found] = [await decode(source, 'jpg'), await decode(result, 'jpg')];
        expect(passed).to.equal(verdict(whole, found, 'jpg').startsWith('similar'));
      });
    }
  });

  for (const [name, edit] of Object.entries(ALPHA_DEFECTS)) {
    it(`of transparency are found in every size: ${name}`, async () => {
      for (const [width] of SIZES) {
        const sound = await withDisc(photo(width));
        const both = [sound, await edit(sound)].map((one) => {
          clearHidden(one.data);
          return image([one], { alpha: true });
        }) as [DecodedImage, DecodedImage];
        expect(verdict(...both, 'png'), `${width} pixels`).to.match(/^changed/);
      }
    });
  }

  for (const [name, edit] of Object.entries(TIMING_DEFECTS)) {
    it(`of an animation are found in every size: ${name}`, () => {
      for (const [width] of SIZES) {
        const frames = [0, 1, 2].map((by) => shifted(photo(width), by));
        const moving = { frames, delays: [100, 40, 70], plays: 0 };
        const [before, after] = [moving, edit(moving)].map(({ frames: shown, ...facts }) =>
          image(shown, facts),
        ) as [DecodedImage, DecodedImage];
        expect(verdict(before, after, 'png'), `${width} pixels`).to.match(/^changed/);
      }
    });
  }
});

const tiles = (side: number) => ({ compression: 'lzw', tile: true, tileWidth: side, tileHeight: side });
/**
 * Options of sharp that encode the same picture in another way, with differences that are not
 * visible, by format.
 */
const HARMLESS_OPTIONS: Readonly<Record<Format, readonly object[]>> = {
  png: [
    ...[0, 3, 6, 9].map((compressionLevel) => ({ compressionLevel })),
    { adaptiveFiltering: true },
    { progressive: true },
  ],
  tiff: [
    ...['none', 'lzw', 'packbits', 'deflate'].map((compression) => ({ compression })),
    ...[256, 64].map(tiles),
    { compression: 'deflate', predictor: 'horizontal' },
    { compression: 'lzw', xres: 10, yres: 10 },
  ],
  jpg: [
    { mozjpeg: true },
    { progressive: true },
    { progressive: true, optimiseScans: true },
    { optimiseCoding: false },
    { trellisQuantisation: true },
    { overshootDeringing: true },
    ...[79, 81, 82].map((quality) => ({ quality })),
  ],
  webp: [
    ...[0, 2, 5, 6].map((effort) => ({ effort })),
    ...[79, 81, 82].map((quality) => ({ quality })),
    { smartSubsample: true },
    { smartDeblock: true },
  ],
  gif: [...[0.25, 0.5, 0.75, 1].map((dither) => ({ dither })), { dither: 0, progressive: true }],
  avif: [
    { quality: 60, effort: 3 },
    { quality: 60, effort: 2, bitdepth: 8 },
  ],
};

/** Changes of pixels in results without loss that rounding and antialiasing cause. */
const HARMLESS_EDITS: Readonly<Record<string, Edit>> = {
  'the last bit of red': recoloured((red, ...rest) => [red ^ 1, ...rest]),
  'one level, in a pattern': (raster) =>
    redrawn(raster, (x, y) =>
      pixel(raster, x, y).map((value, at) => (at < 3 ? clamp(value + ((x + y) % 3) - 1) : value)),
    ),
  'one black pixel': spot(1, () => BLACK),
  'three pixels of an edge': spot(3, (x, y, raster) =>
    y === Math.floor(raster.height * 0.6) ? BLACK : pixel(raster, x, y),
  ),
};

describe('harmless changes', () => {
  before(makePhotos);

  for (const format of Object.keys(ENCODERS) as Format[]) {
    it(`of an encoder are not reported: ${format}`, async () => {
      const type = format === 'jpg' ? 'jpeg' : format;
      for (const [width] of SIZES.slice(0, format === 'avif' ? 1 : 2)) {
        const before = await encodedPhoto(width, format);
        for (const options of HARMLESS_OPTIONS[format]) {
          const encode: Encode = (shown) =>
            (format === 'jpg' ? shown.removeAlpha() : shown).toFormat(type, options);
          const after = await encoded(photo(width), format, encode);
          const what = `${JSON.stringify(options)} of ${width} pixels`;
          expect(verdict(before, after, format), what).to.match(/^(same|similar)/);
        }
      }
    });
  }

  it('of an alpha channel without transparency are not reported', async () => {
    for (const [width] of SIZES) {
      const without = await encoded(photo(width), 'png', (shown) => shown.removeAlpha().png());
      const found = verdict(await encodedPhoto(width, 'png'), without, 'png');
      expect(found, `${width} pixels`).to.match(/^(same|similar)/);
    }
  });

  for (const [name, edit] of Object.entries(HARMLESS_EDITS)) {
    it(`of pixels are not reported: ${name}`, async () => {
      for (const [width] of SIZES) {
        const after = await edit(photo(width));
        expect(verdict(image([photo(width)]), image([after]), 'png'), `${width} pixels`).to.match(/^similar/);
      }
    });
  }
});
