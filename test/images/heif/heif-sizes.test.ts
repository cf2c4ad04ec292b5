import { expect } from 'chai';
import { bufferReader } from '../../../src/images/containers/file.ts';
import { parseMeta } from '../../../src/images/heif/heif-items.ts';
import { av1Size, hasContradictorySizes, hevcSizes } from '../../../src/images/heif/heif-sizes.ts';
import { edgeCase, fixture } from '../../helpers/client.ts';
import { extra } from '../../helpers/extra.ts';
import { isoBox } from '../../helpers/hostile-files.ts';
import { plain } from '../../helpers/pixels.ts';

/** Concatenates numbers in binary notation to bytes. */
function bytesOf(...fields: readonly string[]): Buffer {
  const bits = fields.join('');
  const bytes = bits.padEnd(Math.ceil(bits.length / 8) * 8, '0').match(/.{8}/g) ?? [];
  return Buffer.from(bytes.map((byte) => Number.parseInt(byte, 2)));
}

/** Encodes a number as an Exp-Golomb code (ITU-T H.265, section 9.2). */
function expGolomb(value: number): string {
  const bits = (value + 1).toString(2);
  return `${'0'.repeat(bits.length - 1)}${bits}`;
}

/** Encodes an `hvcC` box with a sequence parameter set for each size. */
function configurationOf(sizes: readonly (readonly [number, number])[]): Buffer {
  const sets = sizes.map(([width, height]) => {
    const start = `${'0'.repeat(20)}0001${'1'.repeat(96)}1010`;
    const set = bytesOf(start, expGolomb(width), expGolomb(height));
    return Buffer.concat([Buffer.from([0, set.length]), set]);
  });
  return isoBox('hvcC', Buffer.alloc(22), [1, 33, 0, sizes.length], ...sets);
}

/** Checks an item of 100 × 100 pixels with these sizes in its configuration. */
function isContradictory(...sizes: readonly (readonly [number, number])[]): Promise<boolean> {
  const declared = isoBox('ispe', [0, 0, 0, 0, 0, 0, 0, 100, 0, 0, 0, 100]);
  const meta = Buffer.concat([
    isoBox('iinf', [0, 0, 0, 0, 0, 1], isoBox('infe', [2, 0, 0, 0, 0, 1, 0, 0], Buffer.from('hvc1'))),
    isoBox(
      'iprp',
      isoBox('ipco', declared, configurationOf(sizes)),
      isoBox('ipma', [0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 2, 1, 2]),
    ),
  ]);
  return hasContradictorySizes(parseMeta(meta), bufferReader(Buffer.alloc(0)));
}

describe('an HEVC image with several coded sizes', () => {
  it('is valid if all of them are the declared size, padded to whole blocks', async () => {
    expect(await isContradictory()).to.equal(false);
    expect(await isContradictory([100, 100])).to.equal(false);
    expect(await isContradictory([163, 100], [100, 163], [128, 112])).to.equal(false);
  });

  it('is contradictory if one of them is smaller or more than a block larger', async () => {
    for (const other of [
      [99, 100],
      [100, 99],
      [164, 100],
      [100, 164],
    ] as const)
      for (const sizes of [[other], [[128, 128], other, [112, 112]], [other, [100, 100]]] as const)
        expect(await isContradictory(...sizes), JSON.stringify(sizes)).to.equal(true);
  });
});

/** Returns the bytes after the name of the first box of this name. */
const contentOf = (file: Buffer, name: string): Buffer => file.subarray(file.indexOf(name) + 4);

describe('the coded size', () => {
  it('of HEVC is that of whole blocks, and includes the rows that the decoder crops', async () => {
    for (const [name, width, height] of [
      ['scene.heic', 120, 80],
      ['grid.heic', 128, 96],
      ['deep.heic', 120, 80],
    ] as const)
      expect(hevcSizes(contentOf(await extra(name), 'hvcC')), name).to.deep.equal([{ width, height }]);
  });

  it('of HEVC is read after the profiles and levels of sub-layers', () => {
    const general = '0'.repeat(88 + 8);
    // Two sub-layers: one with a profile and a level, one with a level only.
    const subLayers = ['11', '01', '0'.repeat(2 * 6), '0'.repeat(88 + 8), '0'.repeat(8)];
    // 4:2:0 is 1, and the size is 8 × 4.
    const start = ['0'.repeat(16), '0000', '010', '1', general, ...subLayers];
    const set = bytesOf(...start, '1', expGolomb(1), expGolomb(8), expGolomb(4));
    const sequenceParameters = Buffer.concat([Buffer.from([33, 0, 1, 0, set.length]), set]);
    const hvcC = Buffer.concat([Buffer.alloc(22), Buffer.from([1]), sequenceParameters]);
    expect(hevcSizes(hvcC)).to.deep.equal([{ width: 8, height: 4 }]);
    for (let length = 0; length < hvcC.length; length += 1)
      expect(hevcSizes(hvcC.subarray(0, length)).length, `of ${length} bytes`).to.be.at.most(1);
  });

  it('of AV1 is that of the sequence header, of still images and of sequences', async () => {
    const odd = plain(333, 127);
    const still = contentOf(await odd.avif().toBuffer(), 'mdat');
    expect(av1Size(still)).to.deep.equal({ width: 333, height: 127 });
    const moving = contentOf(await edgeCase('moving.avif'), 'mdat');
    expect(av1Size(moving)).to.deep.equal({ width: 48, height: 32 });
  });

  it('of AV1 is read after timing, delays and several operating points', () => {
    const ticks = '0'.repeat(64);
    const timing = ['1', ticks, '1', '00101', '1', '00111', '0'.repeat(32 + 5 + 5)]; // delays have 8 bits
    const first = ['0'.repeat(12), '01000', '1', '1', '0'.repeat(17), '1', '0000']; // level 8 has a tier
    const second = ['0'.repeat(12), '00111', '0', '0'];
    const size = ['0111', '0111', '11111111', '00001111']; // 8 bits each
    const header = bytesOf('000', '0', '0', ...timing, '1', '00001', ...first, ...second, ...size);
    const units = Buffer.concat([Buffer.from([0x12, 0, 0x0a, header.length]), header]);
    expect(av1Size(units)).to.deep.equal({ width: 256, height: 16 });
    expect(av1Size(units.subarray(0, -1))).to.equal(undefined);
  });

  it('of data without a sequence header is unknown', async () => {
    expect(av1Size(Buffer.alloc(300))).to.equal(undefined);
    expect(av1Size(Buffer.alloc(0))).to.equal(undefined);
    expect(hevcSizes(await fixture('scene.png'))).to.deep.equal([]);
  });
});
