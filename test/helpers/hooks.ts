import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Context, Suite } from 'mocha';
import { unexpectedSkips } from './skips.ts';

/** Everything the suite puts on disk is below this folder, which all processes of a parallel run share. */
process.env.IMAGEMILL_SUITE ??= mkdtempSync(join(tmpdir(), 'imagemill-suite-'));
const suiteFolder = process.env.IMAGEMILL_SUITE;

/** The temporary folders of the services of this process, which must be empty after the tests of each file. */
export const servicesFolder = join(suiteFolder, `services-${process.pid}`);

/** Makes a folder for one test's own files. */
export async function makeTempDir(name: string): Promise<string> {
  const folder = join(suiteFolder, 'scratch', `${name}-${process.pid}-${process.hrtime.bigint()}`);
  await mkdir(folder, { recursive: true });
  return folder;
}

export const mochaHooks = {
  /** Runs after all tests; of a parallel run, after the tests of each file. */
  async afterAll(this: Context): Promise<void> {
    await (await import('./launchers.ts')).launchers.close();
    const suite = this.test?.parent as Suite;
    expect(unexpectedSkips(suite, process.env), 'skipped, and not named in MAY_SKIP').to.deep.equal([]);
    expect(remainingFiles(servicesFolder), 'left in TEMP_DIR').to.deep.equal([]);
  },
};

/** Runs once, in the process that mocha was started as. */
export function mochaGlobalTeardown(): void {
  rmSync(suiteFolder, { recursive: true, force: true });
}

/** What is in the folders of the services, each of which had one. */
function remainingFiles(folder: string): string[] {
  try {
    return readdirSync(folder).flatMap((service) => readdirSync(join(folder, service)));
  } catch {
    return []; // no service was ever started
  }
}
