// @full: starts a browser
import { expect } from 'chai';
import { fixture, fixturePath } from '../helpers/client.ts';
import { useServiceWith } from '../helpers/service.ts';
import { type Made, made, useBrowser } from './browser.ts';

describe('the list of files on the page', () => {
  const { open } = useBrowser();
  const service = useServiceWith();

  const openConverted = async (
    files: readonly string[] | readonly Made[] = [fixturePath('grey.jpg'), fixturePath('scene.png')],
  ) => {
    const page = await open(service);
    await page.clock.install();
    await page.recordUrls();
    await page.convertFiles(files);
    return page;
  };

  it('restores the results after Clear list, by keyboard, and announces it', async () => {
    const page = await openConverted();
    const before = await page.save('scene.webp');
    await page.button('Clear list').press('Enter');
    await page.announced('2 results removed.');
    for (let step = 0; step < 2; step += 1) await page.keyboard.press('Tab'); // after "Choose a folder"
    expect(await page.focused()).to.equal('Undo');
    await page.keyboard.press('Enter');
    await page.finished(2);
    await page.announced('2 results restored.');
    expect(await page.names()).to.deep.equal(['grey.jpg', 'scene.png']);
    expect(await page.button('Undo').count()).to.equal(0);
    expect(await page.focused()).to.equal('Add files');
    const after = await page.save('scene.webp');
    expect(after).to.deep.equal(before);
    await page.locator('.thumbnail img').nth(1).waitFor();
  });

  it('restores a removed row at its place, and frees the results of earlier removals', async () => {
    const page = await openConverted();
    const [grey, scene] = await Promise.all(
      ['grey.webp', 'scene.webp'].map((name) => page.saveLink(name).getAttribute('href')),
    );
    await page.button('Remove grey.jpg').click();
    await page.announced('1 result removed.');
    await page.button('Undo').click();
    await page.row('grey.jpg').waitFor();
    expect(await page.names()).to.deep.equal(['grey.jpg', 'scene.png']);

    await page.button('Remove grey.jpg').click();
    expect((await page.heldUrls()).includes(grey as string)).to.equal(true);
    await page.button('Remove scene.png').click();
    await page.announced('1 result removed.');
    expect((await page.heldUrls()).includes(grey as string)).to.equal(false);
    await page.pick(['scene.gif']);
    await page.row('scene.gif').waitFor();
    expect(await page.button('Undo').count()).to.equal(0);
    expect((await page.heldUrls()).includes(scene as string)).to.equal(false);
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
      await page.loaded();
      return asked.join();
    };
    await page.save('grey.webp');
    expect(await isAsked()).to.equal('beforeunload');

    await page.convertFiles(['grey.jpg']);
    await page.save('grey.webp');
    expect(await isAsked()).to.equal('');

    await page.convertFiles(['grey.jpg']);
    await page.saveZip();
    await page.announced('converted.zip is ready.');
    expect(await isAsked()).to.equal('');
  });

  it('has the failed files in one closed group on top, which opens, and is gone without them', async () => {
    const bad = made('bad.png', Buffer.from('text'));
    const page = await openConverted([made('a.png', await fixture('scene.png')), bad]);
    const group = page.button('1 not converted');
    expect([await page.names(), await group.getAttribute('aria-expanded')]).to.deep.equal([
      ['a.png'],
      'false',
    ]);
    await group.press('Enter');
    await page.row('bad.png').getByText('The file is not an image of a supported format').waitFor();
    expect(await page.names()).to.deep.equal(['bad.png', 'a.png']);
    expect(await page.row('bad.png').getByRole('combobox').count()).to.equal(0);
    await group.click();
    await page.row('bad.png').waitFor({ state: 'detached' });
    await group.click();
    await page.row('bad.png').focus();
    await page.keyboard.press('Delete');
    await page.row('bad.png').waitFor({ state: 'detached' });
    expect([await page.names(), await group.count()]).to.deep.equal([['a.png'], 0]);
    await page.announced('1 file removed.');
  });

  it('takes a file that is tried again out of the group', async () => {
    const page = await open(service);
    await page.pick(
      await Promise.all(['a.png', 'b.png', 'c.png'].map(async (n) => made(n, await fixture('scene.png')))),
    );
    let count = 0;
    await page.route('**/api/v1/convert?*', (route) => {
      count += 1;
      return count === 1 ? route.continue() : route.fulfill({ status: 500, json: {} });
    });
    await page.convertAll();
    await page.showFailures();
    await page.unroute('**/api/v1/convert?*');
    const [first = ''] = await page.names();
    await page.row(first).getByRole('button', { name: 'Try again' }).click();
    await page.saveLink(first.replace('png', 'webp')).waitFor();
    expect((await page.names()).indexOf(first)).to.be.above(0);
    await page.button('1 not converted').waitFor();
  });
});
