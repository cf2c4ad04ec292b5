// @full: starts a browser
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { fixture, fixturePath } from '../helpers/client.ts';
import { useServiceWith } from '../helpers/service.ts';
import {
  convertAll,
  convertFiles,
  finished,
  heldUrls,
  type Made,
  made,
  pick,
  recordUrls,
  row,
  save,
  saveLink,
  saveZip,
  showFailures,
  useBrowser,
} from './browser.ts';

describe('the list of files on the page', () => {
  const { open } = useBrowser();
  const service = useServiceWith();

  const names = (page: Page) => page.locator('.file-name').allTextContents();
  const undo = (page: Page) => page.getByRole('button', { name: 'Undo' });
  const announced = (page: Page, text: string) =>
    page.getByRole('status').filter({ hasText: text }).waitFor({ state: 'attached' });
  const openConverted = async (
    files: readonly string[] | readonly Made[] = [fixturePath('grey.jpg'), fixturePath('scene.png')],
  ) => {
    const page = await open(service);
    await page.clock.install();
    await recordUrls(page);
    await convertFiles(page, files);
    return page;
  };

  it('restores the results after Clear list, by keyboard, and announces it', async () => {
    const page = await openConverted();
    const before = await save(page, 'scene.webp');
    await page.getByRole('button', { name: 'Clear list' }).press('Enter');
    await page.getByText('2 results removed · Undo').waitFor();
    await announced(page, '2 results removed.');
    for (let step = 0; step < 2; step += 1) await page.keyboard.press('Tab'); // after "Choose a folder"
    expect(await page.evaluate(() => document.activeElement?.textContent)).to.equal('Undo');
    await page.keyboard.press('Enter');
    await finished(page, 2);
    await announced(page, '2 results restored.');
    expect(await names(page)).to.deep.equal(['grey.jpg', 'scene.png']);
    expect(await undo(page).count()).to.equal(0);
    expect(await page.evaluate(() => document.activeElement?.getAttribute('aria-label'))).to.equal(
      'Add files',
    );
    const after = await save(page, 'scene.webp');
    expect(after).to.deep.equal(before);
    await page.locator('.thumbnail img').nth(1).waitFor();
  });

  it('restores a removed row at its place, and frees the results of earlier removals', async () => {
    const page = await openConverted();
    const [grey, scene] = await Promise.all(
      ['grey.webp', 'scene.webp'].map((name) => saveLink(page, name).getAttribute('href')),
    );
    await page.getByRole('button', { name: 'Remove grey.jpg' }).click();
    await page.getByText('1 result removed · Undo').waitFor();
    await undo(page).click();
    await row(page, 'grey.jpg').waitFor();
    expect(await names(page)).to.deep.equal(['grey.jpg', 'scene.png']);

    await page.getByRole('button', { name: 'Remove grey.jpg' }).click();
    expect((await heldUrls(page)).includes(grey as string)).to.equal(true);
    await page.getByRole('button', { name: 'Remove scene.png' }).click();
    await page.getByText('1 result removed · Undo').waitFor();
    expect((await heldUrls(page)).includes(grey as string)).to.equal(false);
    await pick(page, [fixturePath('scene.gif')]);
    await row(page, 'scene.gif').waitFor();
    expect(await undo(page).count()).to.equal(0);
    expect((await heldUrls(page)).includes(scene as string)).to.equal(false);
  });

  it('asks before it is left with results that were not saved, and not afterwards', async () => {
    const page = await openConverted();
    const asked: string[] = [];
    page.on('dialog', (dialog) => {
      asked.push(dialog.type());
      dialog.accept();
    });
    /** Reloads the page with the same results, and returns whether the browser asked. */
    const isAsked = async () => {
      asked.length = 0;
      await page.reload();
      await page.locator('input[value=bmp]').waitFor({ state: 'attached' });
      return asked.join();
    };
    await save(page, 'grey.webp');
    expect(await isAsked()).to.equal('beforeunload');

    await convertFiles(page, [fixturePath('grey.jpg')]);
    await save(page, 'grey.webp');
    expect(await isAsked()).to.equal('');

    await convertFiles(page, [fixturePath('grey.jpg')]);
    await saveZip(page);
    await announced(page, 'converted.zip is ready.');
    expect(await isAsked()).to.equal('');
  });

  it('has the failed files in one closed group on top, which opens, and is gone without them', async () => {
    const bad = made('bad.png', Buffer.from('text'));
    const page = await openConverted([made('a.png', await fixture('scene.png')), bad]);
    const group = page.getByRole('button', { name: '1 not converted' });
    expect([await names(page), await group.getAttribute('aria-expanded')]).to.deep.equal([
      ['a.png'],
      'false',
    ]);
    await group.press('Enter');
    await row(page, 'bad.png').getByText('The file is not an image of a supported format').waitFor();
    expect(await names(page)).to.deep.equal(['bad.png', 'a.png']);
    expect(await row(page, 'bad.png').getByRole('combobox').count()).to.equal(0);
    await group.click();
    await row(page, 'bad.png').waitFor({ state: 'detached' });
    await group.click();
    await row(page, 'bad.png').focus();
    await page.keyboard.press('Delete');
    await row(page, 'bad.png').waitFor({ state: 'detached' });
    expect([await names(page), await group.count()]).to.deep.equal([['a.png'], 0]);
    await page.getByText('1 file removed · Undo').waitFor();
  });

  it('takes a file that is tried again out of the group', async () => {
    const page = await open(service);
    await pick(
      page,
      await Promise.all(['a.png', 'b.png', 'c.png'].map(async (n) => made(n, await fixture('scene.png')))),
    );
    let count = 0;
    await page.route('**/api/v1/convert?*', (route) => {
      count += 1;
      return count === 1 ? route.continue() : route.fulfill({ status: 500, json: {} });
    });
    await convertAll(page);
    await showFailures(page);
    await page.unroute('**/api/v1/convert?*');
    const [first = ''] = await names(page);
    await row(page, first).getByRole('button', { name: 'Try again' }).click();
    await saveLink(page, first.replace('png', 'webp')).waitFor();
    expect((await names(page)).indexOf(first)).to.be.above(0);
    await page.getByRole('button', { name: '1 not converted' }).waitFor();
  });
});
