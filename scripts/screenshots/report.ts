/**
 * @module Generates the regression report for the screenshot, with two deliberate changes: another resize filter, and
 * profiles that are stripped without a conversion.
 */
import { rmSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, writeFile } from 'node:fs/promises';
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

/**
 * Creates the report.
 *
 * @returns the path of the report, and a function that removes its folder
 */
export async function makeReport(): Promise<{ readonly path: string; remove(): void }> {
  const folder = await mkdtemp(join(tmpdir(), 'imagemill-report-'));
  const [images, matrix, baseline] = ['images', 'matrix.json', 'baseline'].map((name) => join(folder, name));
  const path = join(folder, 'report.html');
  await mkdir(images as string);
  for (const { name, content } of await landscapes()) await writeFile(join(images as string, name), content);
  await copyFile(fixturePath('p3.jpg'), join(images as string, 'display-p3.jpg'));
  await writeFile(matrix as string, JSON.stringify(MATRIX));

  const run = (words: string[], env: Record<string, string | undefined>) =>
    runProgram(['regress', ...words], { env, version: '' });
  const { env } = process;
  await run(['record', `${images}`, '--matrix', `${matrix}`, '--to', `${baseline}`], env);
  const MAGICK_BIN = await patchedMagick(`${otherFilter('Point')}\n    ${STRIP_ALONE}`);
  await run(['check', `${images}`, '--against', `${baseline}`, '--report', path], { ...env, MAGICK_BIN });
  mochaGlobalTeardown();
  return { path, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
