// @full: the kinds of public test suites
// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
/**
 * @module Converts the kinds of PNG that PngSuite has, generated here, and compares the result with
 * the encoded pixels.
 */
import { deflateSync } from 'node:zlib';
import { expect } from 'chai';
import { open, scene } from '../../scripts/fixtures/scene.ts';
import { PNG_SIGNATURE, pngChunk } from '../../src/images/png/png-writer.ts';
import { convert, converted, fixture } from '../helpers/client.ts';
import { decode, difference, type Pixels } from '../helpers/pixels.ts';
import { useService } from '../helpers/service.ts';

const SIDE = 16;
/** Number in the header, samples per pixel, and bits per sample. */
const TYPES = {
  grey: { id: 0, channels: 1, depths: [1, 2, 4, 8, 16] },
  rgb: { id: 2, channels: 3, depths: [8, 16] },
  palette: { id: 3, channels: 1, depths: [1, 2, 4, 8] },
  greyAlpha: { id: 4, channels: 2, depths: [8, 16] },
  rgba: { id: 6, channels: 4, depths: [8, 16] },
} as const;

interface Png {
  readonly type: keyof typeof TYPES;
  readonly depth: number;
  /** Chunks before the pixels and behind the palette, by name. */
  readonly chunks?: Readonly<Record<string, readonly number[]>>;
}

/**
 * Returns the samples of a pixel, from 0 to the maximum of their depth. Alpha is never 0, because
 * then the colour is undefined.
 */
function samplesAt({ depth, type }: Png, x: number, y: number): number[] {
  return Array.from({ length: TYPES[type].channels }, (_, channel) => {
    const value = (x * 37 + y * 61 + channel * 83 + x * y * 11) % 2 ** Math.min(depth, 8);
    const isAlpha = (type === 'greyAlpha' && channel === 1) || channel === 3;
    return (isAlpha ? Math.max(1, value) : value) * (depth === 16 ? 257 : 1);
  });
}

const paletteColour = (index: number): number[] => [(index * 67) % 256, (index * 29) % 256, 255 - index];

/** Encodes a PNG of rows without filters. */
function encode(png: Png): Buffer {
  const { type, depth, chunks = {} } = png;
  const rows = Array.from({ length: SIDE }, (_, y) => {
    const samples = Array.from({ length: SIDE }, (_, x) => samplesAt(png, x, y)).flat();
    const bits = samples.map((sample) => sample.toString(2).padStart(depth, '0')).join('');
    return [0, ...(bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2))];
  });
  const colours = Array.from({ length: 2 ** depth }, (_, index) => paletteColour(index)).flat();
  return Buffer.concat([
    PNG_SIGNATURE,
    pngChunk('IHDR', Buffer.from([0, 0, 0, SIDE, 0, 0, 0, SIDE, depth, TYPES[type].id, 0, 0, 0])),
    ...(type === 'palette' ? [pngChunk('PLTE', Buffer.from(colours))] : []),
    ...Object.entries(chunks).map(([name, body]) => pngChunk(name, Buffer.from(body))),
    pngChunk('IDAT', deflateSync(Buffer.from(rows.flat()))),
    pngChunk('IEND', Buffer.alloc(0)),
  ]);
}

/** Returns the pixels that were encoded, in 8 bits per channel. */
function expected(png: Png, alphaOf: (samples: readonly number[]) => number = () => 255): Pixels {
  const { type, depth } = png;
  const pixels = Array.from({ length: SIDE ** 2 }, (_, at) => {
    const samples = samplesAt(png, at % SIDE, Math.floor(at / SIDE));
    const [one = 0, two = 0, three = 0, four = 0] = samples.map((value) =>
      Math.round((value * 255) / (2 ** depth - 1)),
    );
    return {
      grey: [one, one, one, alphaOf(samples)],
      greyAlpha: [one, one, one, two],
      palette: [...paletteColour(samples[0] ?? 0), alphaOf(samples)],
      rgb: [one, two, three, alphaOf(samples)],
      rgba: [one, two, three, four],
    }[type];
  });
  return { width: SIDE, height: SIDE, data: Buffer.from(pixels.flat()) };
}

/**
 * Encodes a transparent grey and an opaque one, next to each other. The grey of 16 bits has
 * different bytes.
 */
function twoGreys(depth: 8 | 16, grey: number): Buffer {
  const sample = (value: number): number[] => (depth === 8 ? [value] : [value, value ^ 85]);
  return Buffer.concat([
    PNG_SIGNATURE,
    pngChunk('IHDR', Buffer.from([0, 0, 0, 2, 0, 0, 0, 1, depth, TYPES.grey.id, 0, 0, 0])),
    pngChunk('tRNS', Buffer.from(depth === 8 ? [0, grey] : sample(grey))),
    pngChunk('IDAT', deflateSync(Buffer.from([0, ...sample(grey), ...sample((grey + 100) % 256)]))),
    pngChunk('IEND', Buffer.alloc(0)),
  ]);
}

