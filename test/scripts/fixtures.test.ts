import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { withoutTimes } from '../../scripts/fixtures/boxes.ts';
import { EDGE_CASES } from '../../scripts/fixtures/edge-cases.ts';

const FOLDER = new URL('../../fixtures/traps/', import.meta.url);

describe('the generator of fixtures/traps', () => {
  // avifenc is a package of the system, so that its bytes depend on the version.
  for (const { name, make, expected } of EDGE_CASES.filter((edgeCase) => !edgeCase.name.endsWith('.avif'))) {
    it(`makes the bytes and the expected result of ${name}`, async () => {
      expect((await make()).equals(readFileSync(new URL(name, FOLDER)))).to.equal(true);
      const stored = JSON.parse(readFileSync(new URL(`${name}.json`, FOLDER), 'utf8'));
      expect(stored).to.deep.equal(JSON.parse(JSON.stringify(expected)));
    });
  }

  it('makes an AVIF sequence without the time of its creation', async () => {
    const [sequence] = EDGE_CASES.filter(({ name }) => name === 'moving.avif');
    const made = (await sequence?.make()) as Buffer;
    expect(made.equals(withoutTimes(made))).to.equal(true);
  });

  it('makes all files of the folder', () => {
    const names = readdirSync(FOLDER).filter((name) => !name.endsWith('.json'));
    expect(names).to.have.members(EDGE_CASES.map(({ name }) => name));
  });
});
