/**
 * @module Records the current conversion results of the fixtures as the new baseline:
 * `npm run baseline`.
 *
 * First prints what changed since the last baseline. Then writes the fingerprints for the
 * ImageMagick of this machine. If that is version 6, repeats both steps for version 7 in a Debian
 * 13 chroot, where `scripts/debian-13.sh` can make one. To see which commands caused a change, run
 * `git diff` on the baseline.
 */
import { spawnSync } from 'node:child_process';
import { runProgram } from '../src/cli/program.ts';
import { startEngine } from './engine.ts';

const root = new URL('..', import.meta.url).pathname;
process.chdir(root);
const THIS_MACHINE_ONLY = process.argv.includes('--here');
/**
 * Exit status of `scripts/debian-13.sh` when it cannot create the chroot (`EX_TEMPFAIL` of
 * sysexits.h).
 */
const NO_DEBIAN_13 = 75;

const engine = await startEngine('error');
const major = engine.toolchain.magick?.major;
await engine.close();
const file = `fixtures/baseline/imagemagick-${major}.json`;
const run = (...words: string[]) => runProgram(['regress', ...words], { env: process.env, version: '' });

console.log(`Changes since ${file}, also in baseline-${major}.html:`);
await run('check', 'fixtures', '--against', file, '--report', `baseline-${major}.html`);
const matrix = ['--matrix', 'fixtures/baseline/matrix.yaml'];
process.exitCode = await run('record', 'fixtures', ...matrix, '--to', file, '--fingerprints-only');

if (major === 6 && !THIS_MACHINE_ONLY && process.exitCode === 0) {
  const { status } = spawnSync('sh', ['scripts/debian-13.sh', 'node', 'scripts/baseline.ts', '--here'], {
    stdio: 'inherit',
  });
  if (status === NO_DEBIAN_13) console.log('The baseline of ImageMagick 7 was not changed.');
  process.exitCode = status === NO_DEBIAN_13 ? 0 : (status ?? 1);
}
