// @full: the reference of the API in a browser
import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import type { Browser, Page } from 'playwright-core';
import { launchChromium, openPage } from '../helpers/chromium.ts';
import { fixturePath, sendForm } from '../helpers/client.ts';
import { decode } from '../helpers/pixels.ts';
import { type OwnService, startService } from '../helpers/service.ts';
import { readZip } from '../helpers/zip.ts';

describe('GET /docs', () => {
  let service: OwnService;
  let origin: string;
  before(async () => {
    service = await startService({ RATE_LIMIT_PER_MINUTE: '100' });
    origin = new URL(service.base).origin;
  });
  after(() => service.stop());

  const filesOfPage = async (): Promise<string[]> => {
    const page = (await sendForm(`${origin}/docs`)).body.toString();
    return [...page.matchAll(/(?:href|src)="\.(\/[^"]+\.(?:js|css))"/g)].map(([, path]) => path as string);
  };

  it('returns an HTML page with a strict Content-Security-Policy: no other origins, no inline code', async () => {
    for (const path of ['/docs', '/docs/']) {
      const { status, headers, body } = await sendForm(origin + path);
      expect([status, headers.get('content-type')]).to.deep.equal([200, 'text/html; charset=UTF-8']);
      expect(body.toString()).to.include('<title>imagemill API reference</title>');
      const policy = headers.get('content-security-policy') ?? '';
      expect(policy).to.match(/^default-src 'none'; script-src 'self'; style-src 'self';/);
      expect(policy).to.not.match(/unsafe|http|\*/);
      expect(headers.get('cache-control')).to.equal('no-cache');
    }
  });

  it('serves the files of the page as immutable', async () => {
    const files = await filesOfPage();
    expect(files).to.have.length(2);
    for (const path of files) {
      const { status, headers } = await sendForm(origin + path);
      expect([status, headers.get('content-type'), headers.get('cache-control')], path).to.deep.equal([
        200,
        path.endsWith('.css') ? 'text/css; charset=UTF-8' : 'text/javascript; charset=UTF-8',
        'public, max-age=31536000, immutable',
      ]);
    }
  });

  it('is smaller than 1 MB, compressed if the client accepts gzip', async () => {
    const length = async (encoding: string) => {
      const sizes = (await filesOfPage()).map(async (path) => {
        const init = { method: 'HEAD', headers: { 'accept-encoding': encoding } };
        const { headers } = await fetch(origin + path, init);
        expect(headers.get('content-encoding')).to.equal(encoding === 'gzip' ? 'gzip' : null);
        expect(headers.get('vary')).to.equal('Accept-Encoding');
        return Number(headers.get('content-length'));
      });
      return (await Promise.all(sizes)).reduce((sum, size) => sum + size);
    };
    expect(await length('gzip')).to.be.within(100_000, Math.min(1_000_000, (await length('identity')) / 3));
  });

  it('has nothing at other paths', async () => {
    const nothing =
      'There is nothing at this path. The API is below /api/v1. Its paths have no slash at the end.';
    for (const path of ['/docs.html', '/docs/NOTICE', '/licenses.md'])
      expect((await sendForm(origin + path)).message, path).to.equal(nothing);
  });

  describe('in a browser', () => {
    let browser: Browser;
    let page: Page;
    const failures: string[] = [];
    before(async () => {
      browser = await launchChromium();
    });
    after(() => browser.close());
    afterEach(async () => {
      await page.close();
      expect(failures).to.deep.equal([]);
    });

    const open = async (colorScheme: 'light' | 'dark', operation = '', width = 1280) => {
      failures.length = 0;
      page = await openPage(browser, { colorScheme, viewport: { width, height: 720 } });
      page.on('console', (message) => {
        if (message.type() === 'error') failures.push(message.text()); // includes CSP violations
      });
      page.on('pageerror', ({ message }) => failures.push(message));
      page.on('request', (request) => {
        const url = request.url();
        if (!url.startsWith(`${origin}/`) && !/^(?:blob|data):/.test(url)) failures.push(url);
      });
      await page.goto(`${origin}/docs${operation}`);
      await page.locator('.opblock').last().waitFor();
    };
    /** Clicks Execute and downloads the offered file. */
    const execute = async () => {
      await page.getByRole('button', { name: 'Execute' }).click();
      const link = page.getByText('Download file');
      const [download] = await Promise.all([page.waitForEvent('download'), link.click()]);
      return { name: download.suggestedFilename(), file: await readFile(await download.path()) };
    };

    it('shows every operation, in the colours of the browser, and requests nothing from other hosts', async () => {
      const textColour = async () => {
        const colour = await page.evaluate<string>('getComputedStyle(document.body).color');
        return Number(/\d+/.exec(colour)?.[0]);
      };
      await open('light');
      const paths = ['/convert', '/batch', '/identify', '/formats', '/health', '/openapi.json'];
      const shown = await page.locator('.opblock-summary-path').allInnerTexts();
      expect(shown, 'also of OPTIONS').to.deep.equal([...paths, ...paths]);
      expect(await textColour()).to.be.below(100);
      await page.emulateMedia({ colorScheme: 'dark' });
      expect(await textColour()).to.be.above(200);
    });

    it('has the address of this server in its examples, and a link to the web page', async () => {
      await open('dark', '#/Conversion/convert');
      const command = await page.locator('pre', { hasText: 'curl -F file=' }).first().textContent();
      expect(command).to.include(`${origin}/api/v1/convert`);
      expect(await page.locator('body').textContent()).to.not.include('localhost:3000');
      await page.getByRole('link', { name: 'Convert images' }).click();
      await page.getByRole('radio', { name: 'WebP' }).waitFor();
    });

    it('converts a selected file and offers the result', async () => {
      await open('light', '#/Conversion/convert');
      await page
        .locator('[data-property-name=file] input[type=file]')
        .setInputFiles(fixturePath('scene.jpg'));
      await page.locator('[data-property-name=output_format] select').selectOption('png');
      const { name, file } = await execute();
      const { width, height } = await decode(file, 'png');
      expect([name, width, height]).to.deep.equal(['scene.png', 120, 80]);
    });

    it('shows the parameters of the query and the errors on demand, and texts in a narrow column', async () => {
      await open('light', '#/Conversion/convert');
      for (const [button, row] of [
        [/The image itself as the body/, 'tr[data-param-in=query]'],
        [/errors with/, '.response[data-code="413"], .headers-wrapper'],
      ] as const) {
        const first = page.locator(row).first();
        await first.waitFor({ state: 'hidden' });
        await page.getByRole('button', { name: button }).click();
        await first.waitFor({ state: 'visible' });
      }
      const widths = await page.evaluate<number[]>(
        "[...document.querySelectorAll('.opblock .renderedMarkdown p')].map((p) => p.getBoundingClientRect().width)",
      );
      expect(widths.length).to.be.above(50);
      expect(Math.max(...widths)).to.be.within(400, 720);
    });

    it('leads from a topic to its field', async () => {
      await open('light');
      await page.getByRole('link', { name: 'What a photo gives away' }).click();
      const field = page.locator('#operations-Conversion-identify [data-property-name=reveal]');
      await field.waitFor();
      await page.waitForFunction('scrollY > 0');
      const { y = -1 } = (await field.boundingBox()) ?? {};
      expect(y).to.be.within(-1, 720);
    });

    it('fits a screen 360 pixels wide with an operation open', async () => {
      await open('light', '#/Conversion/convert', 360);
      await page.getByRole('button', { name: 'Execute' }).waitFor();
      expect(await page.evaluate<number>('document.documentElement.scrollWidth')).to.equal(360);
    });

    it('converts several files', async () => {
      await open('light', '#/Conversion/convertBatch');
      for (const name of ['scene.jpg', 'scene.png']) {
        await page.getByRole('button', { name: /^Add/ }).click();
        await page
          .locator('[data-property-name=files] input[type=file]')
          .last()
          .setInputFiles(fixturePath(name));
      }
      const { name, file } = await execute();
      const entries = (await readZip(file)).map((entry) => entry.name);
      expect([name, ...entries]).to.deep.equal(['converted.zip', 'scene.webp', 'scene (2).webp']);
    });

    it('shows an error response', async () => {
      await open('light', '#/Conversion/convert');
      await page
        .locator('[data-property-name=file] input[type=file]')
        .setInputFiles(fixturePath('../README.md'));
      await page.getByRole('button', { name: 'Execute' }).click();
      const answer = page.locator('.live-responses-table');
      await answer.getByText('is not an image of a supported format').waitFor();
      expect(failures.splice(0).join()).to.include('415'); // browsers log error responses to the console
    });
  });
});
