// @full: all states of the page in all modes
import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import type { Locator } from 'playwright-core';
import sharp from 'sharp';
import { createApiKey } from '../../src/files/api-keys.ts';
import { fixturePath } from '../helpers/client.ts';
import { fakeMagick } from '../helpers/fake-magick.ts';
import { writeTempFile } from '../helpers/hooks.ts';
import { startService, useOwnServices, useServiceWith } from '../helpers/service.ts';
import { copies, made, PHONE, useBrowser, type WebPage } from './browser.ts';

/** Windows of a desktop, of a tablet, of a desktop at a zoom of 200%, and of a phone. */
const WINDOWS = [
  [1280, 800],
  [768, 1024],
  [640, 400],
  [360, 740],
] as const;

/** Fills the list with files in every state. */
const fill = async (page: WebPage) => {
  await page.chooseFormat('JPEG');
  await page.convertFiles([
    'scene.tiff',
    'window.png',
    'moving.gif',
    'grey.jpg',
    made(`${'a-very-long-name-'.repeat(8)}.gif`, Buffer.from('GIF89a, and no more')),
  ]);
  await page.pick(['scene.svg']);
  await page.showOptions();
  await page.showCurl();
};

/** Returns whether an element is inside of the window. */
const isInView = (element: Element): boolean => {
  const { top, bottom } = element.getBoundingClientRect();
  return top >= 0 && bottom <= innerHeight;
};

