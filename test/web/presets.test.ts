// @full: starts a browser
import { expect } from 'chai';
import { writeTempFile } from '../helpers/hooks.ts';
import { type OwnService, startService } from '../helpers/service.ts';
import { readZip } from '../helpers/zip.ts';
import { PHONE, useBrowser, type WebPage } from './browser.ts';

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

  const preset = (page: WebPage) => page.getByRole('combobox', { name: 'Preset' });
  const fieldsOf = async (page: WebPage) => Object.fromEntries(await page.query());

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
    await page.showMore();
    const enlarges = page.getByLabel('Enlarge');
    expect(await enlarges.evaluate((box) => (box as HTMLInputElement).indeterminate)).to.equal(true);
    await page.convertFiles(['scene.png']);
    expect(await page.saveImage('scene.jpg')).to.include({ width: 60, height: 60 });

    await page.showSize();
    await page.getByLabel('Max width').fill('30');
    await page.getByLabel('Quality').fill('80'); // the default of the page, but not that of a preset
    await page.getByLabel('Metadata').selectOption('Removed'); // the default, too
    const changed = { preset: 'card', quality: '80', width: '30', metadata: 'none' };
    expect(await fieldsOf(page)).to.deep.equal(changed);
    await page.reload();
    expect(await fieldsOf(page)).to.deep.equal(changed);
    expect(await preset(page).inputValue()).to.equal('card');
    expect(await page.getByLabel('Max width').inputValue()).to.equal('30');

    await page.chooseFormat('PNG');
    await page.getByLabel('Fit').selectOption('Stretch');
    await page.convertFiles(['scene.jpg']);
    expect(await page.saveImage('scene.png')).to.include({ width: 30, height: 60 });
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
    await page.showSize();
    await page.getByLabel('Max width').fill('30');
    await preset(page).selectOption('None');
    expect(await fieldsOf(page)).to.deep.equal({ output_format: 'png', width: '100' });
    expect(await page.getByLabel('Max width').inputValue()).to.equal('100');
  });

  it('saves the archive of a preset with several results, which cannot be compared', async () => {
    const page = await open(service, {}, '?preset=product');
    await page.convertFiles(['scene.jpg']);
    const entries = await readZip((await page.save('scene.zip')).content);
    expect(entries.map(({ name }) => name)).to.deep.equal([
      'scene-square.webp',
      'scene-zoom.png',
      'manifest.json',
    ]);
    await page.row('scene.jpg').locator('strong', { hasText: 'ZIP' }).waitFor();
    expect(await page.button('Compare scene.jpg').count()).to.equal(0);
    await page.row('scene.jpg').focus();
    await page.keyboard.press('Enter');
    expect(await page.getByRole('dialog').count()).to.equal(0);
  });

  it('ignores a preset of the address that the server does not have', async () => {
    const page = await open(service, {}, '?preset=gone');
    await page.getByRole('radio', { name: 'WebP' }).and(page.locator(':checked')).waitFor();
    expect(await fieldsOf(page)).to.deep.equal({ output_format: 'webp' });
  });

  it('has no axe violations and nothing beyond the width in dark mode on a phone', async () => {
    const page = await open(service, { ...PHONE, colorScheme: 'dark' }, '?preset=product&quality=50');
    await page.convertFiles(['moving.gif']);
    await page.showOptions();
    expect(await page.faults()).to.deep.equal([]);
    const [all, shown] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    expect(all).to.be.at.most(shown as number);
  });
});
