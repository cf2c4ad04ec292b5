// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
/** @module Converts each kind of PNG that PngSuite has, generated here, and compares the result with the encoded pixels. */
import { deflateSync } from 'node:zlib';
import { expect } from 'chai';
import { PNG_SIGNATURE, pngChunk } from '../../src/images/png-writer.ts';
import { convert, converted, fixture } from '../helpers/client.ts';
import { decode, difference, type Pixels } from '../helpers/pixels.ts';
import { useService } from '../helpers/service.ts';

const COLOUR = { grey: 0, rgb: 2, palette: 3, greyAlpha: 4, rgba: 6 } as const;
const DEPTHS: Readonly<Record<keyof typeof COLOUR, readonly number[]>> = {
  grey: [1, 2, 4, 8, 16],
  rgb: [8, 16],
  palette: [1, 2, 4, 8],
  greyAlpha: [8, 16],
  rgba: [8, 16],
};
const CHANNELS = { grey: 1, rgb: 3, palette: 1, greyAlpha: 2, rgba: 4 } as const;
/** Start and step of the columns and rows of each pass of Adam7 (PNG, third edition, section 8.1). */
const ADAM7 = [
  [0, 8, 0, 8],
  [4, 8, 0, 8],
  [0, 4, 4, 8],
  [2, 4, 0, 4],
  [0, 2, 2, 4],
  [1, 2, 0, 2],
  [0, 1, 1, 2],
] as const;
const WHOLE = [[0, 1, 0, 1]] as const;

interface Png {
  readonly width: number;
  readonly height: number;
  readonly type: keyof typeof COLOUR;
  readonly depth: number;
  readonly interlaced?: boolean;
  /** Filter of each row, 0 to 4; by default, all of them in turn. */
  readonly filter?: number;
  /** Chunks between the header and the pixels, by name. */
  readonly chunks?: Readonly<Record<string, readonly number[]>>;
}

/** Returns a sample, from 0 to the maximum of its depth. Alpha is never 0, because then the colour is undefined. */
function sampleAt({ depth, type }: Png, x: number, y: number, channel: number): number {
  const value = (x * 37 + y * 61 + channel * 83 + x * y * 11) % 2 ** Math.min(depth, 8);
  const isAlpha = (type === 'greyAlpha' && channel === 1) || channel === 3;
  return (isAlpha ? Math.max(1, value) : value) * (depth === 16 ? 257 : 1);
}

/** Colour of an index. */
const paletteColour = (index: number): number[] => [(index * 67) % 256, (index * 29) % 256, 255 - index];

/** Encodes a PNG. */
function encode(png: Png): Buffer {
  const header = Buffer.from([
    ...[0, 0, png.width >> 8, png.width & 255, 0, 0, png.height >> 8, png.height & 255],
    ...[png.depth, COLOUR[png.type], 0, 0, png.interlaced ? 1 : 0],
  ]);
  const colours = Array.from({ length: 2 ** png.depth }, (_, index) => paletteColour(index)).flat();
  const early = Object.entries(png.chunks ?? {}).map(([name, body]) => pngChunk(name, Buffer.from(body)));
  const [late, first] = [
    early.filter((one) => one.includes('tRNS')),
    early.filter((one) => !one.includes('tRNS')),
  ];
  return Buffer.concat([
    PNG_SIGNATURE,
    pngChunk('IHDR', header),
    ...first,
    ...(png.type === 'palette' ? [pngChunk('PLTE', Buffer.from(colours))] : []),
    ...late,
    pngChunk(
      'IDAT',
      deflateSync(Buffer.concat((png.interlaced ? ADAM7 : WHOLE).flatMap((pass) => encodePass(png, pass)))),
    ),
    pngChunk('IEND', Buffer.alloc(0)),
  ]);
}

function encodePass(
  png: Png,
  [left, stepX, top, stepY]: readonly [number, number, number, number],
): Buffer[] {
  const columns = Array.from({ length: Math.ceil((png.width - left) / stepX) }, (_, at) => left + at * stepX);
  const rows: Buffer[] = [];
  let previous: Buffer = Buffer.alloc(0);
  if (columns.length === 0) return [];
  for (let y = top, at = 0; y < png.height; y += stepY, at += 1) {
    const row = packRow(png, columns, y);
    const bytes = Math.max(1, (CHANNELS[png.type] * png.depth) / 8);
    rows.push(filtered(row, previous, bytes, png.filter ?? at % 5));
    previous = row;
  }
  return rows;
}