describe('accessibility of the page', () => {
  const { open } = useBrowser();
  const service = useServiceWith();

  for (const [mode, options, windows] of [
    ['in light mode', { colorScheme: 'light' }, WINDOWS.slice(0, 3)],
    ['in dark mode on a phone', { ...PHONE, colorScheme: 'dark' }, []],
  ] as const) {
    it(`has no axe violations ${mode}: empty, with files in every state, in the comparison`, async () => {
      const page = await open(service, options);
      const expectNoneInWindows = async () => {
        for (const [width, height] of windows) {
          await page.setViewportSize({ width, height });
          expect(await page.faults(20), `${width} × ${height}`).to.deep.equal([]);
        }
        if (windows.length > 0) await page.setViewportSize({ width: 1100, height: 800 });
      };
      expect(await page.faults(20)).to.deep.equal([]);
      await fill(page);
      expect(await page.faults(20)).to.deep.equal([]);
      await expectNoneInWindows();
      await page.showFailures();
      await page.getByRole('row', { name: /^a-very-long/ }).waitFor();
      expect(await page.faults(20)).to.deep.equal([]);
      await page.button(/^Remove a-very-long/).click();
      await page.button('Undo').waitFor();
      expect(await page.faults(20)).to.deep.equal([]);
      const menu = await page.openMenu('moving.gif');
      expect(await page.faults(20)).to.deep.equal([]);
      await menu.getByRole('button', { name: 'Rotate right' }).click();
      await menu.getByText('Own options: Rotate').waitFor();
      await page.keyboard.press('Escape');
      await menu.waitFor({ state: 'detached' });
      expect(await page.faults(20)).to.deep.equal([]);
      await page.compare('window.png');
      expect(await page.faults(20)).to.deep.equal([]);
      await page.getByRole('button', { name: 'Crop', exact: true }).click();
      await page.button('Selected part').waitFor();
      expect(await page.faults(20)).to.deep.equal([]);
      await expectNoneInWindows();
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'hidden' });
      await page.showOptions();
      await page.chooseFormat('PDF');
      await page.convertAll();
      await page.button('Compare window.png').click();
      await page.locator('iframe').waitFor();
      expect(await page.faults(20)).to.deep.equal([]);
    });

    it(`has no axe violations ${mode}: a watermark, wrong fields, a skipped file`, async () => {
      const page = await open(service, options);
      const twice = [fixturePath('pages.tiff')];
      await page.pick(twice);
      await page.pick(twice);
      await page.locator('.skipped').getByText('1 skipped: already in the list').waitFor();
      await page.showOptions();
      await page.showMore();
      await page.getByLabel('Watermark', { exact: true }).setInputFiles(fixturePath('scene.png'));
      await page.getByLabel('Opacity').waitFor();
      await page.getByLabel('Pages', { exact: true }).fill('3-1');
      await page.getByText('Type numbers from 1 to 10000').waitFor();
      await page.getByLabel('Names of results').fill('{wide}');
      await page.getByText('{wide} is unknown.').waitFor();
      expect(await page.faults(20)).to.deep.equal([]);
    });

    it(`has no axe violations ${mode}: a grabbed row, one file of all, and its preview`, async () => {
      const page = await open(service, options);
      await page.pick(['scene.png', 'scene.jpg', 'moving.gif']);
      await page.showOptions();
      await page.chooseFormat('GIF');
      await page.showMore();
      await page.getByRole('switch', { name: 'One file' }).check();
      await page.getByRole('button', { name: 'Move scene.jpg', exact: true }).click();
      await page.button('Move scene.jpg up').waitFor();
      expect(await page.faults(20)).to.deep.equal([]);
      await page.button('Make one GIF').click();
      await page.button('Preview').click();
      await page.getByRole('dialog').getByAltText('The result').waitFor();
      expect(await page.faults()).to.deep.equal([]); // it has few elements
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      expect(await page.faults(20)).to.deep.equal([]);
    });

    it(`has no axe violations ${mode}: the form of the API key, and a wrong key`, async () => {
      const { line } = createApiKey('page') as { line: string };
      const API_KEYS_FILE = await writeTempFile('keys', line);
      await using locked = await startService({ API_KEYS_FILE, REQUIRE_API_KEY: 'on' });
      const page = await open(locked, options);
      const form = page.getByRole('form', { name: 'API key' });
      expect(await page.faults(20)).to.deep.equal([]);
      await form.getByLabel('API key').fill('wrong');
      await form.getByRole('button', { name: 'Use key' }).click();
      await form.getByText('The server does not accept this API key.').waitFor();
      expect(await page.faults(20)).to.deep.equal([]);
    });
  }

  it('follows the colour scheme of the system', async () => {
    const page = await open(service);
    const brightness = async (colorScheme: 'dark' | 'light') => {
      await page.emulateMedia({ colorScheme });
      const { channels } = await sharp(await page.screenshot()).stats();
      return channels[1]?.mean ?? Number.NaN;
    };
    expect(await brightness('dark')).to.be.below(60);
    expect(await brightness('light')).to.be.above(200);
  });

  it('shows the selected format, the progress and a pressed button in forced colours', async () => {
    const page = await open(service, { forcedColors: 'active' });
    /** Returns the colour at half the height of an element, `share` of its width from the left. */
    const colour = async (element: Locator, share: number): Promise<string> => {
      const image = sharp(await element.screenshot());
      const { width, height } = await image.metadata();
      const area = { left: Math.floor(width * share), top: Math.floor(height / 2), width: 1, height: 1 };
      return (await image.extract(area).raw().toBuffer()).toString('hex');
    };
    const segment = (name: string) => page.locator('.segment').filter({ hasText: name });
    expect(await colour(segment('WebP'), 0.05)).to.not.equal(await colour(segment('PNG'), 0.05));

    await page.convertFiles(['scene.png']);
    await page.pick(['scene.jpg']);
    const progress = page.getByRole('progressbar', { name: 'Files converted' }); // 1 of 2
    expect(await colour(progress, 0.3)).to.not.equal(await colour(progress, 0.7));

    await page.button('Compare scene.png').click();
    const zoom = page.button('Zoom to 100%');
    const released = await colour(zoom, 0.05);
    await zoom.click();
    expect(await colour(zoom, 0.05)).to.not.equal(released);
  });

  it('draws the arrow of each list of choices without a gap', async () => {
    const page = await open(service);
    await page.pick(['scene.png']);
    await page.button('Compare scene.png').click();
    const selects = page.getByRole('dialog').locator('select');
    const rows: string[] = [];
    // The places of the lists differ by fractions of a pixel.
    for (let width = 760; width < 770; width += 1) {
      await page.setViewportSize({ width, height: 740 });
      for (const select of await selects.all()) {
        const image = sharp(await select.screenshot()).greyscale();
        const size = await image.metadata();
        const arrow = { left: size.width - 28, top: 5, width: 20, height: size.height - 10 };
        const pixels = await image.extract(arrow).raw().toBuffer();
        const marks = Array.from(pixels, (value) => (value < 160 ? '#' : ' ')).join('');
        rows.push(...(marks.match(/.{20}/g) ?? []).map((found) => found.trim()).filter(Boolean));
      }
    }
    expect(rows).to.have.length.above(20);
    expect(rows.filter((found) => found.includes(' '))).to.deep.equal([]);
  });

  it('does not highlight a disabled button under the pointer', async () => {
    const page = await open(service);
    await page.pick(['scene.png']);
    const download = page.button('Download ZIP');
    const background = () => download.evaluate((button) => getComputedStyle(button).backgroundColor);
    const before = await background();
    await download.hover({ force: true });
    expect(await download.evaluate((button) => button.matches(':disabled:hover'))).to.equal(true);
    expect(await background()).to.equal(before);
  });

  it('has one scroll bar, that of the page, with all options beside a long list', async () => {
    const page = await open(service, { viewport: { width: 1100, height: 600 } });
    await page.pick(await copies(30));
    await page.evaluate(() => scrollTo(0, 400));
    await page.showMore();
    expect(await page.getByText('More', { exact: true }).evaluate(isInView)).to.equal(true);
    const scrolling = await page.evaluate(() =>
      [...document.querySelectorAll('body *')]
        .filter((element) => /auto|scroll/.test(getComputedStyle(element).overflowY))
        .filter((element) => element.scrollHeight > element.clientHeight)
        .map((element) => element.className),
    );
    expect(scrolling).to.deep.equal([]);
  });

  it('shows which option is invalid, also in the closed section', async () => {
    const page = await open(service, { viewport: { width: 1100, height: 600 } });
    await page.pick(['scene.png']);
    const more = page.getByText('More', { exact: true });
    await page.showMore();
    const size = page.getByLabel('Max file size');
    await size.fill('0');
    await more.click();
    await page.button('Convert 1 file').click();
    expect(await size.evaluate((field) => field === document.activeElement)).to.equal(true);
    const isCovered = await size.evaluate((field) => {
      const { left, top, bottom } = field.getBoundingClientRect();
      return document.elementFromPoint(left + 5, (top + bottom) / 2) !== field;
    });
    expect(isCovered).to.equal(false);
    await page.ready('scene.png');
  });

  it('shows all of each row and button on a phone with text that is twice as large', async () => {
    // The sizes of the page are in rem: 188 pixels are as wide as 375 pixels with text of 200%.
    const page = await open(service, { ...PHONE, viewport: { width: 188, height: 740 } });
    const beyond = () =>
      page.evaluate(() =>
        [...document.querySelectorAll('button, a, label, select, p, h2')]
          .filter((element) => element.getBoundingClientRect().right > 188)
          .map((element) => element.textContent),
      );
    expect(await beyond()).to.deep.equal([]);
    await fill(page);
    expect(await beyond()).to.deep.equal([]);
    await page.button('Compare window.png').tap();
    await page.locator('.tag.end').waitFor();
    const [original, result] = await page
      .locator('.tag')
      .evaluateAll((tags) => tags.map((tag) => tag.getBoundingClientRect().toJSON()));
    expect(result.top).to.be.above(original.bottom);
  });

  it('fits a screen of 320 pixels without horizontal scrolling, with each button beside no text', async () => {
    const page = await open(service, { ...PHONE, viewport: { ...PHONE.viewport, width: 320 } });
    const width = () => page.evaluate(() => document.documentElement.scrollWidth);
    expect(await width()).to.equal(320);
    await fill(page);
    expect(await width()).to.equal(320);
    const misplaced = await page.evaluate(() =>
      [...document.querySelectorAll('.file .button')].flatMap((button) => {
        const { left, right, top, bottom } = button.getBoundingClientRect();
        const file = button.closest('.file') as Element;
        const isOutside = right > file.getBoundingClientRect().right;
        const isOnText = [...file.querySelectorAll('.file-text p')]
          .map((text) => text.getBoundingClientRect())
          .some((text) => text.left < right && text.right > left && text.top < bottom && text.bottom > top);
        return isOutside || isOnText ? [button.textContent] : [];
      }),
    );
    expect(misplaced).to.deep.equal([]);
    await page.button('Compare window.png').tap();
    expect(await page.getByRole('dialog').evaluate((dialog) => dialog.scrollWidth)).to.be.at.most(320);
    expect(await page.button('Zoom to 100%').isVisible()).to.equal(true);
  });

  for (const [width, height] of WINDOWS) {
    it(`supports all actions by keyboard alone in a window of ${width} × ${height} pixels`, async () => {
      const page = await open(service, { viewport: { width, height } });
      const tabTo = async (wanted: RegExp) => {
        for (let step = 0; step < 40; step += 1) {
          await page.keyboard.press('Tab');
          expect(await page.isFocusCovered(0.1, 0.5, 0.9), await page.focused()).to.equal(false);
          if (wanted.test(await page.focused())) return;
        }
        expect.fail(`Tab never comes to ${wanted}`);
      };
      const arrowTo = async (key: string, wanted: string) => {
        for (let step = 0; step < 5 && (await page.focused()) !== wanted; step += 1)
          await page.keyboard.press(key);
        expect(await page.focused()).to.equal(wanted);
      };
      // Playwright enables this event in the browser without waiting for it, so enable it well
      // before the key that causes it.
      const chooser = page.waitForEvent('filechooser');
      await tabTo(/^Choose files/);
      await page.keyboard.press('Enter');
      await (await chooser).setFiles(['scene.png', 'scene.jpg'].map(fixturePath));
      await page.row('scene.jpg').waitFor();
      if (width < 1000) {
        await tabTo(/^WebP · quality 80/);
        await page.keyboard.press('Enter');
      }
      await tabTo(/^WebP$/);
      await page.keyboard.press('ArrowRight');
      await page.keyboard.press('ArrowRight');
      expect(await page.getByRole('radio', { name: 'PNG' }).isChecked()).to.equal(true);
      await tabTo(/^Original$/);
      await page.keyboard.press('ArrowLeft');
      await tabTo(/^Max width/);
      await page.keyboard.type('50');
      await tabTo(/^Convert 2 files/);
      await page.keyboard.press('Enter');
      expect(await page.focused()).to.equal('All files');
      await page.settled();
      expect(await page.focused()).to.equal('All files');
      await tabTo(/^scene.jpg/);
      await page.keyboard.press('Enter');
      await page.getByRole('dialog').waitFor();
      await tabTo(/^Position of the divider/);
      await page.keyboard.press('ArrowLeft');
      expect(await page.getByRole('slider', { name: /divider/ }).inputValue()).to.equal('49');
      await tabTo(/^Zoom to 100%/);
      await page.keyboard.press('Space');
      await page.keyboard.press('Escape');
      expect(await page.focused()).to.equal('scene.jpg');
      await arrowTo('ArrowRight', 'Save scene.png');
      const [download] = await Promise.all([page.waitForEvent('download'), page.keyboard.press('Enter')]);
      const { format, width: across } = await sharp(await readFile(await download.path())).metadata();
      expect([format, across]).to.deep.equal(['png', 50]);
      await arrowTo('ArrowLeft', 'Remove scene.jpg');
      await page.keyboard.press('Enter');
      await page.button('Remove scene.jpg').waitFor({ state: 'detached' });
      expect(await page.focused()).to.equal('Remove scene.png');
      await page.keyboard.press('Enter');
      await page.row('scene.png').waitFor({ state: 'detached' });
      expect(await page.focused()).to.equal('Choose files');
    });
  }

  it('has one tab stop for all rows, and arrow keys inside', async () => {
    const page = await open(service);
    await page.pick(await copies(40));
    const press = async (key: string) => {
      await page.keyboard.press(key);
      return page.focused();
    };
    await page.getByText('More', { exact: true }).focus();
    const stops: string[] = [];
    while (!stops.includes('0.jpg') && stops.length < 10) stops.push(await press('Tab'));
    expect(stops).to.deep.equal(['0.jpg']);
    expect(await press('ArrowDown')).to.equal('1.jpg');
    expect(await press('End')).to.equal('39.jpg');
    expect(await press('ArrowUp')).to.equal('38.jpg');
    expect(await press('ArrowRight')).to.equal('Compare 38.jpg');
    expect(await press('ArrowUp')).to.equal('Compare 37.jpg');
    expect(await press('Home')).to.equal('Compare 0.jpg');
    expect(await press('ArrowRight')).to.equal('Format of 0.jpg');
    expect(await press('ArrowLeft')).to.equal('Compare 0.jpg');
    expect(await press('ArrowLeft')).to.equal('0.jpg');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Delete');
    await page.row('39.jpg').waitFor();
    expect([await page.focused(), await page.getByRole('row').count()]).to.deep.equal(['2.jpg', 39]);
    expect(await press('Tab')).to.not.include('.jpg');
    expect(await press('Shift+Tab')).to.equal('2.jpg');
  });

  it('keeps the focused element of a long list in view', async () => {
    const page = await open(service);
    await page.convertFiles(await copies(12));
    await page.evaluate(() => scrollTo(0, 0));
    await page.row('0.jpg').first().focus();
    const hidden: string[] = [];
    for (const key of ['ArrowDown', 'ArrowUp'])
      for (let step = 0; step < 12; step += 1) {
        if (await page.isFocusCovered(0.95)) hidden.push(await page.focused());
        await page.keyboard.press(key);
      }
    expect(hidden).to.deep.equal([]);
  });

  it('hides no focused element behind the action bar at a zoom of 400%', async () => {
    // WCAG 2.2, 1.4.10: a window of 1280 by 1024 pixels at 400%.
    const page = await open(service, { viewport: { width: 320, height: 256 } });
    await page.convertFiles(['scene.png']);
    await page.evaluate(() => scrollTo(0, 0));
    const hidden: string[] = [];
    for (let step = 0; step < 20; step += 1) {
      await page.keyboard.press('Tab');
      if (await page.isFocusCovered(0.5)) hidden.push(await page.focused());
    }
    expect(hidden).to.deep.equal([]);
  });

  it('announces changes to screen readers', async () => {
    const page = await open(service);
    await page.pick(['scene.png', made('bad.png', Buffer.from('text'))]);
    await page.announced('2 files added.');
    await page.convertAll();
    await page.announced('1 of 2 converted, 1 failed.');
    await page.announced('bad.png: The file is not an image of a supported format');
    await page.button('Download ZIP').click();
    await page.announced('converted.zip is ready.');
  });
});

describe('the logo during a conversion', () => {
  const { open } = useBrowser();
  const { start, current } = useOwnServices();

  for (const [reducedMotion, moves] of [
    ['reduce', false],
    ['no-preference', true],
  ] as const) {
    it(`${moves ? 'turns' : 'does not move if reduced motion is preferred'}`, async () => {
      await start({ MAGICK_BIN: await fakeMagick('sleep 60') });
      const page = await open(current(), { reducedMotion });
      await page.pick(['scene.png']);
      await page.button('Convert 1 file').click();
      await page.row('scene.png').getByText('Converting').waitFor();
      const running = await page.evaluate(() =>
        document
          .getAnimations()
          .filter((animation) => animation instanceof CSSAnimation)
          .map((one) => one.animationName),
      );
      expect(running.sort()).to.deep.equal(moves ? ['pulse', 'turn'] : []);
    });
  }
});
