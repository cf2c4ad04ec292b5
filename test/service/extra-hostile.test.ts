// @full: all kinds of hostile files
import { expect } from 'chai';
import { box } from '../../scripts/fixtures/boxes.ts';
import { avif, opened } from '../../scripts/fixtures/edge-case.ts';
import { psd } from '../../scripts/fixtures/psd.ts';
import { scene } from '../../scripts/fixtures/scene.ts';
import { seeded } from '../../scripts/stress/random.ts';
import { convert, expectSuccess, fixture } from '../helpers/client.ts';
import { ALL_EXTRAS, extra } from '../helpers/extra.ts';
import { jxlHeader } from '../helpers/jxl-header.ts';
import { decode, difference, sizeOf } from '../helpers/pixels.ts';
import { useServiceWith } from '../helpers/service.ts';

/** @module Files of the formats of EXTRA_INPUTS that are too large, contradictory or damaged. */

const WHOLE = [
  'scene.heic',
  'grid.heic',
  'scene.jxl',
  'moving.jxl',
  'scene.jp2',
  'window.j2k',
  'scene.psd',
  'scene.cur',
];

/** Changes every size property (`ispe`) of a HEIC or AVIF. */
function withSize(original: Buffer, width: number, height: number): Buffer {
  const file = Buffer.from(original);
  for (let at = file.indexOf('ispe'); at > 0; at = file.indexOf('ispe', at + 4)) {
    file.writeUInt32BE(width, at + 8);
    file.writeUInt32BE(height, at + 12);
  }
  return file;
}

/** Encodes an AVIF of 256 × 192 pixels as a grid of four tiles. */
async function encodeGridAvif(): Promise<Buffer> {
  const png = await opened().resize(256, 192, { fit: 'fill' }).png().toBuffer();
  return avif([png], ['-s', '9', '--grid', '2x2']);
}

/** Fields of a grid of four tiles (ISO/IEC 23008-12, section 6.6.2.3), to be changed in place. */
interface Grid {
  /**
   * One byte each: version, flags, rows minus 1, columns minus 1. Then width and height in two
   * bytes each.
   */
  readonly data: Buffer;
  /**
   * Four bytes each: width and height of the property of the grid, and of the property of its
   * tiles.
   */
  readonly size: Buffer;
  readonly tileSize: Buffer;
  /** Two bytes each: the item of the grid, the number of tiles, the items of the tiles. */
  readonly tiles: Buffer;
}

/** Sets the width or the height of the grid, in its data and in its property. */
function setSide({ data, size }: Grid, side: 0 | 1, pixels: number): void {
  data.writeUInt16BE(pixels, 4 + 2 * side);
  size.writeUInt32BE(pixels, 4 * side);
}

/** Grids of 256 × 192 pixels in tiles of 128 × 96, with contradictory fields. */
const LYING_GRIDS: Readonly<Record<string, (grid: Grid) => void>> = {
  'is larger than its properties state'({ data }) {
    data.writeUInt16BE(60_000, 4);
    data.writeUInt16BE(60_000, 6);
  },
  'is wider than its tiles together': (grid) => setSide(grid, 0, 257),
  'is higher than its tiles together': (grid) => setSide(grid, 1, 193),
  'has more rows and columns than tiles'({ data }) {
    data[2] = 255;
    data[3] = 255;
  },
  'has more tiles than rows and columns'(grid) {
    grid.data[2] = 0;
    setSide(grid, 1, 96);
  },
  'has tiles that are smaller than they declare': ({ tileSize }) => void tileSize.writeUInt32BE(4096, 0),
  'refers to a tile that is missing': ({ tiles }) => void tiles.writeUInt16BE(99, 4),
  'is one of its own tiles': ({ tiles }) => void tiles.writeUInt16BE(tiles.readUInt16BE(0), 4),
};

function changeGrid(file: Buffer, change: (grid: Grid) => void): Buffer {
  const changed = Buffer.from(file);
  const from = (hex: string): Buffer => changed.subarray(changed.indexOf(Buffer.from(hex, 'hex')));
  change({
    data: from('00000101010000c0'),
    size: from('00000100000000c0'),
    tileSize: from('0000008000000060'),
    tiles: from(Buffer.from('dimg').toString('hex')).subarray(4),
  });
  return changed;
}

/** JPEG XL of 16384 × 16384 pixels with a header and without a frame. */
const hugeJxl = (): Buffer =>
  jxlHeader([
    [0, 1], // sides are no multiples of 8
    [2, 2], // in 18 bits
    [16_383, 18],
    [1, 3], // as wide as it is high
    [1, 1], // all else as usual
  ]);

/** Creates a JPEG 2000 whose codestream is larger than its boxes state. */
async function lyingJp2(): Promise<Buffer> {
  const file = Buffer.from(await extra('scene.jp2'));
  const siz = file.indexOf(Buffer.from([0xff, 0x4f, 0xff, 0x51]));
  file.writeUInt32BE(60_000, siz + 8);
  file.writeUInt32BE(60_000, siz + 12);
  return file;
}

