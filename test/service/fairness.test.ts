import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { ask, fixture, fixturePath } from '../helpers/client.ts';
import { fakeMagick } from '../helpers/fake-magick.ts';
import { formWith, readBody, sendFrom } from '../helpers/from-address.ts';
import { scratch } from '../helpers/hooks.ts';
import { eventually } from '../helpers/scripts.ts';
import { useOwnServices } from '../helpers/service.ts';

describe('one client that fills the queue', function () {
  this.timeout(60_000);
  const { start, current } = useOwnServices();
  let photo: Buffer;
  before(async () => {
    photo = await fixture('scene.jpg');
  });

  const batchOf = (count: number): FormData => {
    const form = new FormData();
    for (let at = 0; at < count; at += 1)
      form.append('files', new Blob([new Uint8Array(photo), `${at}`]), `${at}.jpg`); // no two are the same
    return form;
  };
  const waiting = async (): Promise<number> => {
    const { body } = await ask(current().base.replace('/api/v1', '/metrics'));
    return Number(/^imagemill_conversions_waiting (\d+)/m.exec(body.toString())?.[1]);
  };

  for (const concurrency of [1, 2]) {
    it(`holds another client up by no more than one running conversion, with ${concurrency} at once, and is refused itself`, async () => {
      const log = join(await scratch('order'), 'sizes');
      const tool = `wc -c < in >> ${log}; sleep 0.2; cp ${fixturePath('scene.webp')} image.webp`;
      await start({
        MAGICK_BIN: await fakeMagick(tool),
        CONCURRENCY: String(concurrency),
        QUEUE_LIMIT: '60',
      });
      const startedSizes = async () =>
        (await readFile(log, 'utf8').catch(() => '')).trim().split('\n').map(Number);
      const greedy = new AbortController();
      const send = (path: string, form: FormData) =>
        sendFrom('127.0.0.5', current().base + path, form, greedy.signal).then(
          ({ status }) => status,
          () => 0,
        );
      const batches = Array.from({ length: 3 }, () => send('/batch', batchOf(20)));
      await eventually(async () => (await waiting()) >= 60 - concurrency);
      const singles = Array.from({ length: 4 }, () => send('/convert', formWith(photo)));
      expect(await Promise.race(singles)).to.equal(503);

      const small = Buffer.concat([photo, Buffer.alloc(5000)]);
      const before = (await startedSizes()).length;
      const { status, response } = await sendFrom('127.0.0.9', `${current().base}/convert`, formWith(small));
      await readBody(response);
      expect(status).to.equal(200);
      const place = (await startedSizes()).indexOf(small.length) - before;
      // The upload may take as long as some conversions on a busy machine.
      expect(place, 'conversions that were started before').to.be.within(0, 2 * concurrency);

      const sent = await sendFrom('127.0.0.9', `${current().base}/batch`, batchOf(3));
      await readBody(sent.response);
      expect(sent.status).to.equal(200);
      greedy.abort();
      await Promise.all([...batches, ...singles]);
    });
  }
});