describe('a PNG of a kind in PngSuite', () => {
  const service = useService();

  async function check(png: Png, wanted = expected(png)): Promise<void> {
    const { body } = await converted(service.base, encode(png), { format: 'png' });
    expect(difference(await decode(body), wanted).max, JSON.stringify(png)).to.be.at.most(0.01);
  }

  for (const [type, { depths }] of Object.entries(TYPES))
    it(`with ${type} of ${depths.join(', ')} bits keeps its pixels`, async () => {
      for (const depth of depths) await check({ type: type as Png['type'], depth });
    });

  it('with a transparent grey, colour or index keeps the transparency, and the others are opaque', async () => {
    for (const depth of TYPES.grey.depths) {
      const png: Png = { type: 'grey', depth };
      const [key = 0] = samplesAt(png, 0, 0);
      const wanted = expected(png, ([grey]) => (grey === key ? 0 : 255));
      await check({ ...png, chunks: { tRNS: [key >> 8, key & 255] } }, wanted);
    }
    const rgb: Png = { type: 'rgb', depth: 8 };
    const key = samplesAt(rgb, 3, 4);
    const chunks = { tRNS: key.flatMap((value) => [0, value]) };
    await check(
      { ...rgb, chunks },
      expected(rgb, (samples) => (`${samples}` === `${key}` ? 0 : 255)),
    );
    const palette: Png = { type: 'palette', depth: 4 };
    const alphas = [10, 80, 160, 240];
    await check(
      { ...palette, chunks: { tRNS: alphas } },
      expected(palette, ([index = 0]) => alphas[index] ?? 255),
    );
  });

  // ImageMagick 7 made 55 of all 256 greys opaque.
  for (const depth of [8, 16] as const)
    it(`with one transparent grey of ${depth} bits keeps it, whichever it is`, async () => {
      for (let grey = 0; grey < 256; grey += 8) {
        const { body } = await converted(service.base, twoGreys(depth, grey), { format: 'png' });
        const { data } = await decode(body);
        expect([data[3], data[7]], `${grey}`).to.deep.equal([0, 255]);
      }
    });

  it('with a gamma but no primaries, or other chunks that describe the pixels, keeps its pixels', async () => {
    for (const chunks of [
      { gAMA: [0, 1, 0x86, 0xa0] },
      { gAMA: [0, 0, 0x88, 0xb8] },
      { sBIT: [5, 5, 5] },
      { bKGD: [0, 200, 0, 10, 0, 10] },
      { pHYs: [0, 0, 0, 1, 0, 0, 0, 4, 0] },
    ])
      await check({ type: 'rgb', depth: 8, chunks });
  });

  it('with a chunk in front of its header, as Xcode writes it for iPhones, is rejected as damaged', async () => {
    const chunk = pngChunk('CgBI', Buffer.from([0x50, 0, 0x20, 2]));
    const file = Buffer.concat([PNG_SIGNATURE, chunk, (await fixture('scene.png')).subarray(8)]);
    const { outcome } = await convert(service.base, file, { format: 'webp' });
    expect(outcome).to.equal('400 The file is damaged or not a valid PNG image.');
  });

  for (const progressive of [false, true])
    it(`with wrong checksums is converted if its ${progressive ? 'interlaced' : 'sequential'} data is whole`, async () => {
      const file = await open(scene()).removeAlpha().png({ progressive }).toBuffer();
      const data = file.indexOf('IDAT');
      const ends = [29, data + 4 + file.readUInt32BE(data - 4)];
      for (const end of ends) file.writeUInt8(file.readUInt8(end) ^ 1, end);
      const { body, notes } = await converted(service.base, file, { format: 'png' });
      expect(difference(await decode(body), scene()).max).to.equal(0);
      expect(notes).to.equal(null);
      // Adler-32 of the data is wrong, too.
      file.writeUInt32BE(0, (ends[1] as number) - 4);
      expect((await convert(service.base, file, { format: 'png' })).outcome).to.equal(
        '400 The file is damaged or not a valid PNG image.',
      );
    });

  it('that announces frames, but has none, is converted without a note about frames', async () => {
    const png: Png = { type: 'rgb', depth: 8, chunks: { acTL: [0, 0, 0, 3, 0, 0, 0, 0] } };
    expect((await converted(service.base, encode(png), { format: 'webp' })).notes).to.equal(null);
  });
});
