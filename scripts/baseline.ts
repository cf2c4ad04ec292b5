/**
 * Accepts what the fixtures become now as what they are to become: `npm run baseline`. Writes the figures of this
 * machine's ImageMagick, and of version 7 by a Debian 13 where this machine has 6 and can make one. Before that it
 * says what changed; `git diff` shows the commands that did it.
 */
import { spawnSync } from 'node:child_process';
import { pino } from 'pino';
import { runProgram } from '../src/cli/program.ts';
import { loadConfig } from '../src/config.ts';
import { createConversionEngine } from '../src/conversion/engine.ts';

const root = new URL('..', import.meta.url).pathname;
process.chdir(root);
const HERE_ALONE = process.argv.includes('--here');
/** What scripts/debian-13.sh ends with where it cannot make one. */
const NO_DEBIAN_13 = 75;

const mill = await createConversionEngine(loadConfig(process.env), pino({ level: 'error' }));
const major = mill.toolchain.magick?.major;
await mill.close();
const file = `fixtures/baseline/imagemagick-${major}.json`;
const run = (...words: string[]) => runProgram(['regress', ...words], { env: process.env, version: '' });

console.log(`What becomes another than in ${file}, which is in baseline-${major}.html as well:`);
await run('check', 'fixtures', '--against', file, '--report', `baseline-${major}.html`);
const matrix = ['--matrix', 'fixtures/baseline/matrix.yaml'];
process.exitCode = await run('record', 'fixtures', ...matrix, '--to', file, '--figures-only');

if (major === 6 && !HERE_ALONE && process.exitCode === 0) {
  const { status } = spawnSync('sh', ['scripts/debian-13.sh', 'node', 'scripts/baseline.ts', '--here'], {
    stdio: 'inherit',
  });
  if (status === NO_DEBIAN_13) console.log('The figures of ImageMagick 7 stay as they were.');
  process.exitCode = status === NO_DEBIAN_13 ? 0 : (status ?? 1);
}
