// @unit
import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { ico, iconBitmap } from '../../scripts/fixtures/writers.ts';
import { repair } from '../../src/images/index.ts';
import { fixture } from '../helpers/client.ts';
import { writeTempFile } from '../helpers/hooks.ts';
import { repairContext } from '../helpers/repairs.ts';

const kept = async (bytes: Buffer) => {
  const path = await writeTempFile('in', bytes);
  return { type: await repair(path, 'ico', repairContext()), file: await readFile(path) };
};

const bitmap = (side: number, bits = 32): Buffer => {
  const made = iconBitmap({ width: side, height: side, data: Buffer.alloc(side * side * 4, 200) });
  made.writeUInt16LE(bits, 14);
  return made;
};

const set = (file: Buffer, at: number, value: number): Buffer => {
  file[at] = value;
  return file;
};

describe('an icon', () => {
  it('whose directory states one byte too many for a PNG is replaced by that PNG', async () => {
    const png = await fixture('scene.png');
    const file = ico([{ side: 64, bytes: png }]);
    file.writeUInt32LE(png.length + 1, 6 + 8);
    expect(await kept(file)).to.deep.equal({ type: 'png', file: png });
  });

  it('is unchanged if its largest image is a PNG shorter than the signature', async () => {
    for (const length of [0, 1, 7]) {
      const file = ico([{ side: 32, bytes: Buffer.from('\x89PNG\r\n\x1a\n', 'latin1') }]);
      file.writeUInt32LE(length, 14);
      expect(await kept(file), `${length} bytes`).to.deep.equal({ type: 'ico', file });
    }
  });

  it('is complete although its directory, its mask or its header contradicts the file', async () => {
    const image = bitmap(16);
    const made = () => ico([{ side: 16, bytes: image }]);
    const { file: expected } = await kept(made());
    const damages: Readonly<Record<string, (file: Buffer) => Buffer>> = {
      'a longer length': (file) => set(file, 6 + 8 + 2, 1),
      'a shorter length': (file) => set(file, 6 + 8 + 1, 0),
      'a palette': (file) => set(file, 22 + 35, 3),
      'a cut mask': (file) => file.subarray(0, file.length - 7),
    };
    for (const [what, damage] of Object.entries(damages))
      expect(await kept(damage(made())), what).to.deep.equal({ type: 'ico', file: expected });
  });

  it('without alpha is unchanged if the file ends in its mask', async () => {
    const whole = ico([{ side: 16, bytes: bitmap(16, 24) }]);
    const cut = whole.subarray(0, 22 + 40 + 16 * 16 * 3 + 5);
    expect(await kept(cut)).to.deep.equal({ type: 'ico', file: cut });
  });

  it('is unchanged if it is malformed', async () => {
    const whole = ico([{ side: 16, bytes: bitmap(16) }]);
    const pixels = 22 + 40 + 16 * 16 * 4;
    for (const length of [0, 5, 6, 21, 22, 40, pixels - 1]) {
      const cut = whole.subarray(0, length);
      expect(await kept(cut)).to.deep.equal({ type: 'ico', file: cut });
    }
  });
});
