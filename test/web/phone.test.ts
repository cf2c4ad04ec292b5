import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import sharp from 'sharp';
import { fixture, fixturePath, sendForm } from '../helpers/client.ts';
import { useServiceWith } from '../helpers/service.ts';
import { convertAll, made, pick, row, showOptions, useBrowser } from './browser.ts';

const PHONE = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };

describe('the page on a phone', () => {
  const { open } = useBrowser();
  const service = useServiceWith();

  const photos = ['scene.jpg', 'scene.png', 'grey.jpg', 'p3.jpg'].map(fixturePath);
  const box = async (page: Page, name: string) => {
    const found = await page.locator(name).first().boundingBox();
    return found ?? expect.fail(`${name} is not visible`);
  };

  it('offers a button for images, and neither dropping nor a folder', async () => {
    const page = await open(service, PHONE);
    expect(await page.getByText(/drop/i).count()).to.equal(0);
    expect(await page.getByText('Choose a folder').count()).to.equal(0);
    const { width, height } = await box(page, '.picker');
    expect(width).to.be.above(250);
    expect(height).to.be.above(48);
  });

  it('shows the rows and the main button at once, with the options in one line', async () => {
    const page = await open(service, PHONE, '?output_format=jpg&quality=70&width=800');
    expect(await page.getByLabel('Quality').isVisible()).to.equal(true);
    await pick(page, photos);
    const line = page.getByRole('button', { name: 'JPEG · quality 70 · 800 × any' });
    await line.waitFor();
    expect(await page.getByLabel('Quality').isVisible()).to.equal(false);
    expect((await box(page, '.file')).y).to.be.below(370);
    const convert = await box(page, '.actions [type=submit]');
    expect(convert.y + convert.height).to.be.within(650, 740);
    await page.evaluate(() => scrollTo(0, 10_000));
    expect((await box(page, '.actions [type=submit]')).y).to.be.within(550, 740);
    await line.tap();
    await page.getByLabel('Quality').fill('60');
    await page.getByRole('button', { name: 'JPEG · quality 60 · 800 × any' }).tap();
    expect(await page.getByLabel('Quality').isVisible()).to.equal(false);
    await convertAll(page);
    await page.getByText('Done: 4 converted').waitFor();
    expect((await box(page, '.pill')).y).to.be.below(500);
  });

  it('shows the options if one is invalid', async () => {
    const page = await open(service, PHONE);
    await pick(page, photos);
    await showOptions(page);
    await page.getByLabel('Max width').fill('20000');
    await page.locator('.side-toggle').tap();
    await page.getByRole('button', { name: 'Convert 4 files' }).tap();
    expect(await page.getByLabel('Max width').evaluate((field) => field === document.activeElement)).to.equal(
      true,
    );
  });

  it('can be installed: the manifest has icons of the stated sizes, and receives shared images', async () => {
    const html = (await sendForm(new URL('/', service.base).href)).body.toString();
    const [, path = ''] = /rel="manifest" href="([^"]+)"/.exec(html) ?? [];
    const manifest = new URL(path, new URL('/', service.base));
    const { status, headers, body } = await sendForm(manifest.href);
    expect([status, headers.get('content-type')]).to.deep.equal([
      200,
      'application/manifest+json; charset=utf-8',
    ]);
    expect(headers.get('cache-control')).to.equal('no-cache');
    const { icons, share_target, start_url, display } = JSON.parse(body.toString());
    expect([start_url, display]).to.deep.equal(['./', 'standalone']);
    expect(share_target.params.files).to.deep.equal([{ name: 'files', accept: ['image/*'] }]);
    for (const { src, sizes } of icons) {
      const icon = await sendForm(new URL(src, manifest).href);
      const { width, height } = await sharp(icon.body).metadata();
      expect([icon.status, `${width}x${height}`], src).to.deep.equal([200, sizes]);
    }
  });

  /** Sends a form to the service worker, as the system does, from the page that is open. */
  const submitShare = async (page: Page, names: readonly string[], fields: Record<string, string> = {}) => {
    const form = {
      ...{ action: new URL('/share/', service.base).href, method: 'post', enctype: 'multipart/form-data' },
      ...fields,
    };
    const image = [...(await fixture('scene.png'))];
    await page.evaluate(
      ([bytes, names, form]) => {
        const files = new DataTransfer();
        for (const name of names)
          files.items.add(new File([new Uint8Array(bytes)], name, { type: 'image/png' }));
        const type = names.length > 0 ? 'file' : 'text';
        const field = Object.assign(document.createElement('input'), { type, name: 'files', multiple: true });
        if (names.length > 0) field.files = files.files;
        else field.value = 'no file';
        const element = Object.assign(document.createElement('form'), form);
        element.append(field);
        document.body.append(element);
        element.submit();
      },
      [image, names, form] as const,
    );
  };
  const openWithWorker = async (): Promise<Page> => {
    const page = await open(service, PHONE);
    await page.waitForFunction(
      async () => (await navigator.serviceWorker.getRegistration('/share/'))?.active,
    );
    return page;
  };
  /** Adds a file and returns the names in the list, after the service worker has answered the page. */
  const namesAfterAnswer = async (page: Page): Promise<string[]> => {
    await page.waitForURL(new URL('/', service.base).href);
    await page.evaluate(async () => {
      const registration = await navigator.serviceWorker.getRegistration('/share/');
      const { port1, port2 } = new MessageChannel();
      const answered = new Promise((resolve) => Object.assign(port1, { onmessage: resolve }));
      registration?.active?.postMessage('', [port2]);
      await answered;
    });
    await pick(page, photos.slice(0, 1));
    await row(page, 'scene.jpg').waitFor();
    return page.locator('.file-name').allTextContents();
  };

  it('lists images that the system shares with it, and keeps none for the next visit', async () => {
    const page = await openWithWorker();
    // The policy of the page forbids a form to the page itself.
    await page.goto(new URL('/livez', service.base).href);
    await submitShare(page, ['one.png', 'two.png']);
    await row(page, 'two.png').waitFor();
    expect(await page.locator('.file-name').allTextContents()).to.deep.equal(['one.png', 'two.png']);
    expect(await page.evaluate(() => location.hash)).to.equal('');
    await convertAll(page);
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Save one.webp' }).tap(),
    ]);
    expect((await sharp(await readFile(await download.path())).metadata()).format).to.equal('webp');
    await page.goto(new URL('/#shared', service.base).href);
    await page.reload();
    await page.locator('.kinds').waitFor();
    expect(await page.getByRole('row').count()).to.equal(0);
    expect(await page.evaluate(() => caches.keys())).to.deep.equal([]);
  });

  it('lists images of an unknown sender only in a window of the installed page', async () => {
    const page = await openWithWorker();
    for (const isInstalled of [false, true]) {
      if (isInstalled)
        await page.addInitScript(() => {
          const { matchMedia } = globalThis;
          Object.assign(globalThis, {
            matchMedia: (query: string) =>
              query === '(display-mode: standalone)' ? { matches: true } : matchMedia(query),
          });
        });
      await page.goto('about:blank');
      await submitShare(page, ['one.png']);
      const expected = isInstalled ? ['one.png', 'scene.jpg'] : ['scene.jpg'];
      expect(await namesAfterAnswer(page)).to.deep.equal(expected);
    }
  });

  it('adds nothing from the form of another site, and still works', async () => {
    const page = await openWithWorker();
    const other = await page.context().newPage();
    const { port } = new URL(service.base);
    for (const [names, fields] of [
      [['evil.png'], {}],
      [[], {}],
      [[], { enctype: 'text/plain' }],
      [[], { enctype: 'application/x-www-form-urlencoded' }],
    ] as const) {
      await other.goto(`http://localhost:${port}/livez`);
      await submitShare(other, names, fields);
      expect(await namesAfterAnswer(other)).to.deep.equal(['scene.jpg']);
    }
  });

  it('ignores a shared form without files', async () => {
    const page = await openWithWorker();
    for (const enctype of ['multipart/form-data', 'application/x-www-form-urlencoded', 'text/plain']) {
      await page.goto(new URL('/livez', service.base).href);
      await submitShare(page, [], { enctype });
      expect(await namesAfterAnswer(page), enctype).to.deep.equal(['scene.jpg']);
    }
  });

  for (const width of [320, 360]) {
    it(`shows the buttons of each file inside of the list and beside no text, at ${width} pixels`, async () => {
      const page = await open(service, { ...PHONE, viewport: { ...PHONE.viewport, width } });
      const broken = made('bad.gif', Buffer.from('GIF89a, and no more'));
      await pick(page, [made('scene.png', await fixture('scene.png')), broken]);
      await convertAll(page);
      await row(page, 'bad.gif').getByRole('button', { name: 'Remove' }).waitFor();
      const misplaced = await page.evaluate(() =>
        [...document.querySelectorAll('.file .button')].flatMap((button) => {
          const { left, right, top, bottom } = button.getBoundingClientRect();
          const file = button.closest('.file') as Element;
          const isOutside = right > file.getBoundingClientRect().right;
          const texts = [...file.querySelectorAll('.file-text p')].map((text) =>
            text.getBoundingClientRect(),
          );
          const isOnText = texts.some(
            (t) => t.left < right && t.right > left && t.top < bottom && t.bottom > top,
          );
          return isOutside || isOnText ? [button.textContent] : [];
        }),
      );
      expect(misplaced).to.deep.equal([]);
    });
  }
});
