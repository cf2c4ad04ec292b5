// @full: starts a browser
import axe from 'axe-core';
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import sharp from 'sharp';
import { fixturePath } from '../helpers/client.ts';
import { writeTempFile } from '../helpers/hooks.ts';
import { type OwnService, startService } from '../helpers/service.ts';
import { readZip } from '../helpers/zip.ts';
import { convertFiles, queryOf, row, save, showMore, showOptions, showSize, useBrowser } from './browser.ts';

const PRESETS = `
presets:
  - { name: card, format: jpg, width: 60, height: 60, fit: cover, strip_metadata: false }
  - name: product
    variants:
      - { name: square, width: 40, height: 40, fit: cover }
      - { name: zoom, format: png }
`;

describe('presets on the page', () => {
  const { open } = useBrowser();
  let service: OwnService;
  before(async () => {
    const path = await writeTempFile('presets.yaml', PRESETS);
    service = await startService({ PRESETS_FILE: path });
  });
  after(() => service.stop());

  const preset = (page: Page) => page.getByRole('combobox', { name: 'Preset' });
  const fieldsOf = async (page: Page) => Object.fromEntries(await queryOf(page));

  it('offers the presets of the server, and no choice if there are none', async () => {
    const page = await open(service);
    expect(await preset(page).locator('option').allTextContents()).to.deep.equal(['None', 'card', 'product']);
    expect(await preset(page).inputValue()).to.equal('');
    await using other = await startService();
    expect(await preset(await open(other)).count()).to.equal(0);
  });

  it('sends the name and the options that were changed afterwards, and keeps both in the address', async () => {
    const page = await open(service, {}, '?output_format=png&width=100');
    await preset(page).selectOption('card');
    expect(await fieldsOf(page)).to.deep.equal({ preset: 'card' });
    expect(
      await page
        .getByRole('group', { name: 'Convert to' })
        .getByRole('radio', { name: 'Preset' })
        .isChecked(),
    ).to.equal(true);
    await showMore(page);
    const enlarges = page.getByLabel('Enlarge');
    expect(await enlarges.evaluate((box) => (box as HTMLInputElement).indeterminate)).to.equal(true);
    await convertFiles(page, [fixturePath('scene.png')]);
    expect(await sharp((await save(page, 'scene.jpg')).content).metadata()).to.include({
      width: 60,
      height: 60,
    });

    await showSize(page);
    await page.getByLabel('Max width').fill('30');
    await page.getByLabel('Quality').fill('80'); // the default of the page, but not that of a preset
    await page.getByLabel('Metadata').selectOption('Removed'); // the default, too
    const changed = { preset: 'card', quality: '80', width: '30', metadata: 'none' };
    expect(await fieldsOf(page)).to.deep.equal(changed);
    await page.reload();
    expect(await fieldsOf(page)).to.deep.equal(changed);
    expect(await preset(page).inputValue()).to.equal('card');
    expect(await page.getByLabel('Max width').inputValue()).to.equal('30');

    await page.getByRole('radio', { name: 'PNG' }).check();
    await page.getByLabel('Fit').selectOption('Stretch');
    await convertFiles(page, [fixturePath('scene.jpg')]);
    expect(await sharp((await save(page, 'scene.png')).content).metadata()).to.include({
      width: 30,
      height: 60,
    });
    await page.getByRole('group', { name: 'Convert to' }).getByRole('radio', { name: 'Preset' }).check();
    await page.getByLabel('Fit').selectOption('As in the preset');
    expect(await fieldsOf(page)).to.deep.equal({
      preset: 'card',
      width: '30',
      metadata: 'none',
      quality: '80',
    });
  });

  it('shows the earlier options again without the preset', async () => {
    const page = await open(service, {}, '?output_format=png&width=100');
    await preset(page).selectOption('card');
    await showSize(page);
    await page.getByLabel('Max width').fill('30');
    await preset(page).selectOption('None');
    expect(await fieldsOf(page)).to.deep.equal({ output_format: 'png', width: '100' });
    expect(await page.getByLabel('Max width').inputValue()).to.equal('100');
  });

  it('saves the archive of a preset with several results, which cannot be compared', async () => {
    const page = await open(service, {}, '?preset=product');
    await convertFiles(page, [fixturePath('scene.jpg')]);
    const entries = await readZip((await save(page, 'scene.zip')).content);
    expect(entries.map(({ name }) => name)).to.deep.equal([
      'scene-square.webp',
      'scene-zoom.png',
      'manifest.json',
    ]);
    await row(page, 'scene.jpg').locator('strong', { hasText: 'ZIP' }).waitFor();
    expect(await page.getByRole('button', { name: 'Compare scene.jpg' }).count()).to.equal(0);
    await row(page, 'scene.jpg').focus();
    await page.keyboard.press('Enter');
    expect(await page.getByRole('dialog').count()).to.equal(0);
  });

  it('ignores a preset of the address that the server does not have', async () => {
    const page = await open(service, {}, '?preset=gone');
    await page.getByRole('radio', { name: 'WebP' }).and(page.locator(':checked')).waitFor();
    expect(await fieldsOf(page)).to.deep.equal({ output_format: 'webp' });
  });

  it('has no axe violations and nothing beyond the width in dark mode on a phone', async () => {
    const phone = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };
    const page = await open(service, { ...phone, colorScheme: 'dark' }, '?preset=product&quality=50');
    await convertFiles(page, [fixturePath('moving.gif')]);
    await showOptions(page);
    await page.evaluate(axe.source);
    const { violations } = await page.evaluate(() => (window as unknown as { axe: typeof axe }).axe.run());
    expect(violations.flatMap(({ nodes }) => nodes.map(({ html }) => html))).to.deep.equal([]);
    const [all, shown] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    expect(all).to.be.at.most(shown as number);
  });
});