/** Creates a JPEG 2000 of 600 kB with 39 000 profiles, of which only the first is read. */
function complexJp2(): Buffer {
  const profile = box('colr', Buffer.from([2, 0, 0, 0, 0, 0, 0]));
  const header = box('jp2h', Buffer.concat(Array(200).fill(profile)));
  const start = [
    box('jP  ', Buffer.from('\r\n\x87\n', 'latin1')),
    box('ftyp', Buffer.from('jp2 \0\0\0\0jp2 ')),
  ];
  return Buffer.concat([...start, ...Array(195).fill(header)]);
}

function hugePsd(): Buffer {
  const file = psd(scene(), {});
  file.writeUInt32BE(16_000, 14);
  file.writeUInt32BE(16_000, 18);
  return file;
}

describe('hostile files of the formats of EXTRA_INPUTS', () => {
  const shared = useServiceWith(ALL_EXTRAS);
  let gridAvif: Buffer;
  before(async () => {
    gridAvif = await encodeGridAvif();
  });

  const post = (file: Uint8Array, format = 'png') => convert(shared.base, file, { format });

  const tooLarge: readonly (readonly [string, () => Promise<Buffer> | Buffer])[] = [
    ['a HEIC of 200 megapixels in a few KB', async () => withSize(await extra('scene.heic'), 20_000, 10_000)],
    ['a HEIC grid of 200 megapixels', async () => withSize(await extra('grid.heic'), 20_000, 10_000)],
    ['a JPEG XL of 268 megapixels without a frame', hugeJxl],
    ['a JPEG 2000 whose codestream is larger than its boxes state', lyingJp2],
    ['a PSD of 256 megapixels', hugePsd],
  ];
  for (const [what, file] of tooLarge) {
    it(`rejects ${what} by its header, with 413`, async () => {
      const { status, message } = await post(await file());
      expect(status, message).to.equal(413);
    });
  }

  it('rejects a JPEG 2000 with 39 000 colour profiles and no image, with 400', async () => {
    expect((await post(complexJp2())).outcome).to.equal(
      '400 The file is damaged or not a valid JPEG 2000 image.',
    );
  });

  for (const [lie, change] of Object.entries(LYING_GRIDS)) {
    it(`rejects a HEIC and an AVIF whose grid ${lie}, with 400`, async () => {
      for (const [type, file] of [
        ['HEIC', await extra('grid.heic')],
        ['AVIF', gridAvif],
      ] as const) {
        expect((await post(changeGrid(file, change))).outcome).to.equal(
          `400 The file is damaged or not a valid ${type} image.`,
        );
      }
    });
  }

  it('converts an AVIF of four tiles', async () => {
    const { body } = await expectSuccess(post(gridAvif));
    expect(sizeOf(await decode(body))).to.deep.equal([256, 192]);
  });

  it('rejects a HEIC and an AVIF whose coded image has another size than the header states, with 400', async () => {
    for (const [width, height] of [
      [40, 30],
      [120, 15],
      [121, 80],
      [4000, 4000],
    ] as const) {
      for (const [type, file] of [
        ['HEIC', await extra('scene.heic')],
        ['AVIF', await fixture('scene.avif')],
      ] as const) {
        const { status, message } = await post(withSize(file, width, height));
        const what = `${type} of ${width} × ${height}`;
        expect([status, message], what).to.deep.equal([
          400,
          `The file is damaged or not a valid ${type} image.`,
        ]);
      }
    }
  });

  it('rejects a PSD of 10 000 layers with 400, and converts one of 8000', async () => {
    expect((await post(psd(scene(), { layers: 10_000 }))).outcome)
      .to.match(/^400 /)
      .and.include('unsupported encoding (PSD with more than 8000 layers)');
    const many = await expectSuccess(post(psd(scene(), { layers: 8000 })));
    expect(difference(await decode(many.body), scene()).max).to.equal(0);
  });

  it('keeps the transparency of a PSD with more layers than MAX_FRAMES', async () => {
    const window = scene({ transparent: true });
    const { body } = await expectSuccess(post(psd(window, { layers: -600 })));
    expect(difference(await decode(body), window).max).to.equal(0);
  });

  for (const name of WHOLE) {
    it(`returns a result or a clear error for ${name}, truncated or with changed bytes`, async () => {
      const whole = await extra(name);
      const { below } = seeded(whole.length);
      const files = [0.05, 0.6, 0.95].map((share) => whole.subarray(0, Math.ceil(whole.length * share)));
      for (let round = 0; round < 3; round += 1) {
        const changed = Buffer.from(whole);
        for (let change = 0; change < 5; change += 1) changed[20 + below(changed.length - 20)] = below(256);
        files.push(changed);
      }
      for (const file of files) {
        const { status, message } = await post(file, 'webp');
        expect([200, 400, 413, 415], message).to.include(status);
      }
    });
  }
});
