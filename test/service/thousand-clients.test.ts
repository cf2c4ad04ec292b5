import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { conversionsWaiting, fixture, sendForm } from '../helpers/client.ts';
import { COPY_SCENE, fakeMagick } from '../helpers/fake-magick.ts';
import { formWith, readBody, sendFrom } from '../helpers/from-address.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { useOwnServices } from '../helpers/service.ts';
import { eventually } from '../helpers/util.ts';

/** Maximum number of conversions that run at once: two, and one in the reserved slot. */
const RUNNING = 3;

describe('a thousand clients behind one address', () => {
  const { start, current } = useOwnServices();

  it('keep their places in the queue when one of them wants hundreds', async () => {
    const folder = await makeTempDir('thousand');
    const tool = `until [ -e ${folder}/end ]; do sleep 0.1; done; ${COPY_SCENE}`;
    await start({
      MAGICK_BIN: await fakeMagick(tool),
      TRUSTED_CLIENTS: '127.0.0.1',
      CONCURRENCY: '2',
      QUEUE_LIMIT: '1100',
      CONVERT_TIMEOUT_MS: '600000',
    });
    const { base } = current();
    const image = await fixture('scene.gif');
    const send = async (id: string) => {
      const { status, response } = await sendFrom({ id }, `${base}/convert`, formWith(image));
      await readBody(response);
      return status;
    };
    const greedy = Array.from({ length: 300 }, () => send('greedy'));
    await eventually(async () => (await conversionsWaiting(base)) >= 300 - RUNNING);
    const modest = Array.from({ length: 1000 }, (_, at) => send(`modest ${at}`));
    const refusals = async () => {
      const { body } = await sendForm(new URL('/metrics', base).href);
      return Number(
        /^imagemill_requests_refused_total\{reason="queue_full"\} (\d+)/m.exec(body.toString())?.[1],
      );
    };
    // All requests have arrived when each one runs, waits or was refused.
    await eventually(async () => (await refusals()) + (await conversionsWaiting(base)) >= 1300 - RUNNING);
    await writeFile(join(folder, 'end'), '');
    expect(new Set(await Promise.all(modest))).to.deep.equal(new Set([200]));
    const refused = (await Promise.all(greedy)).filter((status) => status === 503);
    expect(refused.length).to.be.within(200 - RUNNING, 200);
  });
});
