// @slow
import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import sharp from 'sharp';
import { fixture, fixturePath, formOf, postForm } from '../helpers/client.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { plain } from '../helpers/pixels.ts';
import { execute } from '../helpers/process.ts';
import { useServiceWith } from '../helpers/service.ts';
import {
  compare,
  convertAll,
  download,
  made,
  pick,
  queryOf,
  recordQueries,
  row,
  save,
  saveLink,
  showCurl,
  showMore,
  useBrowser,
} from './browser.ts';

describe('the size of results and a watermark on the page', () => {
  const { open } = useBrowser();
  const service = useServiceWith();
  const logo = () => plain(20, 10, 'red').png().toBuffer();

  it('put an image of this device on each result, as the API does, until it is removed', async () => {
    const page = await open(service, {}, '?output_format=png');
    await pick(page, [fixturePath('scene.png'), fixturePath('grey.jpg')]);
    await showMore(page);
    expect(await page.getByLabel('Opacity').count()).to.equal(0);
    await page.getByLabel('Watermark', { exact: true }).setInputFiles(made('my logo.png', await logo()));
    await page.getByLabel('Watermark position').selectOption('Top left');
    await page.getByLabel('Opacity').fill('50');
    await page.getByLabel('Watermark width').fill('40');
    await convertAll(page);
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
    expect((await save(page, 'scene.png')).content.equals(body)).to.equal(true);

    const folder = await makeTempDir('curl');
    await writeFile(join(folder, 'my logo.png'), await logo());
    await copyFile(fixturePath('scene.png'), join(folder, 'scene.png'));
    await page.getByRole('button', { name: 'Remove grey.jpg' }).click();
    await showCurl(page);
    await execute('sh', ['-ec', await page.getByLabel('curl command').inputValue()], { cwd: folder });
    expect((await readFile(join(folder, 'scene (2).png'))).equals(body)).to.equal(true);

    await page.getByRole('button', { name: 'Remove the watermark' }).click();
    await row(page, 'scene.png').getByText('Converted with other options.').waitFor();
    // The address keeps the place for the next watermark, and the request has none.
    expect((await queryOf(page)).get('watermark_position')).to.equal('left top');
    const queries = recordQueries(page);
    await convertAll(page);
    expect(queries.map(String)).to.deep.equal(['output_format=png']);
    expect((await save(page, 'scene.png')).content.equals(body)).to.equal(false);
  });

  it('make a result stale if another image of the same name is the watermark', async () => {
    const page = await open(service);
    await pick(page, [fixturePath('scene.png')]);
    await showMore(page);
    const picker = page.getByLabel('Watermark', { exact: true });
    await picker.setInputFiles(made('logo.png', await logo()));
    await convertAll(page);
    await picker.setInputFiles(made('logo.png', await plain(10, 10, 'blue').png().toBuffer()));
    await page.getByRole('button', { name: 'Convert 1 again' }).waitFor();
  });

  it('fail with a damaged watermark, and are converted again without it', async () => {
    const page = await open(service);
    await pick(page, [fixturePath('scene.png')]);
    await showMore(page);
    await page.getByLabel('Watermark', { exact: true }).setInputFiles(made('logo.png', Buffer.from('text')));
    await convertAll(page);
    await row(page, 'scene.png').getByText('The watermark is not an image of a supported format').waitFor();
    await page.getByRole('button', { name: 'Remove the watermark' }).click();
    await page.getByRole('button', { name: 'Convert 1 again' }).click();
    await saveLink(page, 'scene.webp').waitFor();
  });

  it('can be in pixels, in percent or twice that of a drawing, of all files or of one', async () => {
    const page = await open(service, {}, '?output_format=png&width=30');
    await pick(page, [fixturePath('scene.svg'), fixturePath('scene.png')]);
    const size = page.getByRole('combobox', { name: 'Size' });
    await size.selectOption('In percent');
    expect(await page.getByLabel('Max width').count()).to.equal(0);
    await page.getByRole('spinbutton', { name: 'Scale' }).fill('');
    expect(await size.inputValue()).to.equal('percent');
    await page.getByRole('spinbutton', { name: 'Scale' }).fill('25');
    expect(Object.fromEntries(await queryOf(page))).to.deep.equal({ output_format: 'png', scale: '25' });
    const { dialog, done, close } = await compare(page, 'scene.svg');
    await done();
    const changed = page.waitForResponse(/scale=200/);
    await dialog.getByRole('combobox', { name: 'Size' }).selectOption('2×, for drawings');
    await changed;
    await done();
    await close();
    await convertAll(page);
    const { width: drawn = 0 } = await sharp(await fixture('scene.svg')).metadata();
    const widths: number[] = [];
    for (const source of ['scene.svg', 'scene.png']) {
      const link = page.getByRole('row', { name: source }).getByRole('link', { name: /^Save/ });
      const { content } = await download(page, link);
      widths.push((await sharp(content).metadata()).width ?? 0);
    }
    expect(widths).to.deep.equal([drawn * 2, 30]);
    await size.selectOption('In pixels');
    await page.getByLabel('Max width').waitFor();
    expect((await queryOf(page)).has('scale')).to.equal(false);
  });
});
