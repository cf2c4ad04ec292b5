// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { expect } from 'chai';
import { createLocalBackend } from '../../src/regress/backends.ts';
import { compare } from '../../src/regress/compare.ts';
import { toMatrix } from '../../src/regress/matrix.ts';
import { type Row, record } from '../../src/regress/record.ts';
import { testConfig } from '../helpers/service.ts';

describe('comparing two recordings of a kind of file that is rejected as misread', () => {
  it('returns changed if the tools now decode it differently', async () => {
    const matrix = toMatrix({ cases: [{ name: 'png', format: 'png' }] });
    const fixtures = new URL('../../fixtures/traps/', import.meta.url).pathname;
    const converter = await createLocalBackend(testConfig());
    const options = { matrix, converter, repeat: 1, progress: () => {} };
    const images = [{ name: 'icc-lab.tiff', path: `${fixtures}icc-lab.tiff` }];
    const before = await record({ ...options, images, signal: new AbortController().signal }).finally(() =>
      converter.close(),
    );
    const [row] = before.rows;
    expect(row?.refused?.message).to.include('ICCLab');
    expect(row?.misread).to.be.a('string');
    const after = { ...before, rows: [{ ...(row as Row), misread: 'other pixels' }] };
    const verdicts = await Promise.all([before, after].map((other) => compare(before, other, matrix)));
    expect(verdicts.map(([finding]) => finding?.verdict)).to.deep.equal(['identical', 'changed']);
  });
});
