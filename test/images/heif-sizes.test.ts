import { expect } from 'chai';
import { bufferReader } from '../../src/images/containers/file.ts';
import { parseMeta } from '../../src/images/heif-items.ts';
import { hasContradictorySizes } from '../../src/images/heif-sizes.ts';
import { isoBox } from '../helpers/hostile-files.ts';

/** Encodes a number as an Exp-Golomb code (ITU-T H.265, section 9.2). */
function expGolomb(value: number): string {
  const bits = (value + 1).toString(2);
  return `${'0'.repeat(bits.length - 1)}${bits}`;
}

/** Encodes an `hvcC` box with a sequence parameter set for each size. */
function configurationOf(sizes: readonly (readonly [number, number])[]): Buffer {
  const sets = sizes.map(([width, height]) => {
    const size = `${expGolomb(width)}${expGolomb(height)}`;
    const bits = `${'1'.repeat(120).replace(/^.{24}/, `${'0'.repeat(20)}0001`)}1010${size}`;
    const bytes = bits.padEnd(Math.ceil(bits.length / 8) * 8, '0').match(/.{8}/g) ?? [];
    return Buffer.from([0, bytes.length, ...bytes.map((byte) => Number.parseInt(byte, 2))]);
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
