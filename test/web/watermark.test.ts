// @slow
import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import sharp from 'sharp';
import { fixture, fixturePath, formOf, postForm } from '../helpers/client.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { plain } from '../helpers/pixels.ts';
import { useServiceWith } from '../helpers/service.ts';
import { made, useBrowser } from './browser.ts';

describe('the size of results and a watermark on the page', () => {
  const { open } = useBrowser();
  const service = useServiceWith();
  const logo = () => plain(20, 10, 'red').png().toBuffer();

  it('put an image of this device on each result, as the API does, until it is removed', async () => {
    const page = await open(service, {}, '?output_format=png');
    await page.pick(['scene.png', 'grey.jpg']);
    await page.showMore();
    expect(await page.getByLabel('Opacity').count()).to.equal(0);
    await page.getByLabel('Watermark', { exact: true }).setInputFiles(made('my logo.png', await logo()));
    await page.getByLabel('Watermark position').selectOption('Top left');
    await page.getByLabel('Opacity').fill('50');
    await page.getByLabel('Watermark width').fill('40');
    await page.convertAll();
    const fields = {
      output_format: 'png',
      watermark_position: 'left top',
      watermark_opacity: '50',
      watermark_scale: '40',
    };
    const form = formOf(fields, [
      ['my logo.png', await logo(), 'watermark'],
      ['scene.png', await fixture('scene.png')],
    ]);
    const { body } = await postForm(`${service.base}/convert`, form);
    expect((await page.save('scene.png')).content.equals(body)).to.equal(true);

    const folder = await makeTempDir('curl');
    await writeFile(join(folder, 'my logo.png'), await logo());
    await copyFile(fixturePath('scene.png'), join(folder, 'scene.png'));
    await page.button('Remove grey.jpg').click();
    await page.runCurl(folder);
    expect((await readFile(join(folder, 'scene (2).png'))).equals(body)).to.equal(true);

    await page.button('Remove the watermark').click();
    await page.stale('scene.png').waitFor();
    // The address keeps the place for the next watermark, and the request has none.
    expect((await page.query()).get('watermark_position')).to.equal('left top');
    const queries = page.recordQueries();
    await page.convertAll();
    expect(queries.map(String)).to.deep.equal(['output_format=png']);
    expect((await page.save('scene.png')).content.equals(body)).to.equal(false);
  });

  it('make a result stale if another image of the same name is the watermark', async () => {
    const page = await open(service);
    await page.pick(['scene.png']);
    await page.showMore();
    const picker = page.getByLabel('Watermark', { exact: true });
    await picker.setInputFiles(made('logo.png', await logo()));
    await page.convertAll();
    await picker.setInputFiles(made('logo.png', await plain(10, 10, 'blue').png().toBuffer()));
    await page.again.waitFor();
  });

  it('fail with a damaged watermark, and are converted again without it', async () => {
    const page = await open(service);
    await page.pick(['scene.png']);
    await page.showMore();
    await page.getByLabel('Watermark', { exact: true }).setInputFiles(made('logo.png', Buffer.from('text')));
    await page.convertAll();
    await page.row('scene.png').getByText('The watermark is not an image of a supported format').waitFor();
    await page.button('Remove the watermark').click();
    await page.again.click();
    await page.saveLink('scene.webp').waitFor();
  });

  it('can be in pixels, in percent or twice that of a drawing, of all files or of one', async () => {
    const page = await open(service, {}, '?output_format=png&width=30');
    await page.pick(['scene.svg', 'scene.png']);
    const size = page.getByRole('combobox', { name: 'Size' });
    await size.selectOption('In percent');
    expect(await page.getByLabel('Max width').count()).to.equal(0);
    await page.getByRole('spinbutton', { name: 'Scale' }).fill('');
    expect(await size.inputValue()).to.equal('percent');
    await page.getByRole('spinbutton', { name: 'Scale' }).fill('25');
    expect(Object.fromEntries(await page.query())).to.deep.equal({ output_format: 'png', scale: '25' });
    const { dialog, done, close } = await page.compare('scene.svg');
    await done();
    const changed = page.waitForResponse(/scale=200/);
    await dialog.getByRole('combobox', { name: 'Size' }).selectOption('2×, for drawings');
    await changed;
    await done();
    await close();
    await page.convertAll();
    const { width: drawn = 0 } = await sharp(await fixture('scene.svg')).metadata();
    const widths: number[] = [];
    for (const source of ['scene.svg', 'scene.png']) {
      const link = page.getByRole('row', { name: source }).getByRole('link', { name: /^Save/ });
      const { content } = await page.download(link);
      widths.push((await sharp(content).metadata()).width ?? 0);
    }
    expect(widths).to.deep.equal([drawn * 2, 30]);
    await size.selectOption('In pixels');
    await page.getByLabel('Max width').waitFor();
    expect((await page.query()).has('scale')).to.equal(false);
  });
});