function packRow(png: Png, columns: readonly number[], y: number): Buffer {
  const channels = CHANNELS[png.type];
  const row = Buffer.alloc(Math.ceil((columns.length * channels * png.depth) / 8));
  for (const [at, x] of columns.entries()) {
    for (let channel = 0; channel < channels; channel += 1) {
      const bit = (at * channels + channel) * png.depth;
      const sample = sampleAt(png, x, y, channel);
      if (png.depth === 16) row.writeUInt16BE(sample, bit / 8);
      else row[bit >> 3] = (row[bit >> 3] as number) | (sample << (8 - png.depth - (bit & 7)));
    }
  }
  return row;
}

/** Filters a row (section 9.2). */
function filtered(row: Buffer, previous: Buffer, bytes: number, filter: number): Buffer {
  const result = Buffer.alloc(row.length + 1, filter);
  for (const [at, value] of row.entries()) {
    const left = at < bytes ? 0 : (row[at - bytes] as number);
    const above = previous[at] ?? 0;
    const corner = at < bytes ? 0 : (previous[at - bytes] ?? 0);
    const predictions = [0, left, above, (left + above) >> 1, paeth(left, above, corner)];
    result[at + 1] = value - (predictions[filter] as number);
  }
  return result;
}

function paeth(left: number, above: number, corner: number): number {
  const estimate = left + above - corner;
  const [a, b, c] = [left, above, corner].map((one) => Math.abs(estimate - one)) as [number, number, number];
  if (a <= b && a <= c) return left;
  return b <= c ? above : corner;
}

/** Returns the pixels that were encoded, in 8 bits per channel. */
function expected(png: Png, alphaOf: (samples: readonly number[]) => number = () => 255): Pixels {
  const { width, height, type, depth } = png;
  const data = Buffer.alloc(width * height * 4);
  const scale = (value = 0): number => Math.round((value * 255) / (2 ** depth - 1));
  for (let at = 0; at < width * height; at += 1) {
    const samples = Array.from({ length: CHANNELS[type] }, (_, channel) =>
      sampleAt(png, at % width, Math.floor(at / width), channel),
    );
    const [one = 0, two, three, four] = samples;
    const grey = [scale(one), scale(one), scale(one)];
    const pixel = {
      grey: [...grey, alphaOf(samples)],
      greyAlpha: [...grey, scale(two)],
      palette: [...paletteColour(one), alphaOf(samples)],
      rgb: [scale(one), scale(two), scale(three), alphaOf(samples)],
      rgba: [scale(one), scale(two), scale(three), scale(four)],
    }[type];
    data.set(pixel, at * 4);
  }
  return { width, height, data };
}

/** Encodes a transparent grey and an opaque one, next to each other. The grey of 16 bits has different bytes. */
function twoGreys(depth: 8 | 16, grey: number): Buffer {
  const sample = (value: number): number[] => (depth === 8 ? [value] : [value, value ^ 85]);
  return Buffer.concat([
    PNG_SIGNATURE,
    pngChunk('IHDR', Buffer.from([0, 0, 0, 2, 0, 0, 0, 1, depth, COLOUR.grey, 0, 0, 0])),
    pngChunk('tRNS', Buffer.from(depth === 8 ? [0, grey] : sample(grey))),
    pngChunk('IDAT', deflateSync(Buffer.from([0, ...sample(grey), ...sample((grey + 100) % 256)]))),
    pngChunk('IEND', Buffer.alloc(0)),
  ]);
}

