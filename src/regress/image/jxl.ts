/** @module Decodes JPEG XL with djxl of libjxl, since no npm package of this project supports it. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NO_POLICY_FOLDER } from '../../process/policy.ts';
import { createRunner } from '../../process/runner.ts';
import { findProgram } from '../../process/toolchain.ts';

const SEARCH_PATH = '/usr/local/bin:/usr/bin:/bin';
const TIMEOUT_MS = 60_000;

/**
 * Converts JPEG XL to PNG.
 *
 * @throws {Error} if djxl is not installed
 * @throws {CommandError} if djxl cannot read the file
 */
export async function jxlToPng(file: Buffer): Promise<Buffer> {
  const djxl = await findProgram('djxl', SEARCH_PATH);
  if (!djxl) throw new Error('JPEG XL is decoded by djxl: apt install libjxl-tools');
  const folder = await mkdtemp(join(tmpdir(), 'imagemill-jxl-'));
  try {
    await writeFile(join(folder, 'in.jxl'), file);
    const run = createRunner({ searchPath: SEARCH_PATH, policyFolder: NO_POLICY_FOLDER });
    await run({ file: djxl, args: ['in.jxl', 'out.png', '--quiet'], cwd: folder, timeoutMs: TIMEOUT_MS });
    return await readFile(join(folder, 'out.png'));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
