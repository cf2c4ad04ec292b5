// @full: 200 files
// @slow
import { mkdir, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { expect } from 'chai';
import sharp, { type Sharp } from 'sharp';
import { convert, fixture } from '../helpers/client.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { decode, difference, toPixels } from '../helpers/pixels.ts';
import { useServiceWith } from '../helpers/service.ts';
import { eventually } from '../helpers/util.ts';
import { made, useBrowser } from './browser.ts';

describe('options of one picture', () => {
  const { open } = useBrowser();
  const service = useServiceWith();

  it('change one result in the comparison, and no other result is stale or converted again', async () => {
    const page = await open(service);
    const queries = page.recordQueries();
    await page.convertFiles(['scene.jpg', 'grey.jpg', 'scene.png']);
    const { dialog, done, close } = await page.compare('scene.jpg');
    const reset = dialog.getByRole('button', { name: 'Reset' });
    expect(await reset.isDisabled()).to.equal(true);
    const changed = page.waitForResponse(/quality=40/);
    await dialog.getByLabel('Quality').fill('40');
    await changed;
    await done();
    await close();
    await page.ownOptions('scene.jpg', 'Quality').waitFor();
    expect(await page.stale().count()).to.equal(0);
    expect(await page.button(/^Convert \d/).count()).to.equal(0);
    expect(queries.map((query) => query.get('quality'))).to.deep.equal([null, null, null, '40']);
    expect((await page.query()).has('quality')).to.equal(false);

    const entry = (await page.saveZip()).entries.find(({ name }) => name === 'scene.webp');
    const { body } = await convert(service.base, await fixture('scene.jpg'), { quality: '40' });
    expect(entry?.content.equals(body)).to.equal(true);
  });

  it('survive a change of the panel, are in the curl command, and end with Reset', async () => {
    const page = await open(service);
    await page.convertFiles(['scene.jpg', 'grey.jpg']);
    const { dialog, done, close } = await page.compare('scene.jpg');
    const changed = page.waitForResponse(/width=60/);
    await dialog.getByLabel('Convert to').selectOption('JPEG');
    await dialog.getByLabel('Quality').fill('30');
    await dialog.getByLabel('Max width').fill('60');
    await changed;
    await done();
    await close();
    expect(await page.getByRole('row', { name: 'scene.jpg' }).getByRole('combobox').inputValue()).to.equal(
      'jpg',
    );
    const queries = page.recordQueries();
    await page.getByLabel('Quality').fill('50');
    await page.stale('grey.jpg').waitFor();
    expect(await page.stale().count()).to.equal(1);
    await page.again.click();
    await page.settled();
    expect(queries.map(String)).to.deep.equal(['output_format=webp&quality=50']);

    const command = await page.curl();
    for (const field of ['output_format=jpg', 'quality=30', 'width=60', 'quality=50'])
      expect(command).to.include(field);

    const menu = await page.openMenu('scene.jpg');
    await menu.getByRole('button', { name: 'Reset the options of scene.jpg' }).click();
    await page.stale('scene.jpg').waitFor();
    expect(await page.ownOptions().count()).to.equal(0);
    await page.convertAll();
    expect(queries.at(-1)?.get('quality')).to.equal('50');
    await page.saveLink('scene.webp').waitFor();
  });

  it('become those of all files, and replace the same options of other files only', async () => {
    const page = await open(service);
    await page.pick(['scene.jpg', 'grey.jpg']);
    const grey = await page.compare('grey.jpg');
    await grey.dialog.getByLabel('Quality').fill('20');
    await grey.dialog.getByRole('button', { name: 'Rotate right grey.jpg' }).click();
    await grey.close();
    await page.ownOptions('grey.jpg', 'Quality, Rotate').waitFor();
    const scene = await page.compare('scene.jpg');
    await scene.dialog.getByLabel('Quality').fill('30');
    await scene.dialog.getByRole('button', { name: 'Apply to all' }).click();
    await scene.close();
    await page.ownOptions('grey.jpg', 'Rotate').waitFor();
    expect(await page.ownOptions().count()).to.equal(1);
    expect((await page.query()).get('quality')).to.equal('30');
    const queries = page.recordQueries();
    await page.convertAll();
    expect(queries.map((query) => [query.get('quality'), query.get('rotate')])).to.deep.include(['30', '90']);
  });

  it('of ten among 200 dropped photos are in the ZIP, and no request is sent twice', async () => {
    const folder = join(await makeTempDir('photos'), 'album');
    await mkdir(folder);
    const photo = await fixture('scene.jpg');
    const names = Array.from({ length: 200 }, (_, at) => `${at + 10}.jpg`);
    // Bytes after the end of each image, so that the size of a request tells which photo it has.
    for (const [at, name] of names.entries())
      await writeFile(join(folder, name), Buffer.concat([photo, Buffer.alloc(at)]));
    const requests: string[] = [];
    service.server.on('request', ({ url = '', headers }: IncomingMessage) => {
      const at = Number(headers['content-length']) - photo.length;
      if (url.includes('/convert?')) requests.push(`${names[at]} ${url.split('?')[1]}`);
    });
    const page = await open(service);
    await page.drop([folder]);
    await page.button('Convert 200 files').waitFor();
    const edited = names.slice(0, 10);
    for (const [at, name] of edited.entries()) {
      const turn = page.button(`Rotate left ${name}`);
      if (at % 3 === 0) {
        const { done, close } = await page.compare(name);
        const turned = page.waitForResponse(/rotate=270/);
        await turn.click();
        await turned;
        await done();
        await close();
      } else {
        await page.button(`Rotate or flip ${name}`).click();
        await turn.click();
      }
    }
    await page.button('Convert 196 files').waitFor();
    await page.convertAll();
    const { entries } = await page.saveZip();
    const turned = entries.map(async ({ name, content }) => {
      const { width, height } = await sharp(content).metadata();
      return width < height ? [name] : [];
    });
    expect(entries).to.have.length(200);
    expect((await Promise.all(turned)).flat()).to.deep.equal(
      edited.map((name) => `album/${name.replace('jpg', 'webp')}`),
    );
    expect(requests.toSorted()).to.deep.equal([...new Set(requests)].toSorted());
    // It also shows what a photo was without its own options, if there was time for that.
    const isPreliminary = (request: string) =>
      edited.some((name) => request.startsWith(`${name} `)) && !request.includes('rotate');
    expect(requests.filter((request) => !isPreliminary(request))).to.have.length(200);
  });

  it('turn a picture as it is shown, in any order, and its original in the comparison', async () => {
    const page = await open(service, {}, '?output_format=png');
    const file = await fixture('scene.png');
    await page.pick([made('scene.png', file)]);
    const { dialog, done, close } = await page.compare('scene.png');
    /** Turns pixels without options that another turn could replace. */
    const apply = async (image: Buffer, turned: (image: Sharp) => Sharp) =>
      turned(sharp(image)).png().toBuffer();
    const turns: readonly [string, (image: Sharp) => Sharp][] = [
      ['Rotate right', (image) => image.rotate(90)],
      ['Flip left to right', (image) => image.flop()],
      ['Rotate right', (image) => image.rotate(90)],
      ['Flip upside down', (image) => image.flip()],
      ['Rotate left', (image) => image.rotate(270)],
      ['Flip left to right', (image) => image.flop()],
      ['Rotate left', (image) => image.rotate(270)],
    ];
    await done();
    let expected = file;
    for (const [label, turned] of turns) {
      expected = await apply(expected, turned);
      const response = page.waitForResponse(/\/convert\?/);
      await dialog.getByRole('button', { name: `${label} scene.png` }).click();
      const result = await (await response).body();
      expect(difference(await decode(result), await toPixels(sharp(expected))).max, label).to.equal(0);
    }
    await done();
    // The divider at its ends shows only the result, and only the original.
    const slider = dialog.getByRole('slider', { name: /divider/ });
    const shown = async (position: string) => {
      await slider.fill(position);
      await dialog.locator('.pair').evaluate((pair) => {
        for (const hidden of pair.querySelectorAll<HTMLElement>('.divider')) hidden.style.display = 'none';
      });
      return decode(await dialog.locator('.pair').screenshot());
    };
    await eventually(async () => difference(await shown('0'), await shown('100')).mae < 1);
    await close();
    const thumbnail = page.row('scene.png').locator('.thumbnail img');
    expect(await thumbnail.evaluate((image) => image.style.transform)).to.match(/^scale\(.*rotate\(/);
  });

  it('of the list turn pictures by keyboard, and the other buttons come back', async () => {
    const page = await open(service);
    await page.pick(['scene.jpg']);
    await page.getByRole('row', { name: 'scene.jpg' }).focus();
    const go = async (key: string, label: string) => {
      for (let step = 0; step < 9 && (await page.focused()) !== label; step += 1)
        await page.keyboard.press(key);
      expect(await page.focused()).to.equal(label);
    };
    await go('ArrowRight', 'Rotate or flip scene.jpg');
    await page.keyboard.press('Enter');
    expect(await page.getByLabel('Format of scene.jpg').count()).to.equal(0);
    await go('ArrowLeft', 'Flip upside down scene.jpg');
    await page.keyboard.press('Enter');
    await page.ownOptions('scene.jpg', 'Flip').waitFor();
    await page.keyboard.press('Enter');
    await page.row('scene.jpg').getByText('Own options').waitFor({ state: 'detached' });
    await page.keyboard.press('Shift+Tab');
    await page.getByLabel('Format of scene.jpg').waitFor();
  });
});
