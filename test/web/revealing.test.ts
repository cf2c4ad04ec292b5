// @full: starts a browser
import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { fixture, fixturePath } from '../helpers/client.ts';
import { writeTempFile } from '../helpers/hooks.ts';
import { useServiceWith } from '../helpers/service.ts';
import { boxOf, made, useBrowser } from './browser.ts';

/** Returns a photo with a place, a camera and a thumbnail. */
async function photo(): Promise<Buffer> {
  const path = await writeTempFile('photo.jpg', await fixture('scene.jpg'));
  const tags = ['-GPSLatitude=48.137154', '-GPSLatitudeRef=N', '-GPSLongitude=11.5', '-GPSLongitudeRef=E'];
  const camera = [
    '-SerialNumber=00123',
    '-Comment=<b>bold</b>',
    `-ThumbnailImage<=${fixturePath('grey.jpg')}`,
  ];
  execFileSync('exiftool', ['-q', '-overwrite_original', ...tags, ...camera, path]);
  return readFile(path);
}

describe('what a photo gives away, on the page', () => {
  const { open } = useBrowser();
  const service = useServiceWith();

  it('is said to be removed in its row, and once for all files', async () => {
    const page = await open(service);
    await page.convertFiles([
      made('photo.jpg', await photo()),
      made('plain.jpg', await fixture('scene.jpg')),
    ]);
    await page.getByText('Place, camera and thumbnail removed from 1 photo.').waitFor();
    await page.row('photo.jpg').getByText('Place removed').waitFor({ state: 'attached' });
    expect(await page.row('plain.jpg').getByText('Place removed').count()).to.equal(0);
  });

  it('is said to stay with all metadata', async () => {
    const page = await open(service, {}, '?output_format=jpg&metadata=all');
    await page.convertFiles([made('photo.jpg', await photo())]);
    await page.getByText('Place, camera and thumbnail kept in 1 photo.').waitFor();
    await page.row('photo.jpg').getByText('The place stays in the result.').waitFor({ state: 'attached' });
  });

  it('is listed on demand, without markup, and Escape returns to the row', async () => {
    for (const colorScheme of ['light', 'dark'] as const) {
      const page = await open(service, { colorScheme, viewport: { width: 360, height: 640 } });
      await page.pick([made('photo.jpg', await photo())]);
      await (await page.openMenu('photo.jpg')).getByText('What it gives away').click();
      const dialog = page.getByRole('dialog', { name: 'What photo.jpg gives away' });
      for (const value of ['48.137154, 11.500000', '00123', '<b>bold</b>'])
        await dialog.getByText(value).waitFor();
      const thumbnail = dialog.getByRole('img', { name: 'The embedded thumbnail' });
      await thumbnail.waitFor();
      expect(await thumbnail.evaluate((image: HTMLImageElement) => image.naturalWidth)).to.be.above(0);
      expect(await page.faults()).to.deep.equal([]);
      const { x, width } = await boxOf(dialog);
      expect([x >= 0, x + width <= 360]).to.deep.equal([true, true]);
      await page.keyboard.press('Escape');
      await dialog.waitFor({ state: 'detached' });
    }
  });

  it('is not said to be absent in a drawing, whose metadata the server does not read', async () => {
    const page = await open(service);
    const drawing =
      '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><title>By Ann</title></svg>';
    await page.pick([made('drawing.svg', Buffer.from(drawing))]);
    await (await page.openMenu('drawing.svg')).getByText('What it gives away').click();
    const dialog = page.getByRole('dialog', { name: 'What drawing.svg gives away' });
    await dialog.getByText('The metadata was not read.').waitFor();
    expect(await dialog.getByText('Found no').count()).to.equal(0);
  });
});
