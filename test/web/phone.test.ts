// @full
import { expect } from 'chai';
import sharp from 'sharp';
import { fixturePath, sendForm } from '../helpers/client.ts';
import { useServiceWith } from '../helpers/service.ts';
import { boxOf, made, PHONE, useBrowser, type WebPage } from './browser.ts';

describe('the page on a phone', () => {
  const { open } = useBrowser();
  const service = useServiceWith();

  const photos = ['scene.jpg', 'scene.png', 'grey.jpg', 'p3.jpg'].map(fixturePath);
  const box = (page: WebPage, name: string) => boxOf(page.locator(name).first());

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
    await page.pick(photos);
    const line = page.button('JPEG · quality 70 · 800 × any');
    await line.waitFor();
    expect(await page.getByLabel('Quality').isVisible()).to.equal(false);
    expect((await box(page, '.file')).y).to.be.below(370);
    const convert = await box(page, '.actions [type=submit]');
    expect(convert.y + convert.height).to.be.within(650, 740);
    await page.evaluate(() => scrollTo(0, 10_000));
    expect((await box(page, '.actions [type=submit]')).y).to.be.within(550, 740);
    await line.tap();
    await page.getByLabel('Quality').fill('60');
    await page.button('JPEG · quality 60 · 800 × any').tap();
    expect(await page.getByLabel('Quality').isVisible()).to.equal(false);
  });

  it('folds the options when it converts, into a line below the results and above the buttons', async () => {
    const page = await open(service, PHONE);
    await page.pick(photos);
    await page.showOptions();
    await page.getByText('More', { exact: true }).scrollIntoViewIfNeeded();
    await page.convertAll();
    await page.finished(4);
    expect(await page.getByLabel('Quality').isVisible()).to.equal(false);
    const line = await box(page, '.side-toggle');
    const last = await boxOf(page.locator('.file').last());
    expect(line.y).to.be.within(last.y + last.height, last.y + last.height + 40);
    expect(line.y + line.height).to.be.below((await box(page, '.actions')).y);
  });

  it('has targets of at least 44 pixels', async () => {
    const page = await open(service, PHONE);
    const small = () =>
      page.evaluate(() =>
        [...document.querySelectorAll<HTMLElement>('button, a, select, input, summary, textarea')]
          .filter((element) => element.checkVisibility() && !element.matches('.visually-hidden'))
          .map(
            (element) =>
              (element.matches('[type=checkbox], [type=radio], [type=file]') && element.closest('label')) ||
              element,
          )
          .map((element) => ({ element, box: element.getBoundingClientRect() }))
          .filter(({ box: { width, height } }) => Math.min(width, height) < 43.5)
          .map(
            ({ element, box: { width, height } }) =>
              `${element.outerHTML.slice(0, 100)} ${width} × ${height}`,
          ),
      );
    const expectLarge = async () => expect(await small()).to.deep.equal([]);
    const tap = (name: string) => page.getByRole('button', { name, exact: true }).tap();
    await page.pick(photos);
    await page.pick([made('empty.png', Buffer.alloc(0))]);
    await page.showOptions();
    await page.showCurl();
    await page
      .locator('.segment')
      .filter({ hasText: /^JPEG$/ })
      .tap();
    await page.getByLabel('Background').fill('#ff0000');
    await page.getByLabel('Watermark', { exact: true }).setInputFiles(fixturePath('grey.jpg'));
    for (const name of ['Reset the background', 'Remove the watermark'])
      await page.getByRole('button', { name }).waitFor();
    for (const label of ['Names of results', 'Opacity'])
      expect(await page.getByLabel(label).isVisible(), label).to.equal(true);
    await expectLarge();
    await page.convertAll();
    await page.finished(4);
    await expectLarge();
    const menu = await page.openMenu('p3.jpg');
    await expectLarge();
    await menu.getByRole('button', { name: 'Remove' }).tap();
    await page.button('Undo').waitFor();
    await expectLarge();
    await tap('Compare scene.png');
    await page.getByRole('slider', { name: /divider/ }).waitFor();
    await expectLarge();
    await tap('Crop');
    await page.button('Bottom edge').waitFor();
    await expectLarge();
    await tap('Close');
    await page.showOptions();
    await page.locator('.segment').filter({ hasText: /^PDF$/ }).tap();
    await page.locator('label', { has: page.getByRole('switch') }).tap();
    await tap('Move scene.jpg');
    await page.button('Move scene.jpg up').waitFor();
    await expectLarge();
    await tap('Make one PDF');
    await page.button('Preview').waitFor();
    await expectLarge();
  });

  it('shows the options if one is invalid', async () => {
    const page = await open(service, PHONE);
    await page.pick(photos);
    await page.showOptions();
    await page.showSize();
    await page.getByLabel('Max width').fill('20000');
    await page.locator('.side-toggle').tap();
    await page.button('Convert 4 files').tap();
    expect(await page.getByLabel('Max width').evaluate((field) => field === document.activeElement)).to.equal(
      true,
    );
  });

  it('can be installed: the manifest has icons of the stated sizes', async () => {
    const html = (await sendForm(new URL('/', service.base).href)).body.toString();
    const [, path = ''] = /rel="manifest" href="([^"]+)"/.exec(html) ?? [];
    const manifest = new URL(path, new URL('/', service.base));
    const { status, headers, body } = await sendForm(manifest.href);
    expect([status, headers.get('content-type')]).to.deep.equal([
      200,
      'application/manifest+json; charset=utf-8',
    ]);
    expect(headers.get('cache-control')).to.equal('no-cache');
    const { icons, start_url, display } = JSON.parse(body.toString());
    expect([start_url, display]).to.deep.equal(['./', 'standalone']);
    for (const { src, sizes } of icons) {
      const icon = await sendForm(new URL(src, manifest).href);
      const { width, height } = await sharp(icon.body).metadata();
      expect([icon.status, `${width}x${height}`], src).to.deep.equal([200, sizes]);
    }
  });
});
