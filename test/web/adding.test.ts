import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import sharp from 'sharp';
import { fixture, fixturePath } from '../helpers/client.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { type OwnService, startService } from '../helpers/service.ts';
import { made, pick, row, useBrowser } from './browser.ts';

describe('files come onto the page', () => {
  const { open } = useBrowser();
  let service: OwnService;
  before(async () => {
    service = await startService();
  });
  after(() => service.stop());

  const names = (page: Page) => page.locator('.file-name').allTextContents();
  const listed = async (page: Page, count: number) => {
    await page.getByRole('button', { name: new RegExp(`^Convert ${count} file`) }).waitFor();
    return names(page);
  };
  /** As the system does it: the browser itself reads what the paths lead to. */
  const drop = async (page: Page, paths: readonly string[]) => {
    const session = await page.context().newCDPSession(page);
    const data = { items: [], files: [...paths], dragOperationsMask: 1 };
    for (const type of ['dragEnter', 'dragOver', 'drop'] as const) {
      await session.send('Input.dispatchDragEvent', { type, x: 700, y: 700, data });
      if (type === 'dragOver') await page.getByText('Let go to add them').waitFor();
    }
  };

  it('and give back their memory when they are removed before their thumbnails are made', async () => {
    const page = await open(service);
    await page.evaluate(() => {
      const held = new Set<string>();
      const decoding = Promise.withResolvers<void>();
      Object.assign(window, { held, decodeNow: decoding.resolve });
      const { createObjectURL, revokeObjectURL } = URL;
      URL.createObjectURL = (blob) => {
        const url = createObjectURL(blob);
        held.add(url);
        return url;
      };
      URL.revokeObjectURL = (url) => {
        held.delete(url);
        revokeObjectURL(url);
      };
      const { decode } = HTMLImageElement.prototype;
      HTMLImageElement.prototype.decode = async function () {
        await decoding.promise;
        await decode.call(this);
      };
    });
    await pick(page, [fixturePath('scene.jpg'), fixturePath('scene.png')]);
    await page.getByRole('button', { name: 'Remove scene.jpg' }).click();
    await page.evaluate(() => Reflect.get(window, 'decodeNow')());
    // Pictures are looked at one after another: when the second has its thumbnail the first is done with.
    await page.locator('.thumbnail img').waitFor();
    expect(await page.evaluate(() => (Reflect.get(window, 'held') as Set<string>).size)).to.equal(1);
  });

  it('when they are dropped anywhere, with type, size, dimensions and a thumbnail', async () => {
    const page = await open(service);
    await drop(page, [fixturePath('scene.jpg'), fixturePath('scene.svg')]);
    expect(await listed(page, 2)).to.deep.equal(['scene.jpg', 'scene.svg']);
    const kilobytes = ((await fixture('scene.jpg')).length / 1024).toFixed(2);
    await page.getByText(`JPEG · ${kilobytes} KB · 120 × 80`).waitFor();
    await page.getByText(/SVG · .* · 120 × 80/).waitFor();
    expect(await page.locator('.thumbnail img').count()).to.equal(2);
  });

  it('when a folder is dropped: the images in it, however deep, and it is said how much was left out', async () => {
    const folder = join(await makeTempDir('folder'), 'album');
    await mkdir(join(folder, 'deep', 'deeper'), { recursive: true });
    await writeFile(join(folder, 'one.png'), await fixture('scene.png'));
    await writeFile(join(folder, 'deep', 'deeper', 'two.tiff'), await fixture('scene.tiff'));
    await writeFile(join(folder, 'Thumbs.db'), 'not an image');
    const page = await open(service);
    await drop(page, [folder]);
    expect((await listed(page, 2)).sort()).to.deep.equal(['one.png', 'two.tiff']);
    await page.getByRole('status').filter({ hasText: '1 left out' }).waitFor({ state: 'attached' });
    await page.locator('.left-out').getByText('1 left out').waitFor();
  });

  it('none of a folder without images; it is said, and forgotten with the next file', async () => {
    const folder = await makeTempDir('none');
    for (const name of ['a.txt', 'b.txt']) await writeFile(join(folder, name), 'text');
    const page = await open(service);
    await page.getByLabel('Choose a folder').setInputFiles(folder);
    const said = page.locator('.left-out');
    await said.getByText('2 left out: no images of a type that can be converted.').waitFor();
    await pick(page, [fixturePath('scene.png')]);
    await said.waitFor({ state: 'detached' });
  });

  it('when a folder is chosen', async () => {
    const folder = await makeTempDir('chosen');
    await writeFile(join(folder, 'a.gif'), await fixture('scene.gif'));
    await writeFile(join(folder, 'b.txt'), 'text');
    const page = await open(service);
    await page.getByLabel('Choose a folder').setInputFiles(folder);
    expect(await listed(page, 1)).to.deep.equal(['a.gif']);
  });

  it('when one is pasted', async () => {
    const page = await open(service, { permissions: ['clipboard-read', 'clipboard-write'] });
    await page.evaluate(
      async (bytes) => {
        const picture = new Blob([new Uint8Array(bytes)], { type: 'image/png' });
        await navigator.clipboard.write([new ClipboardItem({ 'image/png': picture })]);
      },
      [...(await fixture('scene.png'))],
    );
    await page.keyboard.press('Control+V');
    expect(await listed(page, 1)).to.deep.equal(['image.png']);
    await row(page, 'image.png').getByText('120 × 80').waitFor();
  });

  it('when they are chosen, also the same one twice; and one can be taken away again', async () => {
    const page = await open(service);
    await pick(page, [fixturePath('scene.png')]);
    await pick(page, [fixturePath('scene.png')]);
    await listed(page, 2);
    await page.getByRole('button', { name: 'Remove scene.png' }).first().click();
    expect(await listed(page, 1)).to.deep.equal(['scene.png']);
  });

  it('of a type that no browser shows: with its name instead of a picture, but its dimensions', async () => {
    const page = await open(service);
    const lying = await sharp(await fixture('scene.png'))
      .withMetadata({ orientation: 6 })
      .tiff()
      .toBuffer();
    await pick(page, [
      made('scene.tiff', await fixture('scene.tiff')),
      made('lying.tiff', lying),
      made('cut off.tiff', lying.subarray(0, 20)),
    ]);
    await row(page, 'scene.tiff').locator('.thumbnail', { hasText: 'TIFF' }).waitFor();
    await row(page, 'scene.tiff').getByText('120 × 80').waitFor();
    await row(page, 'lying.tiff').getByText('80 × 120').waitFor();
    expect(await row(page, 'cut off.tiff').locator('.file-facts').textContent()).to.equal('TIFF · 20 B');
  });
});
