// @full: measures the page in windows of several sizes
import { expect } from 'chai';
import type { Locator } from 'playwright-core';
import { fixture, fixturePath } from '../helpers/client.ts';
import { useServiceWith } from '../helpers/service.ts';
import {
  compare,
  convertAll,
  convertFiles,
  made,
  openMenu,
  pick,
  queryOf,
  row,
  saveLink,
  showFailures,
  showMore,
  useBrowser,
} from './browser.ts';

const PHONE = { viewport: { width: 360, height: 640 }, hasTouch: true, isMobile: true };

describe('the layout of the page', () => {
  const { open } = useBrowser();
  const service = useServiceWith();

  const bottomOf = async (element: Locator): Promise<number> => {
    const box = (await element.boundingBox()) ?? expect.fail(`${element} is not visible`);
    return box.y + box.height;
  };
  const photos = async (count: number) => {
    const photo = await fixture('scene.jpg');
    return Array.from({ length: count }, (_, at) => made(`IMG_20240102_1234${at + 10}.jpg`, photo));
  };

  for (const [options, third] of [
    [{ viewport: { width: 1366, height: 650 } }, 217],
    [PHONE, 214],
  ] as const) {
    const { width, height } = options.viewport;
    it(`has the button and Undo in the upper third of ${width} × ${height} pixels, with all options open`, async () => {
      const page = await open(service, options, '?blur=2');
      await convertFiles(page, await photos(3));
      await page.getByRole('button', { name: 'Clear list' }).click();
      await showMore(page);
      await page.evaluate(() => scrollTo(0, 0));
      for (const element of [
        page.getByText('Converted on this server, stored nowhere.'),
        page.locator('.picker').first(),
        page.getByRole('button', { name: 'Undo' }),
      ])
        expect(await bottomOf(element)).to.be.below(third);
      expect((await page.locator('.drop').boundingBox())?.height).to.be.below(height);
    });
  }

  for (const [width, height, least] of [
    [1280, 800, 12],
    [1920, 1080, 18],
  ] as const) {
    it(`has at least ${least} rows in a window of ${width} × ${height} pixels, and a header of 48`, async () => {
      const page = await open(service, { viewport: { width, height } });
      await convertFiles(page, [
        ...(await photos(30)),
        made('p3.jpg', await fixture('p3.jpg')),
        made('bad.png', Buffer.from('text')),
      ]);
      const bottoms = await page
        .locator('.file')
        .evaluateAll((rows) => rows.map((each) => each.getBoundingClientRect().bottom));
      expect(bottoms.filter((bottom) => bottom <= height)).to.have.length.above(least - 1);
      expect((await page.locator('.masthead').boundingBox())?.height).to.equal(48);
      const [list, side] = [page.locator('.list'), page.locator('.side')];
      const [{ width: across = 0 } = {}, { width: beside = 0 } = {}] = await Promise.all(
        [list, side].map(async (each) => (await each.boundingBox()) ?? undefined),
      );
      expect(across + beside).to.be.above(width - 90);
    });
  }

  it('cuts long names in the middle, and keeps their folder and their extension', async () => {
    const page = await open(service, { viewport: { width: 1000, height: 700 } });
    const name = `${'a-very-long-name-'.repeat(9)}17.jpg`;
    await pick(page, [made(name, await fixture('scene.jpg'))]);
    const [start, end] = await row(page, name)
      .locator('.file-name > span')
      .evaluateAll((parts) =>
        parts.map(({ scrollWidth, clientWidth, textContent }) => [scrollWidth - clientWidth, textContent]),
      );
    expect(start?.[0]).to.be.above(100);
    expect(end).to.deep.equal([0, 'me-17.jpg']);
  });

  it('shows a note once for all files that share it, and as an icon in their rows and a text in their menus', async () => {
    const page = await open(service);
    const photo = await fixture('p3.jpg');
    await convertFiles(page, [
      made('a.jpg', photo),
      made('b.jpg', photo),
      made('scene.png', await fixture('scene.png')),
    ]);
    await page.getByText('The colours were converted to sRGB. 2 files.').waitFor();
    const { width = 99 } = (await row(page, 'a.jpg').locator('.note').boundingBox()) ?? {};
    expect(width).to.be.below(20);
    const menu = await openMenu(page, 'a.jpg');
    await menu.getByText('The colours were converted to sRGB.').waitFor();
    expect(await row(page, 'scene.png').locator('.note').count()).to.equal(0);
  });

  it('shows the progress in the title of the tab, and the sums in the header', async () => {
    const page = await open(service);
    await pick(page, await photos(2));
    const gate = Promise.withResolvers<void>();
    let sent = 0;
    await page.route('**/api/v1/convert?*', async (route) => {
      sent += 1;
      if (sent > 1) await gate.promise;
      await route.continue();
    });
    await page.getByRole('button', { name: 'Convert 2 files' }).click();
    await page.waitForFunction(() => document.title.startsWith('1 of 2'));
    gate.resolve();
    await page
      .locator('.finished')
      .getByText(/^ · .* → .*$/)
      .waitFor();
    expect(await page.title()).to.equal('imagemill: convert images');
    expect(await page.locator('.totals').innerText()).to.match(/^2 files · .* → .* · .* saved$/);
  });

  it('has the menu of a row by keys: arrows move in it, and Escape closes it', async () => {
    const page = await open(service);
    await convertFiles(page, await photos(1));
    const more = page.getByRole('button', { name: /^More for/ });
    await more.press('Enter');
    await page.getByRole('dialog').waitFor();
    const focused = () => page.evaluate(() => document.activeElement?.textContent);
    expect(await focused()).to.equal('Compare');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    expect(await focused()).to.not.equal('Compare');
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await more.evaluate((button) => button === document.activeElement)).to.equal(true);
  });

  it('compares the next file by keys at the same zoom, saves it and removes it', async () => {
    const page = await open(service);
    await convertFiles(page, ['grey.jpg', 'p3.jpg', 'scene.jpg'].map(fixturePath));
    const { dialog } = await compare(page, 'grey.jpg');
    await page.getByRole('button', { name: 'Zoom to 100%' }).click();
    await dialog.locator('h2').click();
    await page.keyboard.press('ArrowRight');
    await dialog.getByRole('heading', { name: 'p3.webp' }).waitFor();
    expect(await page.getByRole('button', { name: 'Zoom to 100%', pressed: true }).count()).to.equal(1);
    const [download] = await Promise.all([page.waitForEvent('download'), page.keyboard.press('s')]);
    expect(download.suggestedFilename()).to.equal('p3.webp');
    await page.keyboard.press('Delete');
    await dialog.getByRole('heading', { name: 'scene.webp' }).waitFor();
    await page.keyboard.press('ArrowLeft');
    await dialog.getByRole('heading', { name: 'grey.webp' }).waitFor();
    await page.keyboard.press('Escape');
    expect(await page.locator('.file').count()).to.equal(2);
  });

  it('keeps a set of options under a name, for the next visit', async () => {
    const page = await open(service, {}, '?output_format=jpg&quality=60');
    await page.getByRole('radio', { name: '1920' }).check();
    await showMore(page);
    await page.getByLabel('Save as my settings').fill('For the web');
    await page.getByLabel('Save as my settings').press('Enter');
    const preset = page.getByRole('combobox', { name: 'Preset' });
    expect(await preset.inputValue()).to.equal('own:For the web');
    await preset.selectOption('None');
    expect(String(await queryOf(page))).to.equal('output_format=webp');
    await page.reload();
    await preset.selectOption('For the web');
    const expected = 'output_format=jpg&quality=60&width=1920&height=1920';
    expect(String(await queryOf(page))).to.equal(expected);
    await showMore(page);
    await page.getByRole('button', { name: 'Delete “For the web”' }).click();
    expect(await preset.count()).to.equal(0);
    expect(String(await queryOf(page))).to.equal(expected);
  });

  it('has the quality that the server chooses, which only some formats have', async () => {
    const page = await open(service, {}, '?output_format=jpg');
    await page.getByRole('checkbox', { name: 'Auto' }).check();
    expect(String(await queryOf(page))).to.equal('output_format=jpg&quality=auto');
    expect(await page.getByLabel('Quality').isDisabled()).to.equal(true);
    await convertFiles(page, [fixturePath('scene.jpg')]);
    await saveLink(page, 'scene.jpg').waitFor();
    await page.reload();
    expect(await page.getByRole('checkbox', { name: 'Auto' }).isChecked()).to.equal(true);
    await page.getByRole('radio', { name: 'PDF' }).check();
    expect(String(await queryOf(page))).to.equal('output_format=pdf');
    expect(await page.getByRole('checkbox', { name: 'Auto' }).count()).to.equal(0);
  });

  it('composes the names of results of parts, without typing', async () => {
    const page = await open(service);
    await convertFiles(page, [fixturePath('scene.jpg')]);
    await showMore(page);
    await page.getByRole('button', { name: 'Insert the width' }).click();
    await saveLink(page, 'scene120.webp').waitFor();
  });

  it('gives results to the share sheet of the system', async () => {
    const page = await open(service, PHONE);
    await page.evaluate(() => {
      const share = async ({ files }: ShareData) =>
        void Object.assign(window, { shared: files?.map(({ name }) => name) });
      Object.defineProperties(navigator, { canShare: { value: () => true }, share: { value: share } });
    });
    await convertFiles(page, ['grey.jpg', 'scene.jpg'].map(fixturePath));
    const shared = () => page.evaluate(() => Reflect.get(window, 'shared'));
    await (await openMenu(page, 'grey.jpg')).getByRole('button', { name: 'Share' }).tap();
    expect(await shared()).to.deep.equal(['grey.webp']);
    await page.getByRole('button', { name: 'Share all' }).tap();
    expect(await shared()).to.deep.equal(['grey.webp', 'scene.webp']);
  });

  it('accepts an MPO, and states a fixed limit as the server does', async () => {
    const page = await open(service);
    const svgless = await fixture('scene.jpg');
    await pick(page, [made('pair.mpo', svgless)]);
    await convertAll(page);
    await saveLink(page, 'pair.webp').waitFor();
    await pick(page, [made('wide.tiff', tiffOf(70_000, 4_000))]);
    await showFailures(page);
    await row(page, 'wide.tiff')
      .getByText(/^The image is 70000 pixels wide or high, .* This limit is fixed\.$/)
      .waitFor();
  });
});

/** Returns the header of a TIFF of this size, which has no pixels. */
function tiffOf(width: number, height: number): Buffer {
  const tiff = Buffer.alloc(64);
  tiff.write('II*\0', 0, 'latin1');
  tiff.writeUInt32LE(8, 4);
  tiff.writeUInt16LE(2, 8);
  for (const [at, [tag, value]] of (
    [
      [256, width],
      [257, height],
    ] as const
  ).entries()) {
    tiff.writeUInt16LE(tag, 10 + at * 12);
    tiff.writeUInt16LE(4, 12 + at * 12);
    tiff.writeUInt32LE(1, 14 + at * 12);
    tiff.writeUInt32LE(value, 18 + at * 12);
  }
  return tiff;
}
