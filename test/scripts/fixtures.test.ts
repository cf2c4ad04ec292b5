// @full: all fixtures are generated again
import { readdirSync } from 'node:fs';
import { expect } from 'chai';
import { withoutTimes } from '../../scripts/fixtures/boxes.ts';
import { EDGE_CASES } from '../../scripts/fixtures/edge-cases.ts';
import { edgeCase, edgeCasePath } from '../helpers/client.ts';

describe('the generator of fixtures/traps', () => {
  // avifenc is a package of the system, so that its bytes depend on the version.
  for (const [name, make] of Object.entries(EDGE_CASES).filter(([name]) => !name.endsWith('.avif'))) {
    it(`makes the bytes of ${name}`, async () => {
      expect((await make()).equals(await edgeCase(name))).to.equal(true);
    });
  }

  it('makes an AVIF sequence without the time of its creation', async () => {
    const made = (await EDGE_CASES['moving.avif']?.()) as Buffer;
    expect(made.equals(withoutTimes(made))).to.equal(true);
  });

  it('makes all files of the folder, each with an expected result beside it', () => {
    const names = Object.keys(EDGE_CASES).flatMap((name) => [name, `${name}.json`]);
    expect(readdirSync(edgeCasePath(''))).to.have.members(names);
  });
});
