// @full
import { spawnSync } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Context } from 'mocha';
import { fixture } from '../helpers/client.ts';
import { COPY_SCENE, fakeMagick } from '../helpers/fake-magick.ts';
import { formWith, readBody, readSlowly, type Sent, sendFrom } from '../helpers/from-address.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { plain } from '../helpers/pixels.ts';
import { type ServiceProcess, startProcess } from '../helpers/process.ts';
import { requestFolders, useOwnServices } from '../helpers/service.ts';
import { requires } from '../helpers/skips.ts';

/** Size of the disk in MiB. */
const DISK = 250;
/** Side and bytes of the results that fill the disk. */
const SIDE = 3652;
const RESULT_BYTES = 54 + 3 * SIDE ** 2;
/** Read rate of the slow clients, in bytes per second. */
const SLOW = 30_000;

describe('slow readers', () => {
  const service = useSmallDisk(DISK);
  let small: Buffer;
  before(async () => {
    // A few kilobytes that become 40 MB as BMP.
    small = await plain(SIDE, SIDE).png({ palette: true }).toBuffer();
  });

  /** Requests large results for each client in turn, and reads the answers slowly. */
  const fillDisk = async (base: string, addresses: readonly string[]) => {
    const answers: (Sent & ReturnType<typeof readSlowly>)[] = [];
    for (const address of addresses) {
      const sent = await sendFrom(address, `${base}/convert`, formWith(small, 'file', { format: 'bmp' }));
      answers.push({ ...sent, ...readSlowly(sent.response, SLOW) });
    }
    return answers;
  };

  it('are disconnected when a client that holds less needs the space, and only as many as necessary', async function () {
    const base = await service.start(this);
    const addresses = ['5', '5', '5', '6', '6', '7'].map((last) => `127.0.0.${last}`);
    const slow = await fillDisk(base, addresses);
    expect(slow.map(({ status }) => status)).to.deep.equal(addresses.map(() => 200));
    const form = formWith(small, 'file', { format: 'bmp' });
    const { status, response } = await sendFrom('127.0.0.9', `${base}/convert`, form);
    expect([status, (await readBody(response)).length]).to.deep.equal([200, RESULT_BYTES]);
    const isWhole = await Promise.all(slow.map(({ readRest }) => readRest()));
    expect(isWhole.filter((whole) => !whole)).to.have.length(1);
    expect(isWhole.at(-1), 'the answer of the client that holds least').to.equal(true);
  });
});

describe('a response', () => {
  const { start, current, nothingLeft } = useOwnServices();
  const LARGE = `${COPY_SCENE}; head -c 15000000 /dev/zero >> image.webp`;
  const sendPhoto = async () =>
    sendFrom('127.0.0.1', `${current().base}/convert`, formWith(await fixture('scene.jpg')));

  it('that is read too slowly is aborted and leaves no files', async () => {
    await start({
      MAGICK_BIN: await fakeMagick(LARGE),
      UPLOAD_TIMEOUT_MS: '3000', // the client, which is in this process, must have the headers by then
    });
    const { response } = await sendPhoto();
    const { readRest } = readSlowly(response, 1000);
    await nothingLeft();
    expect(await readRest(), 'whole').to.equal(false);
  });

  it('has no file name on disk while it is sent, and its input is deleted', async () => {
    await start({ MAGICK_BIN: await fakeMagick(LARGE) });
    const { response } = await sendPhoto();
    const [folder] = await requestFolders(current().tempDir);
    const [home] = await readdir(current().tempDir);
    expect(await readdir(join(current().tempDir, String(home), String(folder)))).to.deep.equal([]);
    expect((await readBody(response)).length).to.be.above(15_000_000);
  });
});

/** Starts a service whose temporary files are on a tmpfs of this size, in MiB. */
function useSmallDisk(mebibytes: number) {
  let server: ServiceProcess | undefined;
  afterEach(async () => {
    server?.child.kill('SIGTERM');
    await server?.ended();
    server = undefined;
  });
  return {
    /** Skips the test if the user may not mount file systems. */
    async start(test: Context): Promise<string> {
      const TEMP_DIR = await makeTempDir('small-disk');
      const mount = `mount -t tmpfs -o size=${mebibytes}m tmpfs '${TEMP_DIR}'; exec "$@"`;
      const user = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user'];
      const apart = [...user, '--mount', 'sh', '-ec', mount, 'sh'];
      requires(test, 'mounts', spawnSync('unshare', [...apart, 'true']).status === 0);
      server = startProcess({ TEMP_DIR }, ['unshare', ...apart]);
      return server.base();
    },
  };
}
