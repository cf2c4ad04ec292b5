// @full: all states of many files
// @slow
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import sharp from 'sharp';
import { createApiKey } from '../../src/files/api-keys.ts';
import { convert, fixture } from '../helpers/client.ts';
import { fakeMagick, gatedMagick } from '../helpers/fake-magick.ts';
import { makeTempDir, writeTempFile } from '../helpers/hooks.ts';
import { type OwnService, startService, useOwnServices } from '../helpers/service.ts';
import { eventually, isRunning } from '../helpers/util.ts';
import { readZip } from '../helpers/zip.ts';
import { boxOf, copies, countAtOnce, made, useBrowser, type WebPage } from './browser.ts';

const stopListening = async (server: Server) => {
  const closed = once(server, 'close');
  server.close();
  server.closeAllConnections();
  await closed;
};

describe('many files on the page', () => {
  const { open } = useBrowser();
  const { start, current, openRequests } = useOwnServices();

  /** Opens the page of a service with these settings, and picks copies of a photo. */
  const openWith = async (settings: Parameters<typeof start>[0], count: number, query = '') => {
    await start(settings);
    const page = await open(current(), {}, query);
    await page.pick(await copies(count));
    return page;
  };
  /** What the page waits for. */
  const notice = (page: WebPage, text: string) =>
    page.getByRole('region', { name: 'Waiting' }).getByText(text, { exact: true });
  const AWAY = 'The server cannot be reached.';

  it('sends 8 files with limited concurrency, and saves one ZIP of the results without another request', async () => {
    await start({ MAX_BATCH_FILES: '2' });
    const page = await open(current());
    const most = countAtOnce(current());
    let sent = 0;
    page.on('request', (request) => {
      if (!request.url().startsWith('blob:')) sent += 1;
    });
    await page.convertFiles(await copies(8));
    await page.finished(8);
    expect(most()).to.be.within(2, 3);

    const before = sent;
    const { name, names, entries } = await page.saveZip();
    expect(name).to.equal('converted.zip');
    expect(names).to.deep.equal(Array.from({ length: 8 }, (_, at) => `${at}.webp`));
    const { body } = await convert(current().base, await fixture('grey.jpg'));
    for (const { content } of entries) expect(content.equals(body)).to.equal(true);
    expect(sent).to.equal(before);
  });

  it('keeps the folders of a dropped folder in the ZIP, with names that every system can store', async () => {
    await start({});
    const folder = join(await makeTempDir('zip-folders'), 'trip');
    const image = await fixture('grey.jpg');
    for (const path of ['a.jpg', 'a.gif', 'day 1/a.jpg', 'day 1/CON.jpg', 'x:y/a.jpg']) {
      await mkdir(join(folder, path, '..'), { recursive: true });
      await writeFile(join(folder, path), image);
    }
    const page = await open(current());
    await page.getByLabel('Choose a folder').setInputFiles(folder);
    await page.convertAll();
    await page.finished(5);
    expect((await page.saveZip()).names.sort()).to.deep.equal([
      'trip/a (2).webp',
      'trip/a.webp',
      'trip/day 1/_CON.webp',
      'trip/day 1/a.webp',
      'trip/x_y/a.webp',
    ]);
  });

  it('writes a large ZIP directly into a file that the user selects, if the browser can do that', async () => {
    const page = await openWith({}, 2);
    await page.convertAll();
    await page.finished(2);
    // 600 MB of results would take too long: the page believes that the blobs are larger.
    await page.evaluate(() => {
      const written: Uint8Array[] = [];
      const handle = {
        createWritable: async () => new WritableStream({ write: (part) => void written.push(part) }),
      };
      const showSaveFilePicker = async ({ suggestedName }: { suggestedName: string }) => {
        Object.assign(window, { suggestedName });
        Object.defineProperty(Blob.prototype, 'size', size);
        return handle;
      };
      const size = Object.getOwnPropertyDescriptor(Blob.prototype, 'size') as PropertyDescriptor;
      Object.defineProperty(Blob.prototype, 'size', { ...size, get: () => 300_000_000 });
      Object.assign(window, { written, showSaveFilePicker });
    });
    await page.button('Download ZIP').click();
    await page.announced('converted.zip is ready.');
    const [name, bytes] = await page.evaluate(async () => {
      const blob = new Blob(Reflect.get(window, 'written'));
      return [Reflect.get(window, 'suggestedName'), [...new Uint8Array(await blob.arrayBuffer())]] as const;
    });
    expect(name).to.equal('converted.zip');
    expect((await readZip(Buffer.from(bytes))).map((entry) => entry.name)).to.deep.equal([
      '0.webp',
      '1.webp',
    ]);
  });

  it('saves each file with the options of its own conversion', async () => {
    const page = await openWith({}, 2, '?output_format=png&width=20');
    await page.getByRole('button', { name: 'Convert 0.jpg', exact: true }).click();
    await page.saveLink('0.png').waitFor();
    await page.ready('1.jpg');
    await page.chooseFormat('GIF');
    await page.getByRole('button', { name: 'Convert 1.jpg', exact: true }).click();
    await page.saveLink('1.gif').waitFor();
    const { entries } = await page.saveZip();
    const found = entries.map(async ({ name, content }) => [name, (await sharp(content).metadata()).width]);
    expect(await Promise.all(found)).to.deep.equal([
      ['0.png', 20],
      ['1.gif', 20],
    ]);
  });

  it('cancels all files, and the server stops converting', async () => {
    const { MAGICK_BIN, pids } = await gatedMagick();
    const page = await openWith({ MAGICK_BIN, CONCURRENCY: '2' }, 5);
    await page.button('Convert 5 files').click();
    const running = await eventually(async () => {
      const started = await pids();
      return started.length === 2 && started;
    });
    await page.row('0.jpg').getByText('Converting').waitFor();
    await page.row('4.jpg').getByText('Waiting').waitFor();
    await page.button('Cancel all').click();
    await eventually(async () => (await openRequests()).length === 0);
    // The server may start a waiting conversion between the first cancellation and the last.
    await eventually(async () => (await pids()).every((pid) => !isRunning(pid)));
    expect(await pids()).to.include.members(running);
    await page.button('Convert 5 files').waitFor();
  });

  it('ignores the second click of a double click on Convert and on Cancel all', async () => {
    const { MAGICK_BIN, pids, open: letGo } = await gatedMagick();
    const page = await openWith({ MAGICK_BIN, CONCURRENCY: '3' }, 3);
    await page.getByRole('button', { name: 'Convert 0.jpg', exact: true }).dblclick();
    await eventually(async () => (await pids()).length === 1);
    await page.row('0.jpg').getByText('Converting').waitFor();
    await page.button('Cancel all').dblclick();
    await page.button('Convert 3 files').dblclick();
    await eventually(async () => (await pids()).length === 4);
    await letGo();
    await page.finished(3);
  });

  /** Holds the conversions of a page back until `letGo`. */
  const hold = async (page: WebPage) => {
    const [gate, arrived] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    await page.route('**/api/v1/convert?*', async (route) => {
      arrived.resolve();
      await gate.promise;
      await route.continue();
    });
    return { letGo: gate.resolve, held: arrived.promise };
  };

  it('keeps the list if the last file is converted just before a click on "Cancel all", and clears it at once after', async () => {
    const page = await openWith({}, 2);
    const { letGo, held } = await hold(page);
    await page.button('Convert 2 files').click();
    await held;
    const place = await boxOf(page.button('Cancel all'));
    letGo();
    await page.finished(2);
    await page.mouse.click(place.x + place.width / 2, place.y + place.height / 2);
    expect(await page.names()).to.have.length(2);
    await page.button('Clear list').click(); // no click is ignored
    expect(await page.names()).to.have.length(0);
    await page.button('Undo').click();
    expect(await page.names()).to.have.length(2);
  });

  it('cancels single files and removes files during conversion', async () => {
    const { MAGICK_BIN, pids, open: letGo } = await gatedMagick();
    const page = await openWith({ MAGICK_BIN, CONCURRENCY: '3' }, 3);
    await page.button('Convert 3 files').click();
    await eventually(async () => (await pids()).length === 3);
    await page.button('Cancel 0.jpg').click();
    await page.button('Remove 1.jpg').click();
    await eventually(async () => (await openRequests()).length === 1);
    await letGo();
    await page.saveLink('2.webp').waitFor();
    await page.ready('0.jpg');
    await page.getByText('1 of 2 files').waitFor();
  });

  it('shows the upload progress of each file', async () => {
    await start({});
    const page = await open(current());
    const session = await page.context().newCDPSession(page);
    const photo = randomBytes(500_000);
    await session.send('Network.emulateNetworkConditions', {
      offline: false,
      latency: 0,
      downloadThroughput: -1,
      uploadThroughput: photo.length / 20, // so that the upload lasts longer than the next steps
    });
    await page.pick([made('photo.jpg', photo)]);
    await page.button('Convert 1 file').click();
    await page.getByText(/Uploading [1-9]\d?\s?%/).waitFor();
    const share = await page.getByRole('progressbar', { name: 'Upload of photo.jpg' }).getAttribute('value');
    expect(Number(share)).to.be.within(0.01, 0.99);
    await page.button('Cancel photo.jpg').click();
    await page.ready('photo.jpg');
  });

  it('waits while the server cannot be reached, and resumes when it responds again', async () => {
    const { MAGICK_BIN, pids, open: letGo } = await gatedMagick();
    const page = await openWith({ MAGICK_BIN }, 4);
    await page.button('Convert 4 files').click();
    await eventually(async () => (await pids()).length >= 2);
    const { server } = current();
    const { port } = server.address() as { port: number };
    server.close();
    server.closeAllConnections();
    await notice(page, AWAY).waitFor();
    await page.row('0.jpg').getByText('Waiting').waitFor();
    await letGo();
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    await page.finished(4);
    expect(await notice(page, AWAY).count()).to.equal(0);
  });

  it('waits while the server restarts: draining, stopped, then replaced', async () => {
    await start({});
    const page = await open(current());
    await page.clock.install();
    const { server, service } = current();
    const { port } = server.address() as AddressInfo;
    await page.pick(await copies(3));
    service.drain();
    await page.button('Convert 3 files').click();
    await notice(page, 'The server is overloaded.').waitFor();
    await page.row('0.jpg').getByText('Waiting').waitFor();
    await stopListening(server);
    await page.clock.runFor(6_000);
    await notice(page, AWAY).waitFor();
    await using next = await startService();
    await stopListening(next.server);
    next.server.listen(port, '127.0.0.1');
    await once(next.server, 'listening');
    await page.clock.runFor(2_000);
    await page.finished(3);
  });

  it('waits while a proxy that hides /livez responds that it cannot reach the server', async () => {
    await start({});
    const behind = current().server.address() as AddressInfo;
    let away = false;
    const proxy = createServer((req, res) => {
      if (away) return res.writeHead(502).end('<h1>502 Bad Gateway</h1>');
      if (req.url === '/livez') return res.writeHead(404).end('<h1>404 Not Found</h1>');
      const { method, url: path, headers } = req;
      const onward = request({ port: behind.port, host: '127.0.0.1', method, path, headers }, (answer) => {
        answer.pipe(res.writeHead(answer.statusCode ?? 0, answer.headers));
      });
      req.pipe(onward);
    }).listen(0, '127.0.0.1');
    try {
      await once(proxy, 'listening');
      const { port } = proxy.address() as AddressInfo;
      const page = await open({ base: `http://127.0.0.1:${port}/api/v1` });
      await page.pick(await copies(2));
      await page.row('1.jpg').waitFor();
      away = true;
      await page.button('Convert 2 files').click();
      await notice(page, AWAY).waitFor();
      away = false;
      await page.finished(2);
    } finally {
      await stopListening(proxy);
    }
  });

  const html = { contentType: 'text/html', body: '<html>' };
  for (const [title, answer, message] of [
    [
      'shows the status if a proxy rejects a file with JSON of its own',
      { status: 400, json: { error: 'Forbidden' } },
      'The server responded with status 400.',
    ],
    [
      'shows the status if a proxy answers with a page to log in',
      { status: 200, ...html },
      'The server responded with status 200.',
    ],
    [
      'says what a proxy refused, and names its setting, if it answers with 413 and a page',
      { status: 413, ...html },
      /^A proxy in front of the server refused 2 kB\. .* \(nginx: client_max_body_size\)\.$/,
    ],
  ] as const) {
    it(title, async () => {
      const page = await openWith({}, 1);
      await page.route('**/api/v1/convert?*', (route) => route.fulfill(answer));
      await page.convertAll();
      await page.row('0.jpg').getByText(message).waitFor();
    });
  }

  it('does not retry a conversion that exceeded its time limit', async () => {
    const page = await openWith({ MAGICK_BIN: await fakeMagick('sleep 60'), CONVERT_TIMEOUT_MS: '500' }, 1);
    await page.convertAll();
    await page.row('0.jpg').getByText('took longer to convert than the limit of 0.5 seconds').waitFor();
  });
});

