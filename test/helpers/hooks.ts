import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Context, Suite } from 'mocha';
import { unexpectedSkips } from './skips.ts';

/** Everything the suite puts on disk is below this folder. */
export const suiteFolder = mkdtempSync(join(tmpdir(), 'imagemill-suite-'));

/** A fresh folder for one test's own files. */
export async function makeTempDir(name: string): Promise<string> {
  const folder = join(suiteFolder, 'scratch', `${name}-${process.hrtime.bigint()}`);
  await mkdir(folder, { recursive: true });
  return folder;
}

export const mochaHooks = {
  async afterAll(this: Context): Promise<void> {
    await (await import('./launchers.ts')).launchers.close();
    try {
      const suite = this.test?.parent as Suite;
      expect(unexpectedSkips(suite, process.env), 'skipped, and not named in MAY_SKIP').to.deep.equal([]);
      expect(
        remainingFiles(join(suiteFolder, 'service')),
        'left in TEMP_DIR by the whole suite',
      ).to.deep.equal([]);
    } finally {
      rmSync(suiteFolder, { recursive: true, force: true });
    }
  },
};

/** What is in the folders of the services, each of which had one. */
function remainingFiles(folder: string): string[] {
  try {
    return readdirSync(folder).flatMap((service) => readdirSync(join(folder, service)));
  } catch {
    return []; // no service was ever started
  }
}
