import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Context, Suite, Test } from 'mocha';
import { unexpectedSkips } from './skips.ts';

/**
 * Folder for all files of the test run, shared by all processes of a parallel run. The first file
 * creates it, so that scripts can import test helpers without leaving an empty folder.
 */
process.env.IMAGEMILL_SUITE ??= join(tmpdir(), `imagemill-suite-${randomBytes(4).toString('hex')}`);
const suiteFolder = process.env.IMAGEMILL_SUITE;

/**
 * Compiled code, shared by all programs that the tests start. Not used for coverage, which it would
 * make less precise.
 */
if (!process.env.NODE_V8_COVERAGE) process.env.NODE_COMPILE_CACHE ??= join(suiteFolder, 'compiled');

/**
 * Parent of the temporary folders of all services in this process. They must be empty after each
 * test file.
 */
export const servicesFolder = join(suiteFolder, String(process.pid));

let folders = 0;

/** Creates a folder for the files of one test. */
export async function makeTempDir(name: string): Promise<string> {
  folders += 1;
  const folder = join(suiteFolder, 'scratch', `${name}-${process.pid}-${folders}`);
  await mkdir(folder, { recursive: true });
  return folder;
}

/**
 * Returns the cache folder of the user who runs commands, and creates it. With it, only the first
 * command tries the tools.
 */
export function userCache(): string {
  const folder = join(suiteFolder, 'user-cache');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return folder;
}

/** Writes a file into a folder of its own, and returns its path. */
export async function writeTempFile(name: string, content: string | Uint8Array): Promise<string> {
  const path = join(await makeTempDir('file'), name);
  await writeFile(path, content);
  return path;
}

/** Tests in a browser. Chromium can stop drawing a page, so that no click ever ends. */
const BROWSER_TESTS = /\/test\/(?:web\/|service\/docs\.)/;

/** Hooks that mocha runs in every process. */
export const mochaHooks = {
  /** Repeats a failed test in a browser once, and says so. */
  beforeEach(this: Context): void {
    const test = this.currentTest as Test & { currentRetry(): number };
    if (!BROWSER_TESTS.test(test.file ?? '')) return;
    if (test.currentRetry() > 0) console.warn(`Repeated: ${test.fullTitle()}`);
    test.retries(1);
  },
  /**
   * Runs after all tests or, in a parallel run, after each test file. Fails on unexpected skips and
   * leftover files.
   */
  async afterAll(this: Context): Promise<void> {
    const suite = this.test?.parent as Suite;
    expect(unexpectedSkips(suite, process.env), 'skipped, and not named in MAY_SKIP').to.deep.equal([]);
    expect(remainingFiles(servicesFolder), 'left in TEMP_DIR').to.deep.equal([]);
  },
};

/**
 * Runs once in the main process of mocha. Mocha replaces this status at the end, but not after
 * SIGINT in a parallel run.
 */
export function mochaGlobalSetup(): void {
  process.exitCode = 1;
}

/** Runs once in the main process of mocha. */
export function mochaGlobalTeardown(): void {
  rmSync(suiteFolder, { recursive: true, force: true });
}

/** Lists the leftovers in the folders of all services. */
function remainingFiles(folder: string): string[] {
  try {
    return readdirSync(folder).flatMap((service) => readdirSync(join(folder, service)));
  } catch {
    return []; // no service was ever started
  }
}