describe('every kind of PNG in PngSuite', () => {
  const service = useService();

  async function check(png: Png, wanted = expected(png)): Promise<void> {
    const { body } = await converted(service.base, encode(png), { format: 'png' });
    expect(difference(await decode(body), wanted).max).to.be.at.most(0.01);
  }

  async function alphasOf(png: Buffer): Promise<readonly (number | undefined)[]> {
    const { body } = await converted(service.base, png, { format: 'png' });
    const { data } = await decode(body);
    return [data[3], data[7]];
  }

  for (const type of Object.keys(COLOUR) as (keyof typeof COLOUR)[]) {
    for (const depth of DEPTHS[type]) {
      for (const interlaced of [false, true]) {
        it(`${type} of ${depth} bits${interlaced ? ', interlaced,' : ''} keeps its pixels`, () =>
          check({ width: 32, height: 32, type, depth, interlaced }));
      }
    }
  }

  for (const filter of [0, 1, 2, 3, 4]) {
    it(`filter ${filter} in all rows of an image in colour and of one in greys keeps its pixels`, async () => {
      await check({ width: 32, height: 32, type: 'rgb', depth: 8, filter });
      await check({ width: 32, height: 32, type: 'grey', depth: 8, filter });
    });
  }

  for (const side of [1, 2, 3, 4, 5, 6, 7, 8, 9]) {
    it(`a palette of 4 bits and ${side} by ${side} pixels, interlaced or not, keeps its pixels`, async () => {
      for (const interlaced of [false, true])
        await check({ width: side, height: side, type: 'palette', depth: 4, interlaced });
    });
  }

  for (const depth of DEPTHS.grey) {
    it(`a transparent grey of ${depth} bits is transparent, and the others are opaque`, async () => {
      const png: Png = { width: 16, height: 16, type: 'grey', depth };
      const key = sampleAt(png, 0, 0, 0);
      const chunks = { tRNS: [key >> 8, key & 255] };
      await check(
        { ...png, chunks },
        expected(png, ([grey]) => (grey === key ? 0 : 255)),
      );
    });
  }

  for (const depth of [8, 16] as const) {
    it(`each of 256 transparent greys of ${depth} bits is transparent, and another one is opaque`, async () => {
      const alphas: Promise<readonly (number | undefined)[]>[] = [];
      for (let grey = 0; grey < 256; grey += 1) {
        alphas.push(alphasOf(twoGreys(depth, grey)));
        if (grey % 64 === 63) await Promise.all(alphas); // the queue is limited
      }
      expect(await Promise.all(alphas)).to.deep.equal(Array(256).fill([0, 255]));
    });
  }

  it('a transparent colour is transparent, and the others are opaque', async () => {
    const png: Png = { width: 16, height: 16, type: 'rgb', depth: 8 };
    const key = [0, 1, 2].map((channel) => sampleAt(png, 3, 4, channel));
    const wanted = expected(png, (samples) => (samples.join() === key.join() ? 0 : 255));
    await check({ ...png, chunks: { tRNS: key.flatMap((value) => [0, value]) } }, wanted);
  });

  it('the alpha of each index of a palette is kept, and indices without alpha are opaque', async () => {
    const png: Png = { width: 16, height: 16, type: 'palette', depth: 4 };
    const alphas = [10, 80, 160, 240];
    const wanted = expected(png, ([index = 0]) => alphas[index] ?? 255);
    await check({ ...png, chunks: { tRNS: alphas } }, wanted);
  });

  for (const [what, chunks] of [
    ['a gamma of 1 without primaries', { gAMA: [0, 1, 0x86, 0xa0] }],
    ['a gamma of 0.35 without primaries', { gAMA: [0, 0, 0x88, 0xb8] }],
    ['significant bits', { sBIT: [5, 5, 5] }],
    ['a suggested background', { bKGD: [0, 200, 0, 10, 0, 10] }],
    ['pixels that are not square', { pHYs: [0, 0, 0, 1, 0, 0, 0, 4, 0] }],
  ] as const) {
    it(`${what} changes no pixel`, () => check({ width: 16, height: 16, type: 'rgb', depth: 8, chunks }));
  }

  it('with a chunk in front of its header, as Xcode writes it for iPhones, is rejected as damaged', async () => {
    const chunk = pngChunk('CgBI', Buffer.from([0x50, 0, 0x20, 2]));
    const file = Buffer.concat([PNG_SIGNATURE, chunk, (await fixture('scene.png')).subarray(8)]);
    const { outcome } = await convert(service.base, file, { format: 'webp' });
    expect(outcome).to.equal('400 The file is damaged or not a valid PNG image.');
  });

  for (const interlaced of [false, true])
    it(`with wrong checksums is converted if its data is ${interlaced ? 'interlaced' : 'sequential'} and whole`, async () => {
      const png: Png = { width: 20, height: 13, type: 'rgb', depth: 8, interlaced };
      const file = encode(png);
      const data = file.indexOf('IDAT');
      const ends = [29, data + 4 + file.readUInt32BE(data - 4)];
      for (const end of ends) file.writeUInt8(file.readUInt8(end) ^ 1, end);
      const { body, notes } = await converted(service.base, file, { format: 'png' });
      expect(difference(await decode(body), expected(png)).max).to.equal(0);
      expect(notes).to.equal(null);
      // Adler-32 of the data is wrong, too.
      file.writeUInt32BE(0, (ends[1] as number) - 4);
      expect((await convert(service.base, file, { format: 'png' })).outcome).to.equal(
        '400 The file is damaged or not a valid PNG image.',
      );
    });

  it('that announces frames, but has none, is converted without a note about frames', async () => {
    const png: Png = {
      width: 16,
      height: 16,
      type: 'rgb',
      depth: 8,
      chunks: { acTL: [0, 0, 0, 3, 0, 0, 0, 0] },
    };
    expect((await converted(service.base, encode(png), { format: 'webp' })).notes).to.equal(null);
  });
});
