// @full: all fixtures in all formats
// @slow

import { createLocalBackend } from '../../src/regress/backends.ts';
import { readBaseline } from '../../src/regress/baseline.ts';
import { compare } from '../../src/regress/compare.ts';
import { listImages, record } from '../../src/regress/record.ts';
import { formatSummary, summarize } from '../../src/regress/report/summary.ts';
import { INPUT_TYPES } from '../../src/tables/formats.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { testConfig } from '../helpers/service.ts';

const FIXTURES = new URL('../../fixtures', import.meta.url).pathname;

/** Printed when the test fails. */
const ADVICE = `A result of the fixtures is not what it was. If that is meant, run

  npm run baseline

look at the HTML report that it names, and commit fixtures/baseline/ together with the change.
`;

describe('the baseline of the fixtures', () => {
  it('matches the current results of all fixtures', async () => {
    const converter = await createLocalBackend(testConfig());
    try {
      const [major] = converter.tools.ImageMagick?.split('.') ?? [];
      const before = await readBaseline(`${FIXTURES}/baseline/imagemagick-${major}.json`);
      const { matrix } = before;
      const after = await record({
        images: await listImages(FIXTURES, INPUT_TYPES),
        matrix,
        converter,
        // Results with the bytes of the baseline need not be decoded.
        folder: await makeTempDir('results'),
        repeat: 1,
        signal: new AbortController().signal,
        progress: () => {},
      });
      const findings = await compare(before, after, matrix);
      if (summarize(findings).failures > 0)
        throw new Error(`${ADVICE}\n${formatSummary(findings, before, after)}`);
    } finally {
      await converter.close();
    }
  });
});
