/**
 * @module Measures what `imagemill convert --verify` costs, for docs/performance.md: converts a folder with and without it, in turns, and
 * prints the medians of the time and their ratio. `npm run build && node scripts/measure-verify.ts FOLDER [options of imagemill convert]`.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BUILT_PROGRAM } from './processes/start.ts';

const ROUNDS = 5;
const [folder, ...options] = process.argv.slice(2);
if (!folder) throw new Error('Usage: node scripts/measure-verify.ts FOLDER [options of imagemill convert]');
const temporary = mkdtempSync(join(tmpdir(), 'measure-verify-'));

try {
  const times: [without: number[], verified: number[]] = [[], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    times[0].push(convert(options));
    times[1].push(convert([...options, '--verify', 'visual']));
  }
  const [without = 0, verified = 0] = times.map((all) => all.sort((a, b) => a - b)[Math.floor(ROUNDS / 2)]);
  console.log(
    `medians of ${ROUNDS} rounds: ${without.toFixed(1)} s, with --verify visual ${verified.toFixed(1)} s, ratio ${(verified / without).toFixed(2)}`,
  );
} finally {
  rmSync(temporary, { recursive: true, force: true });
}

/** Converts the folder. Returns the time in seconds. */
function convert(more: readonly string[]): number {
  const args = [
    '--optimize-for-size',
    BUILT_PROGRAM,
    'convert',
    String(folder),
    '-o',
    join(temporary, 'out'),
    '--force',
  ];
  const started = performance.now();
  execFileSync(process.execPath, [...args, ...more], { stdio: ['ignore', 'ignore', 'inherit'] });
  return (performance.now() - started) / 1000;
}
