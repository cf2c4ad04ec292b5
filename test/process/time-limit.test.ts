import { expect } from 'chai';
import type { Command } from '../../src/process/command.ts';
import { createRunner } from '../../src/process/runner.ts';
import { findToolchain, type Magick } from '../../src/process/toolchain.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { testConfig } from '../helpers/service.ts';

const POLICY = new URL('../../assets', import.meta.url).pathname;
const { PATH, MAGICK_BIN } = testConfig();
const search = { searchPath: PATH };

describe('time limit of ImageMagick', () => {
  let magick: Magick;
  before(async () => {
    const ask = createRunner({ ...search, policyFolder: '/nonexistent' });
    magick = (await findToolchain({ path: PATH, magickBin: MAGICK_BIN }, ask)).magick as Magick;
  });

  /** The line of `-list resource`: version 6 prints seconds, version 7 prints units. */
  async function timeLimit(timeoutMs: number): Promise<string | undefined> {
    const command: Command = {
      file: magick.path,
      args: ['-list', 'resource'],
      cwd: await makeTempDir('limit'),
      timeoutMs,
    };
    const { stdout } = await createRunner({ ...search, policyFolder: POLICY })(command);
    return /^\s*Time: (.*)$/m.exec(stdout)?.[1];
  }

  it('is CONVERT_TIMEOUT_MS plus one second, even above one minute', async () => {
    expect(await timeLimit(29_000)).to.be.oneOf(['30', '30 seconds']);
    expect(await timeLimit(119_000)).to.be.oneOf(['120', '2 minutes']);
    expect(await timeLimit(2 ** 31 - 1)).to.be.oneOf(['2147485', '2147485 seconds']);
  });
});
