import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { repairJp2 } from '../../../src/conversion/input/jp2.ts';
import { rewriteText } from '../../../src/conversion/input/svg/rewrite-text.ts';
import { makeTempDir } from '../../helpers/hooks.ts';

describe('repairs of hostile files', () => {
  it('leave a JPEG 2000 alone whose vertical sampling factors are all 0', async () => {
    const codestream = Buffer.alloc(48);
    codestream.writeUInt32BE(0xff4fff51);
    codestream.writeUInt16BE(2, 40); // components
    for (const at of [8, 12, 24, 28]) codestream.writeUInt32BE(64, at); // sides of the image and of its tile
    codestream.set([7, 2, 0, 7, 2, 0], 42);
    const path = join(await makeTempDir('repairs'), 'in');
    await writeFile(path, codestream);
    await repairJp2(path);
    expect((await readFile(path)).includes(codestream)).to.equal(true);
  });

  // Quadratic time would be minutes: the test fails by its timeout.
  for (const [name, text] of [
    ['a drop shadow', (digits: string) => `<svg><feDropShadow dx="${digits}x"/></svg>`],
    [
      'a transform origin',
      (digits: string) => `<svg><g transform-origin="${digits}x" transform="scale(2)"/></svg>`,
    ],
  ] as const) {
    it(`read an invalid number of a million digits in ${name} in linear time`, () => {
      expect(rewriteText(text('1'.repeat(1_000_000)))).to.be.a('string');
    });
  }
});
