// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { readdir } from 'node:fs/promises';
import { expect } from 'chai';
import { createRunner, environmentOf } from '../../src/process/runner.ts';
import { findToolchain, type Magick } from '../../src/process/toolchain.ts';
import { fixturePath } from '../helpers/client.ts';
import { confinedRunner, startForkServers } from '../helpers/fork-servers.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { testConfig } from '../helpers/service.ts';
import { failure, PATIENCE_MS } from '../helpers/util.ts';

const POLICY = new URL('../../assets', import.meta.url).pathname;
const { PATH, MAGICK_BIN } = testConfig();
const search = { searchPath: PATH, policyFolder: POLICY };

describe('time limit of ImageMagick', () => {
  let magick: Magick;
  before(async () => {
    magick = (await findToolchain({ path: PATH, named: { magick: MAGICK_BIN } })).magick as Magick;
  });

  /** The line of `-list resource`: version 6 prints seconds, version 7 prints units. */
  async function timeLimit(timeoutMs: number): Promise<string | undefined> {
    const command = {
      file: magick.path,
      args: ['-list', 'resource'],
      cwd: await makeTempDir('limit'),
      timeoutMs,
    };
    const { stdout } = await createRunner(search)(command);
    return /^\s*Time: (.*)$/m.exec(stdout)?.[1];
  }

  it('is CONVERT_TIMEOUT_MS plus one second, even above one minute', async () => {
    expect(await timeLimit(29_000)).to.be.oneOf(['30', '30 seconds']);
    expect(await timeLimit(119_000)).to.be.oneOf(['120', '2 minutes']);
    expect(await timeLimit(2 ** 31 - 1)).to.be.oneOf(['2147485', '2147485 seconds']);
  });

  it('ends a long job of a fork server, and no job of a server that is older than the limit', async () => {
    const env = environmentOf(search, { cwd: '/nonexistent', timeoutMs: 3000 }); // a limit of four seconds
    const servers = await startForkServers([], {
      env,
      tools: [{ file: magick.path, prepare: 'magick PNG', dependencies: [] }],
    });
    try {
      const cwd = await makeTempDir('limit');
      const run = confinedRunner(servers, search);
      const scene = fixturePath('scene.png');
      const blur = (size: number) =>
        run({
          file: magick.path,
          args: `PNG:${scene} -resize ${size}x${size}! -blur 0x300 PNG:blurred.png`.split(' '),
          cwd,
          timeoutMs: PATIENCE_MS,
        });
      expect((await failure(blur(3000))).stderr).to.match(/time limit exceeded/i);
      await blur(8);
      expect(await readdir(cwd)).to.deep.equal(['blurred.png']);
    } finally {
      await servers.close();
    }
  });
});
