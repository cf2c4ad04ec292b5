import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { docker, HARDENED, IMAGE } from '../helpers/docker.ts';

const FIXTURES = fileURLToPath(new URL('../../fixtures', import.meta.url));
/**
 * User that can read the checkout. Root without capabilities can only read files that root owns.
 */
const USER = `${process.getuid?.() ?? 0}:0`;

describe('the image on the command line', () => {
  const run = (...args: string[]): Promise<string> => {
    const options = ['--user', USER, '--network', 'none', '--volume', `${FIXTURES}:/fixtures:ro`];
    return docker('run', '--rm', ...HARDENED, ...options, IMAGE, ...args);
  };

  it('converts the fixtures to the results in fixtures/baseline, without visible differences', async () => {
    const output = await run(
      'regress',
      'check',
      '/fixtures',
      '--against',
      '/fixtures/baseline/imagemagick-7.json',
    ).catch((error) => expect.fail(`regress ended with ${error.code}:\n${error.stdout}${error.stderr}`));
    expect(Number(/^(\d+) results:$/m.exec(output)?.[1])).to.be.above(300);
  });

  it('passes all checks of imagemill doctor', async () => {
    const checks = JSON.parse(await run('doctor', '--json'));
    expect(JSON.stringify(checks)).to.not.match(/"(warn|fail)"/);
  });
});
