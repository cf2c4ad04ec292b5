// @full: starts a browser
import { readFile, writeFile } from 'node:fs/promises';
import { expect } from 'chai';
import sharp from 'sharp';
import { fixturePath } from '../helpers/client.ts';
import {
  COLOURS,
  makePhoto,
  meanColour,
  PHOTO_HEIGHT,
  PHOTO_NAMES,
  PHOTO_WIDTH,
  type PhotoName,
  photoIn,
  photosIn,
} from '../helpers/coloured-photos.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { pdfFacts } from '../helpers/pdf.ts';
import { drawPdf } from '../helpers/pixels.ts';
import { useServiceWith } from '../helpers/service.ts';
import { boxOf, made, useBrowser, type WebPage } from './browser.ts';

const photos = (names: readonly PhotoName[] = PHOTO_NAMES) =>
  Promise.all(names.map(async (name) => made(name, await makePhoto(name))));
/** The first photos. */
const [TWO, THREE] = [PHOTO_NAMES.slice(0, 2), PHOTO_NAMES.slice(0, 3)];

const handle = (page: WebPage, name: string) =>
  page.getByRole('button', { name: `Move ${name}`, exact: true });
const oneFile = (page: WebPage) => page.getByRole('switch', { name: 'One file' });
/** Makes one file, and waits for it. */
const makeOne = async (page: WebPage, format = 'PDF') => {
  await page.button(`Make one ${format}`).click();
  await page.button('Preview').waitFor();
};
const saveOne = (page: WebPage) => page.download(page.locator('.action-bar a[download]'));

/** Drags a row by its handle, to the middle of another row or a little beyond. */
async function drag(page: WebPage, name: string, to: string, beyond: number): Promise<void> {
  const from = await boxOf(handle(page, name));
  const target = await boxOf(page.row(to));
  const x = from.x + from.width / 2;
  await page.mouse.move(x, from.y + from.height / 2);
  await page.mouse.down();
  await page.mouse.move(x, from.y + from.height / 2 + 10);
  await page.mouse.move(x, target.y + target.height / 2 + beyond, { steps: 5 });
  await page.mouse.up();
}

