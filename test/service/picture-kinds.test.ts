/** @module Kinds of pictures that public test suites have, generated here: TIFF by libtiff, GIF disposal, and colour profiles. */
import { expect } from 'chai';
import sharp, { type Sharp, type TiffOptions } from 'sharp';
import { avif } from '../../scripts/fixtures/edge-case.ts';
import { scene } from '../../scripts/fixtures/scene.ts';
import { ico, tiff } from '../../scripts/fixtures/writers.ts';
import { convert, expectSuccess } from '../helpers/client.ts';
import { composedFrames, gifWithDisposal } from '../helpers/gif-disposal.ts';
import { decode, difference, type Pixels, toPixels } from '../helpers/pixels.ts';
import { useService } from '../helpers/service.ts';

const { width, height, data } = scene();
const rgb = (): Sharp => sharp(data, { raw: { width, height, channels: 4 } }).removeAlpha();
/** Minimum PSNR in dB of files that libjpeg or another decoder may round in another way. */
const LOSSY = 40;

/** Pictures that libtiff writes, by what they store. */
const SAMPLES: Readonly<Record<string, () => Sharp>> = {
  colours: rgb,
  'colours with alpha': () => sharp(data, { raw: { width, height, channels: 4 } }).ensureAlpha(0.5),
  greys: () => rgb().greyscale(),
  'greys of 16 bits': () => rgb().toColourspace('grey16'),
  'colours of 16 bits': () => rgb().toColourspace('rgb16'),
};
const COMPRESSIONS: readonly TiffOptions[] = [
  { compression: 'none' },
  { compression: 'lzw', predictor: 'none' },
  { compression: 'lzw', predictor: 'horizontal' },
  { compression: 'deflate', predictor: 'horizontal' },
  { compression: 'packbits' },
  { compression: 'none', tile: true, tileWidth: 32, tileHeight: 16 },
  { compression: 'deflate', predictor: 'horizontal', tile: true, tileWidth: 64, tileHeight: 64 },
  { compression: 'none', bigtiff: true },
];

/** Reverses the byte order of an uncompressed TIFF with 8-bit samples, of which all values have 1, 2 or 4 bytes. */
function bigEndian(file: Buffer): Buffer {
  const swapped = Buffer.from(file);
  swapped.write('MM', 0, 'latin1');
  swapped.subarray(2, 4).swap16();
  swapped.subarray(4, 8).swap32();
  const count = file.readUInt16LE(8);
  swapped.subarray(8, 10).swap16();
  for (let at = 10; at < 10 + count * 12; at += 12) {
    const [type, values] = [file.readUInt16LE(at + 2), file.readUInt32LE(at + 4)];
    swapped.subarray(at, at + 4).swap16();
    swapped.subarray(at + 4, at + 8).swap32();
    if (type === 4) swapped.subarray(at + 8, at + 12).swap32();
    else if (values <= 2) swapped.subarray(at + 8, at + 12).swap16();
    else {
      const list = file.readUInt32LE(at + 8);
      swapped.subarray(list, list + values * 2).swap16();
      swapped.subarray(at + 8, at + 12).swap32();
    }
  }
  return swapped;
}

/** Properties of a rotation by quarter turns anticlockwise, and of an exchange of top and bottom (0) or left and right (1). */
interface Rotation {
  readonly irot: 0 | 1 | 2 | 3;
  readonly imir: 0 | 1 | undefined;
}

/** Encodes a transparent picture as an AVIF whose rotation only the colours have, as libavif writes it. */
async function rotatedAvif({ irot, imir }: Rotation): Promise<Buffer> {
  const png = await transparent().png().toBuffer();
  return avif([png], ['--irot', `${irot}`, ...(imir === undefined ? [] : ['--imir', `${imir}`])]);
}

/** Swaps the two last properties of the first item of an AVIF. */
function mirroredFirst(file: Buffer): Buffer {
  const swapped = Buffer.from(file);
  const at = swapped.indexOf('ipma') + 12; // after version, flags, the number of items, and the ID of the first
  const last = at + 2 + (swapped[at + 2] as number);
  return swapped.fill(Buffer.of(swapped[last] as number, swapped[last - 1] as number), last - 1, last + 1);
}

const transparent = (): Sharp =>
  sharp(scene({ transparent: true }).data, { raw: { width, height, channels: 4 } });
const turned = async (image: Sharp, quarters: number): Promise<Sharp> =>
  sharp(await image.png().toBuffer()).rotate(((4 - quarters) % 4) * 90);
const mirrored = async (image: Sharp, axis: 0 | 1 | undefined): Promise<Sharp> => {
  const copy = sharp(await image.png().toBuffer());
  return axis === undefined ? copy : axis === 0 ? copy.flip() : copy.flop();
};

