import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLaunchers } from '../../process/launcher/pool.ts';
import { createRunner } from '../../process/runner.ts';
import { findProgram } from '../../process/toolchain.ts';

/** JPEG XL by libjxl's own decoder, since no package of npm that is used here reads it. */

const SEARCH_PATH = '/usr/local/bin:/usr/bin:/bin';
const TIMEOUT_MS = 60_000;

/**
 * The picture as a PNG.
 *
 * @throws Error when there is no djxl here, CommandFailed when it cannot read the file
 */
export async function pngOfJxl(file: Buffer): Promise<Buffer> {
  const djxl = await findProgram('djxl', SEARCH_PATH);
  if (!djxl) throw new Error('JPEG XL is decoded by djxl: apt install libjxl-tools');
  const folder = await mkdtemp(join(tmpdir(), 'imagemill-jxl-'));
  const launchers = createLaunchers(async () => folder);
  try {
    await writeFile(join(folder, 'in.jxl'), file);
    const run = createRunner({ launchers, searchPath: SEARCH_PATH, policyFolder: '/nonexistent' });
    await run({ file: djxl, args: ['in.jxl', 'out.png', '--quiet'], cwd: folder, timeoutMs: TIMEOUT_MS });
    return await readFile(join(folder, 'out.png'));
  } finally {
    await launchers.close();
    await rm(folder, { recursive: true, force: true });
  }
}