describe('one file of all files', () => {
  const { open } = useBrowser();
  const service = useServiceWith();

  /** Opens the page with photos that become one file. */
  const openWith = async (files: Awaited<ReturnType<typeof photos>>, format = 'PDF') => {
    const page = await open(service);
    await page.chooseFormat(format);
    await page.pick(files);
    if (format !== 'PDF') await page.showMore();
    await oneFile(page).check();
    return page;
  };

  it('has the order to which rows are dragged, up and down', async () => {
    const page = await openWith(await photos());
    expect(await page.names()).to.deep.equal(PHOTO_NAMES);
    await drag(page, 'IMG_100.jpg', 'IMG_1.jpg', -5);
    await drag(page, 'IMG_1.jpg', 'IMG_10.jpg', 5);
    const order = ['IMG_100.jpg', 'IMG_2.jpg', 'IMG_10.jpg', 'IMG_1.jpg', 'IMG_20.jpg'];
    expect(await page.names()).to.deep.equal(order);
    await page.announced('IMG_1.jpg: position 4 of 5.');
    await makeOne(page);
    await page.getByText('combined.pdf · 5 pages · ').waitFor();
    const { name, content } = await saveOne(page);
    expect(name).to.equal('combined.pdf');
    expect(await photosIn(content)).to.deep.equal(order);
  });

  it('has the order to which keys alone bring it, which are announced', async () => {
    const page = await openWith(await photos());
    const press = (key: string) => page.keyboard.press(key);
    await page.row('IMG_1.jpg').focus();
    await press('ArrowRight');
    await press('Space');
    await page.announced('IMG_1.jpg grabbed, position 1 of 5.');
    await press('ArrowDown');
    await page.announced('IMG_1.jpg: position 2 of 5.');
    await press('ArrowDown');
    await page.announced('IMG_1.jpg: position 3 of 5.');
    await press('Space');
    await page.announced('IMG_1.jpg dropped, position 3 of 5.');
    await press('ArrowDown'); // to the handle of the next row
    await press('Enter');
    await page.announced('IMG_20.jpg grabbed, position 4 of 5.');
    await press('Home');
    await page.announced('IMG_20.jpg: position 1 of 5.');
    await press('Enter');
    await press('End');
    await press('Space');
    await page.announced('IMG_100.jpg grabbed, position 5 of 5.');
    await press('ArrowUp');
    await press('ArrowUp');
    await page.announced('IMG_100.jpg: position 3 of 5.');
    await press('Escape');
    await page.announced('IMG_100.jpg put back, position 5 of 5.');
    const order = ['IMG_20.jpg', 'IMG_2.jpg', 'IMG_10.jpg', 'IMG_1.jpg', 'IMG_100.jpg'];
    expect(await page.names()).to.deep.equal(order);
    for (let at = 0; at < 20 && (await page.focused()) !== 'Make one PDF'; at += 1) await press('Shift+Tab');
    await press('Enter');
    await page.announced('combined.pdf is ready: 5 pages.');
    expect(await photosIn((await saveOne(page)).content)).to.deep.equal(order);
  });

  it('has the natural order of the names after "Sort by name", and says that it was made in another order', async () => {
    const page = await openWith(await photos());
    await drag(page, 'IMG_100.jpg', 'IMG_1.jpg', -5);
    await makeOne(page);
    await page.button('Sort by name').click();
    await page.announced('Sorted by name.');
    expect(await page.names()).to.deep.equal(PHOTO_NAMES);
    await page.locator('.totals .stale').waitFor();
    await makeOne(page);
    expect(await photosIn((await saveOne(page)).content)).to.deep.equal(PHOTO_NAMES);
    expect(await page.locator('.totals .stale').count()).to.equal(0);
  });

  it('can be ordered by taps alone', async () => {
    const page = await openWith(await photos(THREE));
    await handle(page, 'IMG_10.jpg').click();
    const up = page.button('Move IMG_10.jpg up');
    await up.click();
    await up.click();
    await page.button('Done with IMG_10.jpg').click();
    expect(await page.names()).to.deep.equal(['IMG_10.jpg', 'IMG_1.jpg', 'IMG_2.jpg']);
    await handle(page, 'IMG_1.jpg').click();
    await page.button('Move IMG_1.jpg down').waitFor();
    await page.locator('.wordmark').click();
    await page.announced('IMG_1.jpg dropped, position 2 of 3.'); // the focus left the row
  });

  it('keeps the order if Escape ends a drag', async () => {
    const page = await openWith(await photos(THREE));
    const from = await boxOf(handle(page, 'IMG_1.jpg'));
    await page.mouse.move(from.x + 9, from.y + 9);
    await page.mouse.down();
    await page.mouse.move(from.x + 9, from.y + 200, { steps: 4 });
    await page.locator('.file.dragged').waitFor();
    await page.keyboard.press('Escape');
    await page.mouse.up();
    expect(await page.locator('.file.dragged').count()).to.equal(0);
    expect(await page.names()).to.deep.equal(THREE);
  });

  it('has turned and cropped pictures as they are shown', async () => {
    const page = await openWith(await photos(THREE));
    await page.button('Rotate or flip IMG_1.jpg').click();
    await page.button('Rotate right IMG_1.jpg').click();
    const { dialog, close } = await page.compare('IMG_2.jpg');
    await dialog.getByRole('button', { name: 'Crop', exact: true }).click();
    const area = dialog.getByRole('region', { name: 'Crop' });
    for (const side of ['Width', 'Left']) {
      await area.getByLabel(side).fill(String(PHOTO_WIDTH / 2));
      await area.getByLabel(side).press('Enter');
    }
    await close();
    await page.ownOptions('IMG_2.jpg', 'Crop').waitFor();
    await makeOne(page);
    const { content } = await saveOne(page);
    expect((await pdfFacts(content)).points).to.deep.equal([
      [PHOTO_HEIGHT, PHOTO_WIDTH],
      [PHOTO_WIDTH / 2, PHOTO_HEIGHT],
      [PHOTO_WIDTH, PHOTO_HEIGHT],
    ]);
    const pages = await Promise.all([1, 2, 3].map((number) => drawPdf(content, number)));
    const dark = COLOURS['IMG_1.jpg'].map((value) => value / 2);
    // The dark left half is above after a rotation to the right.
    const upper = { left: 0, top: 0, width: PHOTO_HEIGHT, height: PHOTO_WIDTH / 2 - 8 };
    const top = await meanColour(await sharp(pages[0]).extract(upper).png().toBuffer());
    for (const [at, value] of dark.entries()) expect(top[at]).to.be.closeTo(value, 8);
    expect(await Promise.all(pages.slice(1).map(photoIn))).to.deep.equal(['IMG_2.jpg', 'IMG_10.jpg']);
    for (const [at, value] of (await meanColour(pages[1] as Buffer)).entries())
      expect(value).to.be.closeTo(COLOURS['IMG_2.jpg'][at] as number, 8);
  });

  it('is a GIF with a frame for each picture, the stated time and a name, and is shown', async () => {
    const page = await openWith(await photos(THREE), 'GIF');
    await page.getByLabel('Time of each picture').fill('120');
    await page.showMore();
    await page.getByLabel('Name of the file').fill('My album');
    await page.evaluate(() => scrollTo(0, 0));
    await drag(page, 'IMG_10.jpg', 'IMG_1.jpg', -5);
    await makeOne(page, 'GIF');
    await page.getByText('My album.gif · 3 frames · ').waitFor();
    await page.button('Preview').click();
    const dialog = page.getByRole('dialog', { name: 'My album.gif' });
    await dialog.getByAltText('The result').waitFor();
    const { name, content } = await page.download(dialog.getByRole('link', { name: 'Save' }));
    expect(name).to.equal('My album.gif');
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    const { pages, delay } = await sharp(content, { animated: true }).metadata();
    expect([pages, delay]).to.deep.equal([3, [120, 120, 120]]);
    const shown = await Promise.all(
      [0, 1, 2].map(async (frame) => photoIn(await sharp(content, { page: frame }).png().toBuffer())),
    );
    expect(shown).to.deep.equal(['IMG_10.jpg', 'IMG_1.jpg', 'IMG_2.jpg']);
    const query = await page.query();
    expect(['combine', 'delay', 'name'].map((field) => query.get(field))).to.deep.equal([
      'true',
      '120',
      'My album',
    ]);
  });

  it('has pages of the size and with the margin beside the switch, which are below "More" otherwise', async () => {
    const page = await openWith(await photos(TWO));
    await page.getByLabel('Page size').selectOption('a5');
    await page.getByLabel('Page margin').fill('10');
    await page.getByLabel('Page orientation').selectOption('portrait');
    await makeOne(page);
    const { content } = await saveOne(page);
    expect((await pdfFacts(content)).points.map((sides) => sides.map(Math.round))).to.deep.equal([
      [420, 595],
      [420, 595],
    ]);
    const drawn = sharp(await drawPdf(content))
      .greyscale()
      .raw();
    const { data, info } = await drawn.toBuffer({ resolveWithObject: true });
    const middle = info.width * Math.floor(info.height / 2);
    const margin = data.subarray(middle).findIndex((value) => value < 250);
    expect(margin).to.be.within(27, 29); // 10 mm are 28.3 points
    await oneFile(page).uncheck();
    expect(await page.getByLabel('Page size').isVisible()).to.equal(false);
    await page.showMore();
    expect(await page.getByLabel('Page size').inputValue()).to.equal('a5');
  });

  it('has all pages of a TIFF, or those that are chosen, and notes are at the rows of their files', async () => {
    const page = await open(service, {}, '?output_format=gif&combine=true&width=60&height=60');
    await page.pick(['pages.tiff', 'moving.gif']); // 3 pages, and an animation
    await handle(page, 'moving.gif').press('Enter');
    await page.keyboard.press('End');
    await page.showMore();
    await page.getByLabel('Pages', { exact: true }).fill('2-3');
    await makeOne(page, 'GIF');
    await page.getByText('combined.gif · 3 frames · ').waitFor();
    const notes = (name: string) => page.row(name).locator('.file-state').allTextContents();
    expect(await notes('moving.gif')).to.deep.equal(['Only the first frame of the animation was converted.']);
    expect(await notes('pages.tiff')).to.deep.equal([]);
    await page.chooseFormat('PDF');
    await makeOne(page);
    await page.getByText('combined.pdf · 3 pages · ').waitFor();
    await page.getByLabel('Pages', { exact: true }).fill('');
    await makeOne(page);
    await page.getByText('combined.pdf · 4 pages · ').waitFor();
    expect((await pdfFacts((await saveOne(page)).content)).pages).to.equal(4);
  });

  it('says in its row that a turned TIFF has its first page only, where the server writes no TIFF', async () => {
    const page = await openWith([
      made('pages.tiff', await readFile(fixturePath('pages.tiff'))),
      ...(await photos(['IMG_1.jpg'])),
    ]);
    await page.button('Rotate or flip pages.tiff').click();
    await page.button('Rotate right pages.tiff').click();
    await makeOne(page);
    await page.getByText('combined.pdf · 2 pages · ').waitFor();
    expect(await page.row('pages.tiff').locator('.file-state').allTextContents()).to.include(
      'Only the first page was converted.',
    );
  });

  it('shows which file is damaged in its row, and is made without it once it is removed', async () => {
    const [first, second] = await photos(TWO);
    if (!first || !second) return expect.fail('no photos');
    const bad = made('IMG_3.jpg', first.buffer.subarray(0, 40));
    const page = await openWith([first, bad, second]);
    await page.button('Make one PDF').click();
    await page
      .row('IMG_3.jpg')
      .getByText(/^File 3 \("IMG_3\.jpg"\)/)
      .waitFor();
    await page.locator('.totals .error').waitFor();
    await page.button('Remove IMG_3.jpg').click();
    await makeOne(page);
    expect(await photosIn((await saveOne(page)).content)).to.deep.equal(TWO);
  });

  it('leaves out what the server would reject, and can be cancelled', async () => {
    const page = await openWith([...(await photos(TWO)), made('empty.jpg', Buffer.alloc(0))]);
    await page.locator('.totals').getByText('2 files').waitFor();
    await page.route('**/api/v1/batch', () => {});
    await page.button('Make one PDF').click();
    await page.button('Cancel').click();
    await page.locator('.totals').getByText('2 files').waitFor();
    await page.unroute('**/api/v1/batch');
    await makeOne(page);
    expect(await photosIn((await saveOne(page)).content)).to.deep.equal(TWO);
  });

  it('is not sent with more files than the server accepts', async () => {
    const few = await photos(['IMG_1.jpg']);
    const many = Array.from({ length: 21 }, (_, at) =>
      made(`${at}.jpg`, (few[0] as { buffer: Buffer }).buffer),
    );
    const page = await openWith(many);
    const requests: string[] = [];
    page.on('request', (request) => requests.push(request.url()));
    await page.button('Make one PDF').click();
    await page.locator('.totals').getByText('This server makes one file of up to 20 files.').waitFor();
    expect(requests.filter((url) => url.includes('/api/'))).to.deep.equal([]);
  });

  it('is what the curl commands make', async () => {
    const files = await photos(TWO);
    const folder = await makeTempDir('combined');
    for (const { name, buffer } of files) await writeFile(`${folder}/${name}`, buffer);
    const page = await openWith(files);
    await drag(page, 'IMG_2.jpg', 'IMG_1.jpg', -5);
    await page.button('Rotate or flip IMG_1.jpg').click();
    await page.button('Flip upside down IMG_1.jpg').click();
    await page.runCurl(folder);
    expect(await photosIn(await readFile(`${folder}/combined.pdf`))).to.deep.equal([
      'IMG_2.jpg',
      'IMG_1.jpg',
    ]);
  });

  it('is offered only for formats that the server combines', async () => {
    const page = await open(service);
    await page.pick(['scene.png', 'scene.jpg']);
    await page.showMore();
    await oneFile(page).waitFor(); // WebP
    await page.chooseFormat('PNG');
    expect(await oneFile(page).count()).to.equal(0);
    const handles = page.button(/^Move /);
    expect(await handles.count()).to.equal(0);
    await page.route('**/api/v1/formats', async (route) => {
      const response = await route.fetch();
      const { combine: _, ...formats } = await response.json();
      await route.fulfill({ response, json: formats });
    });
    await page.reload();
    await page.chooseFormat('PDF');
    await page.pick(['scene.png', 'scene.jpg']);
    await page.row('scene.png').waitFor();
    expect(await oneFile(page).count()).to.equal(0);
  });
});