describe('the picture', () => {
  const service = useService();

  async function converted(file: Buffer, format: string): Promise<Pixels> {
    const { body } = await expectSuccess(convert(service.base, file, { format, lossless: 'true' }));
    return decode(body);
  }

  for (const [what, make] of Object.entries(SAMPLES)) {
    for (const options of COMPRESSIONS) {
      it(`of a TIFF with ${what} and ${JSON.stringify(options)} is what libvips shows`, async () => {
        const file = await make().tiff(options).toBuffer();
        expect(difference(await converted(file, 'png'), await decode(file)).max).to.be.at.most(1);
      });
    }
  }

  for (const bitdepth of [1, 2, 4] as const) {
    for (const compression of bitdepth === 1
      ? (['none', 'ccittfax4', 'lzw'] as const)
      : (['none', 'lzw'] as const)) {
      it(`of a TIFF of ${bitdepth} bits per pixel with ${compression} is what libvips shows`, async () => {
        const file = await rgb()
          .greyscale()
          .toColourspace('b-w')
          .tiff({ bitdepth, compression, predictor: 'none' })
          .toBuffer();
        expect(difference(await converted(file, 'png'), await decode(file)).max).to.be.at.most(1);
      });
    }
  }

  for (const tile of [false, true]) {
    it(`of a TIFF with JPEG compression in ${tile ? 'tiles' : 'strips'} is what libvips shows`, async () => {
      const file = await rgb().tiff({ compression: 'jpeg', quality: 90, tile }).toBuffer();
      expect(difference(await converted(file, 'png'), await decode(file)).psnr).to.be.at.least(LOSSY);
    });
  }

  it('of a TIFF in big-endian byte order is what was stored', async () => {
    const strip = await rgb().raw().toBuffer();
    const tags = { 256: width, 257: height, 258: [8, 8, 8], 262: 2, 277: 3, 278: height };
    const file = bigEndian(tiff([{ tags, strip }]));
    expect(difference(await converted(file, 'png'), scene()).max).to.equal(0);
  });

  // Disposal 2 leaves transparent pixels, which decoders show in different ways. test/web/ compares it with Chromium.
  for (const first of [0, 1, 3]) {
    for (const second of [0, 1, 3]) {
      it(`of a GIF with the disposal methods ${first} and ${second} is the same in each frame`, async () => {
        const shown = composedFrames(first, second);
        expect(difference(await converted(gifWithDisposal(first, second), 'webp'), shown).max).to.equal(0);
        expect(difference(await converted(gifWithDisposal(first, second), 'gif'), shown).max).to.equal(0);
      });
    }
  }

  it('of a GIF frame without a control extension stays, although an earlier frame is disposed of', async () => {
    const [file, shown] = [gifWithDisposal(3, 'none'), composedFrames(3, 'none')];
    expect(difference(await converted(file, 'webp'), shown).max).to.equal(0);
    expect(difference(await converted(file, 'gif'), shown).max).to.equal(0);
  });

  for (const irot of [0, 1, 2, 3] as const) {
    for (const imir of [undefined, 0, 1] as const) {
      it(`of a transparent AVIF with irot ${irot} and imir ${imir} is rotated and mirrored with its alpha`, async () => {
        const shown = await toPixels(await mirrored(await turned(transparent(), irot), imir));
        expect(difference(await converted(await rotatedAvif({ irot, imir }), 'png'), shown).psnr).to.be.above(
          50,
        );
      });
    }
  }

  it('of a transparent AVIF that lists imir before irot is mirrored and then rotated', async () => {
    const file = mirroredFirst(await rotatedAvif({ irot: 1, imir: 0 }));
    const shown = await toPixels(await turned(await mirrored(transparent(), 0), 1));
    expect(difference(await converted(file, 'png'), shown).psnr).to.be.above(50);
  });

  const inPng = (image: Sharp): Promise<Buffer> => image.png().toBuffer();
  const containers: Readonly<Record<string, (image: Sharp) => Promise<Buffer>>> = {
    PNG: inPng,
    'PNG of 16 bits': (image) => inPng(image.toColourspace('rgb16')),
    JPEG: (image) => image.jpeg({ quality: 98, chromaSubsampling: '4:4:4' }).toBuffer(),
    WebP: (image) => image.webp({ lossless: true }).toBuffer(),
    TIFF: (image) => image.tiff({ compression: 'lzw' }).toBuffer(),
    AVIF: (image) => image.avif({ quality: 95, chromaSubsampling: '4:4:4' }).toBuffer(),
    'PNG in an icon': async (image) => {
      const file = ico([{ side: width, bytes: await inPng(image) }]);
      file[7] = height;
      return file;
    },
  };
  for (const [container, encode] of Object.entries(containers)) {
    for (const profile of ['p3', 'srgb']) {
      it(`of a ${container} with the ICC profile ${profile} has the colours of sRGB`, async () => {
        const file = await encode(rgb().withIccProfile(profile));
        const { mae } = difference(await converted(file, 'png'), scene());
        expect(mae).to.be.below(1); // Display P3 taken for sRGB: above 5
      });
    }
  }
});
