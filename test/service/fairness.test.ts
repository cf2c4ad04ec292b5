// @full
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { buildBrokenCodec } from '../helpers/broken-codec.ts';
import { conversionsWaiting, convert, distinctFiles, fixture, formOf, sendForm } from '../helpers/client.ts';
import { COPY_SCENE, fakeMagick } from '../helpers/fake-magick.ts';
import { formWith, readBody, type Sender, sendFrom } from '../helpers/from-address.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { useOwnServices } from '../helpers/service.ts';
import { requires } from '../helpers/skips.ts';
import { eventually, processesWhere } from '../helpers/util.ts';

/** The clients of a trusted application, which share its address. */
const TRUSTED = { TRUSTED_CLIENTS: '127.0.0.1' };
const sender = (client: number): Sender => ({ id: `client ${client}` });

const CONCURRENCY = 2;
const photo = await fixture('scene.jpg');

describe('a client that fills the queue', () => {
  const { start, current } = useOwnServices();

  const batchOf = (count: number): FormData => formOf({}, distinctFiles(photo, count), 'files');

  it('does not delay another client, and gets 503 itself', async () => {
    const folder = await makeTempDir('order');
    // Every conversion records the size of its input, and ends when the file
    // `end-<name of the record>` or `end` exists.
    const wait = `until [ -e ${folder}/end-$id ] || [ -e ${folder}/end ]; do sleep 0.02; done`;
    const tool = `id="$(date +%s%N)"; wc -c < in > ${folder}/$id; ${wait}; ${COPY_SCENE}`;
    const running = async () => (await readdir(folder)).filter((name) => /^\d+$/.test(name));
    const queueLimit = 60 - CONCURRENCY;
    await start({
      ...TRUSTED,
      MAGICK_BIN: await fakeMagick(tool),
      CONCURRENCY: String(CONCURRENCY),
      QUEUE_LIMIT: String(queueLimit),
    });
    const greedy = new AbortController();
    const send = (path: string, form: FormData) =>
      sendFrom(sender(5), current().base + path, form, greedy.signal).then(
        ({ status }) => status,
        () => 0,
      );
    const batches = Array.from({ length: 3 }, () => send('/batch', batchOf(20)));
    await eventually(async () => (await conversionsWaiting(current().base)) === queueLimit);
    expect(await send('/convert', formWith(photo)), 'one more of the same client').to.equal(503);

    const before = await eventually(async () => {
      const names = await running();
      return names.length === CONCURRENCY && names;
    });
    const small = Buffer.concat([photo, Buffer.alloc(5000)]);
    const modest = sendFrom(sender(9), `${current().base}/convert`, formWith(small));
    const next = await eventually(async () => (await running()).find((name) => !before.includes(name)));
    const size = await eventually(
      async () => Number(await readFile(join(folder, next), 'utf8')) || undefined,
    );
    expect(size, 'size of the input that starts while all others run').to.equal(small.length);
    const later = sendFrom(sender(9), `${current().base}/convert`, formWith(small));
    expect(await Promise.race([later.then(() => 0), ...batches]), 'a batch that freed a place').to.equal(503);
    await writeFile(join(folder, 'end'), '');
    for (const { status, response } of await Promise.all([modest, later])) {
      await readBody(response);
      expect(status).to.equal(200);
    }

    const sent = await sendFrom(sender(9), `${current().base}/batch`, batchOf(3));
    await readBody(sent.response);
    expect(sent.status).to.equal(200);
    greedy.abort();
    await Promise.all(batches);
  });
});

describe('a service with CONCURRENCY=100', () => {
  const { start, current } = useOwnServices();

  it('converts a hundred images at once in one tool, and answers no request with 503', async () => {
    await start({ CONCURRENCY: '100' });
    const { base } = current();
    const fields = { format: 'jpg', width: '800', enlarge: 'true' }; // makes each conversion long enough to overlap the others
    const responses = distinctFiles(photo, 100).map(([, file]) => convert(base, file, fields));
    const outcomes = (await Promise.all(responses)).map(({ outcome }) => outcome);
    expect(new Set(outcomes)).to.deep.equal(new Set(['200']));
    const { body } = await sendForm(new URL('/metrics', base).href);
    expect(body.toString()).to.include('imagemill_fork_server_renewals_total{reason="crash"} 0');
  });

  it('runs the tool a hundred times at once in its fork server', async function () {
    const RSVG_BIN = (await buildBrokenCodec('broken-codec')) ?? '';
    requires(this, 'compiler', RSVG_BIN !== '');
    await start({ CONCURRENCY: '100', SANDBOX: 'on', RSVG_BIN });
    const { base } = current();
    const running = () => processesWhere('cmdline', (command) => command.startsWith(RSVG_BIN)).length;
    const idle = running();
    expect(idle, 'processes of the fork server').to.be.above(0);
    const client = new AbortController();
    // Each conversion waits until it is killed at its time limit, and then the client sends
    // another.
    const waiting = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><!--attempt hang 0 / --></svg>');
    const keepSending = async (): Promise<void> => {
      while (!client.signal.aborted)
        await sendFrom(sender(1), `${base}/convert`, formWith(waiting), client.signal).catch(() => {});
    };
    const clients = Array.from({ length: 100 }, keepSending);
    await eventually(() => running() === idle + 100);
    client.abort();
    await Promise.all(clients);
  });
});
