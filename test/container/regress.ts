import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { docker, HARDENED, IMAGE } from '../helpers/docker.ts';

const FIXTURES = fileURLToPath(new URL('../../fixtures', import.meta.url));
/** Whoever has the checkout may read it; root without capabilities may read what is root's. */
const USER = `${process.getuid?.() ?? 0}:0`;

describe('the image on the command line', function () {
  this.timeout(180_000);

  const run = (...words: string[]): Promise<string> => {
    const place = ['--user', USER, '--network', 'none', '--volume', `${FIXTURES}:/fixtures:ro`];
    return docker('run', '--rm', ...HARDENED, ...place, IMAGE, ...words);
  };

  it('makes of the fixtures what fixtures/baseline says, as far as anybody can see', async () => {
    const said = await run(
      'regress',
      'check',
      '/fixtures',
      '--against',
      '/fixtures/baseline/imagemagick-7.json',
    ).catch((error) => expect.fail(`regress ended with ${error.code}:\n${error.stdout}${error.stderr}`));
    expect(Number(/^(\d+) results:$/m.exec(said)?.[1])).to.be.above(300);
  });

  it('has nothing that the doctor complains of', async () => {
    const checks = JSON.parse(await run('doctor', '--json'));
    expect(JSON.stringify(checks)).to.not.match(/"(warn|fail)"/);
  });
});
