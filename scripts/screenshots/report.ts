/**
 * @module Generates the regression report for the screenshot, with two deliberate changes: another
 * resize filter, and profiles that are stripped without a conversion.
 */
import { copyFileSync, mkdirSync, mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runProgram } from '../../src/cli/program.ts';
import { fixturePath } from '../../test/helpers/client.ts';
import { otherFilter, patchedMagick, STRIP_ALONE } from '../../test/helpers/fake-magick.ts';
import { mochaGlobalTeardown } from '../../test/helpers/hooks.ts';
import { landscapes } from './landscapes.ts';

const MATRIX = {
  cases: [
    { name: 'webp', format: 'webp' },
    { name: 'jpg', format: 'jpg' },
    { name: 'png-400', format: 'png', width: 400 },
    { name: 'webp-400', format: 'webp', width: 400 },
  ],
};

/** A report, whose folder is removed with the block of its variable. */
type Report = Disposable & { readonly path: string };

/** Creates the report. */
export async function makeReport(): Promise<Report> {
  const folder = mkdtempDisposableSync(join(tmpdir(), 'imagemill-report-'));
  const at = (name: string): string => join(folder.path, name);
  mkdirSync(at('images'));
  for (const { name, content } of (await landscapes()).slice(0, 6))
    writeFileSync(at(`images/${name}`), content);
  copyFileSync(fixturePath('p3.jpg'), at('images/display-p3.jpg'));
  writeFileSync(at('matrix.json'), JSON.stringify(MATRIX));

  const run = (env: NodeJS.ProcessEnv, ...words: string[]) =>
    runProgram(['regress', ...words], { env, version: '' });
  const { env } = process;
  await run(env, 'record', at('images'), '--matrix', at('matrix.json'), '--to', at('baseline'));
  const MAGICK_BIN = await patchedMagick(`${otherFilter('Point')}\n    ${STRIP_ALONE}`);
  const patched = { ...env, MAGICK_BIN };
  await run(patched, 'check', at('images'), '--against', at('baseline'), '--report', at('report.html'));
  mochaGlobalTeardown();
  return { path: at('report.html'), [Symbol.dispose]: () => folder.remove() };
}