describe('more requests than the rate limit on the page', () => {
  const { open } = useBrowser();
  let service: OwnService;
  let now = 0;
  const startWith = async (limit: number): Promise<WebPage> => {
    now = 1_000_000;
    service = await startService({ RATE_LIMIT_PER_MINUTE: String(limit) }, () => now);
    const page = await open(service);
    await page.clock.install();
    return page;
  };
  afterEach(() => service.stop());

  it('shows a countdown and resumes, with 4 files and one other request in total', async () => {
    const began = Date.now();
    const page = await startWith(3);
    await page.pick(await copies(4));
    await page.button('Convert 4 files').click();
    // The other request loaded the formats.
    await page.getByText('2 of 4 files').waitFor();
    const left = page.locator('.notice .number');
    const count = async () => Number.parseInt((await left.textContent()) ?? '', 10);
    /** Seconds by which the clock of the page may have advanced between the steps of the test. */
    const used = () => Math.ceil((Date.now() - began) / 1000) + 1;
    expect(await count()).to.be.within(60 - used(), 60);
    await page.clock.runFor(10_000);
    expect(await count()).to.be.within(50 - used(), 50);
    now += 60_000;
    await page.clock.runFor(60_000);
    await page.settled();
    await page.finished(4);
    expect(await left.count()).to.equal(0);
  });

  it('shows the countdown in the comparison, too, and then the result', async () => {
    const page = await startWith(2); // one request loads the formats
    await page.pick(await copies(2));
    await page.getByRole('button', { name: 'Convert 0.jpg', exact: true }).click();
    await page.saveLink('0.webp').waitFor();
    await page.button('Compare 1.jpg').click();
    await page.clock.runFor(300); // the page waits for a moment before the request
    const dialog = page.getByRole('dialog');
    await dialog
      .getByText(/^The rate limit of the server is reached\. The page continues in \d+ s\.$/)
      .waitFor();
    await dialog.locator('output').getByText('Waiting').waitFor();
    expect(await page.locator('.notice').count()).to.equal(1);
    now += 60_000;
    await page.clock.runFor(60_000);
    await dialog.locator('output').getByText('%').waitFor();
    expect(await dialog.locator('.notice').count()).to.equal(0);
  });
});

describe('the page of a server that needs an API key', () => {
  const { open } = useBrowser();
  const { start, current } = useOwnServices();

  it('asks for the key again after a wrong one, keeps it for the tab, and names it in the curl command', async () => {
    const { key, line } = createApiKey('page') as { key: string; line: string };
    const API_KEYS_FILE = await writeTempFile('keys', line);
    await start({ API_KEYS_FILE, REQUIRE_API_KEY: 'on' });
    const page = await open(current());
    const form = page.getByRole('form', { name: 'API key' });
    const enter = async (text: string) => {
      await form.getByLabel('API key').fill(text);
      await form.getByRole('button', { name: 'Use key' }).click();
    };
    await form.getByText('This server needs an API key.').waitFor();
    await enter('wrong');
    await form.getByText('The server does not accept this API key.').waitFor();
    await enter(key);
    await form.waitFor({ state: 'detached' });
    await page.convertFiles(['grey.jpg']);
    await page.saveLink('grey.webp').waitFor();

    await page.reload();
    await page.loaded();
    expect(await form.count()).to.equal(0);
    const command = await page.curl();
    expect(command).to.include('-H "Authorization: Bearer $API_KEY"').and.not.include(key);
  });
});
