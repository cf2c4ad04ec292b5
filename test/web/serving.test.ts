// @full: starts a browser
import { copyFile, readFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { expect } from 'chai';
import sharp from 'sharp';
import { fixturePath, sendForm } from '../helpers/client.ts';
import { type Daemon, freePorts, startNginx } from '../helpers/daemons.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { useOwnServices, useServiceWith } from '../helpers/service.ts';
import { useBrowser } from './browser.ts';

const BUDGET = 45_000;

describe('serving the page', () => {
  const { start, startShared, current } = useOwnServices();
  const url = (path: string) => new URL(path, current().base).href;
  const asset = async (end: string, page = '/') => {
    const html = (await sendForm(url(page))).body.toString();
    return new RegExp(`"\\.(/assets/[^"]+\\.${end})"`).exec(html)?.[1] ?? '';
  };

  it('serves / with a Content-Security-Policy that allows only its own script', async () => {
    await startShared({});
    const { status, headers } = await sendForm(url('/'));
    expect([status, headers.get('content-type')]).to.deep.equal([200, 'text/html; charset=UTF-8']);
    const policy = headers.get('content-security-policy')?.split('; ');
    expect(policy).to.include.members([
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "connect-src 'self'",
      "form-action 'none'",
      "base-uri 'none'",
      "frame-ancestors 'none'",
    ]);
    expect(policy?.join()).to.not.include('unsafe');
  });

  it('makes clients revalidate the HTML, and cache other files for a year', async () => {
    await startShared({});
    const { headers } = await onTheWire(url('/'), {});
    expect(headers['cache-control']).to.equal('no-cache');
    const again = await onTheWire(url('/'), { 'if-none-match': headers.etag ?? '' });
    expect(again.statusCode).to.equal(304);
    for (const page of ['/', '/docs']) {
      for (const end of ['js', 'css', 'svg']) {
        const { status, headers } = await sendForm(url(await asset(end, page)));
        const cached = 'public, max-age=31536000, immutable';
        expect([status, headers.get('cache-control')], `${page} ${end}`).to.deep.equal([200, cached]);
      }
    }
  });

  it('returns 412 and 416 for conditions and ranges that a page does not meet', async () => {
    await startShared({});
    for (const path of ['/', await asset('js')]) {
      for (const [name, value, expected] of [
        ['if-match', '"other"', 412],
        ['if-unmodified-since', 'Thu, 01 Jan 1970 00:00:00 GMT', 412],
        ['range', 'bytes=9999999-', 416],
      ] as const) {
        const { status, headers, message } = await sendForm(url(path), { headers: { [name]: value } });
        expect([status, headers.get('content-encoding')], `${path} ${name}`).to.deep.equal([expected, null]);
        expect(message).to.match(/^The page or file does not /);
      }
    }
  });

  it('compresses with the encoding that the client prefers, to the same content', async () => {
    await startShared({});
    const path = await asset('js');
    const plain = await sendForm(url(path), { headers: { 'accept-encoding': 'identity' } });
    expect(plain.headers.get('content-encoding')).to.equal(null);
    for (const [accepted, sent] of [
      ['gzip, deflate, br', 'br'],
      ['gzip', 'gzip'],
    ] as const) {
      const { headers, body } = await sendForm(url(path), { headers: { 'accept-encoding': accepted } });
      expect([headers.get('content-encoding'), headers.get('vary')]).to.deep.equal([sent, 'Accept-Encoding']);
      expect(headers.get('content-type')).to.equal('text/javascript; charset=UTF-8');
      expect(body.equals(plain.body)).to.equal(true);
    }
  });

  it('transfers less than 45 kB on the first visit, even with gzip', async () => {
    await startShared({});
    const html = (await sendForm(url('/'))).body.toString();
    const paths = [
      '/',
      ...[...html.matchAll(/(?:src|href)="\.(\/assets\/[^"]+)"/g)].map(([, path]) => path ?? ''),
    ];
    expect(paths).to.have.length.within(4, 8); // with the parts of the script
    const sizes = await Promise.all(
      paths.map(async (path) => (await onTheWire(url(path), { 'accept-encoding': 'gzip' })).socket.bytesRead),
    );
    expect(sizes.reduce((sum, size) => sum + size)).to.be.within(10_000, BUDGET);
  });

  it('serves GET and HEAD, and rejects other methods with a JSON error', async () => {
    await startShared({});
    const head = await sendForm(url('/'), { method: 'HEAD' });
    expect([head.status, head.body.length]).to.deep.equal([200, 0]);
    for (const path of ['/', '/docs', await asset('js')]) {
      const refused = await sendForm(url(path), { method: 'POST', body: 'x' });
      expect([refused.status, refused.headers.get('allow')]).to.deep.equal([405, 'GET, HEAD, OPTIONS']);
      expect(refused.message).to.equal('POST is not allowed for this path: use GET, HEAD, OPTIONS.');
    }
    expect((await sendForm(url('/assets/nothing.js'))).outcome).to.equal(
      '404 There is nothing at this path. The API is below /api/v1. Its paths have no slash at the end.',
    );
  });

  it('does not count toward the rate limit', async () => {
    await start({ RATE_LIMIT_PER_MINUTE: '1' });
    for (const path of ['/', '/docs', await asset('css'), '/']) {
      const { status, headers } = await sendForm(url(path));
      expect([status, headers.get('x-ratelimit-limit')]).to.deep.equal([200, null]);
    }
    for (const [path, status] of [
      ['openapi.json', 200],
      ['health', 429],
    ] as const)
      expect((await sendForm(`${current().base}/${path}`)).status, path).to.equal(status);
  });
});

describe('the pages below a path of nginx', () => {
  const service = useServiceWith();
  const { open } = useBrowser();
  let nginx: Daemon;
  /** Address of the service behind nginx, without a slash. */
  let address: string;
  before(async () => {
    const [port = 0] = await freePorts(1);
    const server = `server { listen 127.0.0.1:${port};
      location /images/ { proxy_pass ${new URL('/', service.base)}; } }`;
    nginx = await startNginx(port, server);
    address = `http://127.0.0.1:${port}/images`;
  });
  after(() => nginx?.stop());
  /** Opens the page and returns what it requests from now on. */
  const openBelow = async () => {
    const page = await open({ base: `${address}/api/v1` });
    const requested: string[] = [];
    page.on('request', (request) => requested.push(request.url()));
    await page.reload();
    return {
      page,
      elsewhere: () => requested.filter((url) => !/^blob:/.test(url) && !url.startsWith(address)),
    };
  };

  it('convert an image, and show a curl command with the whole address, which does the same', async () => {
    const folder = await makeTempDir('below');
    await copyFile(fixturePath('scene.png'), join(folder, 'scene.png'));
    const { page, elsewhere } = await openBelow();
    await page.chooseFormat('JPEG');
    await page.convertFiles([join(folder, 'scene.png')]);
    const { content } = await page.save('scene.jpg');
    expect((await sharp(content).metadata()).format).to.equal('jpeg');
    expect(await page.curl()).to.include(`${address}/api/v1/convert`);
    await page.runCurl(folder);
    expect((await readFile(join(folder, 'scene.jpg'))).equals(content)).to.equal(true);
    expect(new URL(page.url()).pathname).to.equal('/images/');
    expect(elsewhere()).to.deep.equal([]);
  });

  it('have their manifest below the path', async () => {
    const { page } = await openBelow();
    const url = await page.locator('link[rel=manifest]').evaluate((link) => (link as HTMLLinkElement).href);
    expect(url).to.equal(`${address}/manifest.webmanifest`);
    const manifest = JSON.parse((await sendForm(url)).body.toString());
    const paths = [manifest.start_url, manifest.icons[0].src];
    const urls = paths.map((path) => new URL(path, url).href);
    expect(urls).to.deep.equal([`${address}/`, `${address}/icon-192.png`]);
  });

  it('include the API reference, whose examples have the whole address, and whose requests work', async () => {
    const { page, elsewhere } = await openBelow();
    const link = page.getByRole('link', { name: 'API reference' });
    expect(await link.evaluate((element) => (element as HTMLAnchorElement).href)).to.equal(`${address}/docs`);
    await page.goto(`${address}/docs/#/Conversion/convert`); // with a slash, it is redirected
    expect(page.url()).to.equal(`${address}/docs#/Conversion/convert`);
    const command = await page.locator('pre', { hasText: 'curl -F file=' }).textContent();
    expect(command).to.include(` ${address}/api/v1/convert`);
    await page.locator('[data-property-name=file] input[type=file]').setInputFiles(fixturePath('scene.jpg'));
    await page.button('Execute').click();
    await page.getByText('Download file').waitFor();
    await page.getByRole('link', { name: 'Convert images' }).click();
    await page.waitForURL(`${address}/**`);
    await page.loaded();
    expect(elsewhere()).to.deep.equal([]);
  });
});

/** Reads a whole response. fetch would decompress it and add headers for caches. */
function onTheWire(url: string, headers: Record<string, string>): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const req = request(url, { headers, agent: false }, (res) => {
      res.resume();
      res.once('end', () => resolve(res));
    });
    req.once('error', reject).end();
  });
}
