// @full: measures the page in windows of several sizes
import { expect } from 'chai';
import type { Locator } from 'playwright-core';
import { tiff } from '../../scripts/fixtures/writers.ts';
import { convert, fixture } from '../helpers/client.ts';
import { useServiceWith } from '../helpers/service.ts';
import { boxOf, made, PHONE, useBrowser } from './browser.ts';

/** A TIFF that is wider than the server accepts. It has no pixels. */
const WIDE = tiff([{ tags: { 256: 70_000, 257: 4_000 }, strip: Buffer.alloc(0) }]);
/** A phone with a low screen. */
const LOW_PHONE = { ...PHONE, viewport: { width: 360, height: 640 } };

describe('the layout of the page', () => {
  const { open } = useBrowser();
  const service = useServiceWith();

  const bottomOf = async (element: Locator): Promise<number> => {
    const { y, height } = await boxOf(element);
    return y + height;
  };
  const photos = async (count: number) => {
    const photo = await fixture('scene.jpg');
    return Array.from({ length: count }, (_, at) => made(`IMG_20240102_1234${at + 10}.jpg`, photo));
  };

  for (const [options, third] of [
    [{ viewport: { width: 1366, height: 650 } }, 217],
    [LOW_PHONE, 214],
  ] as const) {
    const { width, height } = options.viewport;
    it(`has the button and Undo in the upper third of ${width} × ${height} pixels, with all options open`, async () => {
      const page = await open(service, options, '?blur=2');
      await page.convertFiles(await photos(3));
      await page.button('Clear list').click();
      await page.showMore();
      await page.evaluate(() => scrollTo(0, 0));
      for (const element of [
        page.getByRole('region', { name: 'Add files' }).getByRole('paragraph').first(),
        page.locator('.picker').first(),
        page.button('Undo'),
      ])
        expect(await bottomOf(element)).to.be.below(third);
      expect((await boxOf(page.locator('.drop'))).height).to.be.below(height);
    });
  }

  for (const [width, height, least] of [
    [1280, 800, 12],
    [1920, 1080, 18],
  ] as const) {
    it(`has at least ${least} rows in a window of ${width} × ${height} pixels, and a header of 48`, async () => {
      const page = await open(service, { viewport: { width, height } });
      await page.convertFiles([...(await photos(30)), 'p3.jpg', made('bad.png', Buffer.from('text'))]);
      const bottoms = await page
        .locator('.file')
        .evaluateAll((rows) => rows.map((each) => each.getBoundingClientRect().bottom));
      expect(bottoms.filter((bottom) => bottom <= height)).to.have.length.above(least - 1);
      expect((await boxOf(page.locator('.masthead'))).height).to.equal(48);
      const [list, side] = [await boxOf(page.locator('.list')), await boxOf(page.locator('.side'))];
      expect(list.width + side.width).to.be.above(width - 90);
    });
  }

  it('lays out the rows near the window only, and animates nothing that is painted in each frame', async () => {
    const page = await open(service);
    await page.pick(await photos(60));
    await page.locator('.file').nth(59).waitFor({ state: 'attached' });
    const isLaidOut = (at: number) =>
      page
        .locator('.file')
        .nth(at)
        .locator('.file-name')
        .evaluate((name) => name.checkVisibility({ contentVisibilityAuto: true }));
    expect([await isLaidOut(0), await isLaidOut(59)]).to.deep.equal([true, false]);
    const animated = await page.evaluate(() =>
      [...document.styleSheets]
        .flatMap(({ cssRules }) =>
          [...cssRules].flatMap((rule) => [
            rule,
            ...('cssRules' in rule ? (rule as CSSGroupingRule).cssRules : []),
          ]),
        )
        .flatMap((rule) => (rule instanceof CSSKeyframeRule ? [...rule.style] : [])),
    );
    expect([...new Set(animated)].sort()).to.deep.equal(['opacity', 'rotate']);
  });

  it('has the reason of each failure in one line, and counts no file before the first conversion', async () => {
    const page = await open(service, { viewport: { width: 1280, height: 800 } });
    await page.pick([
      ...(await photos(1)),
      made('A scan of a whole wall of the museum 2024-01-02.tiff', WIDE),
      made('text.png', Buffer.from('text')),
      made('photo.heic', await fixture('scene.jpg')),
    ]);
    await page.button('2 not converted').waitFor();
    expect(await page.locator('.totals').innerText()).to.match(/^4 files · /);
    await page.convertAll();
    await page.showFailures();
    const heights = await page
      .locator('.file-state.error')
      .evaluateAll((reasons) => reasons.map((reason) => reason.getClientRects()[0]?.height ?? 99));
    expect(heights).to.have.length(3);
    expect(Math.max(...heights)).to.be.below(25);
  });

  it('cuts long names in the middle, and keeps their folder and their extension', async () => {
    const page = await open(service, { viewport: { width: 1000, height: 700 } });
    const name = `${'a-very-long-name-'.repeat(9)}17.jpg`;
    await page.pick([made(name, await fixture('scene.jpg'))]);
    const [start, end] = await page
      .row(name)
      .locator('.file-name > span')
      .evaluateAll((parts) =>
        parts.map(({ scrollWidth, clientWidth, textContent }) => [scrollWidth - clientWidth, textContent]),
      );
    expect(start?.[0]).to.be.above(100);
    expect(end).to.deep.equal([0, 'me-17.jpg']);
  });

  it('shows a note once for all files that share it, and as an icon in their rows and a text in their menus', async () => {
    const page = await open(service);
    const photo = await fixture('p3.jpg');
    await page.convertFiles([made('a.jpg', photo), made('b.jpg', photo), 'scene.png']);
    await page.getByText('The colours were converted to sRGB. 2 files.').waitFor();
    expect((await boxOf(page.row('a.jpg').locator('.note'))).width).to.be.below(20);
    const menu = await page.openMenu('a.jpg');
    await menu.getByText('The colours were converted to sRGB.').waitFor();
    expect(await page.row('scene.png').locator('.note').count()).to.equal(0);
  });

  it('shows the progress in the title of the tab, and the sums in the header', async () => {
    const page = await open(service);
    await page.pick(await photos(2));
    const gate = Promise.withResolvers<void>();
    let sent = 0;
    await page.route('**/api/v1/convert?*', async (route) => {
      sent += 1;
      if (sent > 1) await gate.promise;
      await route.continue();
    });
    await page.button('Convert 2 files').click();
    await page.waitForFunction(() => document.title.startsWith('1 of 2'));
    gate.resolve();
    await page
      .locator('.finished')
      .getByText(/^ · .* → .*$/)
      .waitFor();
    expect(await page.title()).to.equal('imagemill: convert images');
    expect(await page.locator('.totals').innerText()).to.match(/^2 files · .* → .* · .* saved$/);
  });

  it('has the menu of a row by keys: arrows move in it, and Escape closes it', async () => {
    const page = await open(service);
    await page.convertFiles(await photos(1));
    const more = page.button(/^More for/);
    await more.press('Enter');
    await page.getByRole('dialog').waitFor();
    expect(await page.focused()).to.equal('Compare');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    expect(await page.focused()).to.not.equal('Compare');
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await more.evaluate((button) => button === document.activeElement)).to.equal(true);
  });

  it('compares the next file by keys at the same zoom, saves it and removes it', async () => {
    const page = await open(service);
    await page.convertFiles(['grey.jpg', 'p3.jpg', 'scene.jpg']);
    const { dialog } = await page.compare('grey.jpg');
    await page.button('Zoom to 100%').click();
    await dialog.locator('h2').click();
    await page.keyboard.press('ArrowRight');
    await dialog.getByRole('heading', { name: 'p3.webp' }).waitFor();
    expect(await page.getByRole('button', { name: 'Zoom to 100%', pressed: true }).count()).to.equal(1);
    const [download] = await Promise.all([page.waitForEvent('download'), page.keyboard.press('s')]);
    expect(download.suggestedFilename()).to.equal('p3.webp');
    await page.keyboard.press('Delete');
    await dialog.getByRole('heading', { name: 'scene.webp' }).waitFor();
    await page.keyboard.press('ArrowLeft');
    await dialog.getByRole('heading', { name: 'grey.webp' }).waitFor();
    await page.keyboard.press('Escape');
    expect(await page.locator('.file').count()).to.equal(2);
  });

  it('keeps a set of options under a name, for the next visit', async () => {
    const page = await open(service, {}, '?output_format=jpg&quality=60');
    await page.getByRole('radio', { name: '1920' }).check();
    await page.showMore();
    await page.getByLabel('Save as my settings').fill('For the web');
    await page.getByLabel('Save as my settings').press('Enter');
    const preset = page.getByRole('combobox', { name: 'Preset' });
    expect(await preset.inputValue()).to.equal('own:For the web');
    await preset.selectOption('None');
    expect(String(await page.query())).to.equal('output_format=webp');
    await page.reload();
    await preset.selectOption('For the web');
    const expected = 'output_format=jpg&quality=60&width=1920&height=1920';
    expect(String(await page.query())).to.equal(expected);
    await page.showMore();
    await page.button('Delete “For the web”').click();
    expect(await preset.count()).to.equal(0);
    expect(String(await page.query())).to.equal(expected);
  });

  it('has the quality that the server chooses first in the quality, which only some formats have', async () => {
    const page = await open(service, {}, '?output_format=jpg');
    const quality = page.getByRole('group', { name: 'Quality' });
    const auto = quality.getByRole('button', { name: 'Auto' });
    const slider = quality.getByRole('slider', { name: 'Quality' });
    expect((await boxOf(auto)).x).to.be.below((await boxOf(slider)).x);
    await auto.click();
    expect(String(await page.query())).to.equal('output_format=jpg&quality=auto');
    expect(await slider.getAttribute('aria-valuetext')).to.equal('looks the same');
    await page.reload();
    expect(await auto.getAttribute('aria-pressed')).to.equal('true');
    await slider.fill('70');
    expect(String(await page.query())).to.equal('output_format=jpg&quality=70');
    expect(await auto.getAttribute('aria-pressed')).to.equal('false');
    await auto.click();
    await page.chooseFormat('PDF');
    expect(String(await page.query())).to.equal('output_format=pdf');
    expect(await auto.count()).to.equal(0);
  });

  it('has the format, the quality and its slider in a line of Compare', async () => {
    const page = await open(service);
    await page.pick(['scene.jpg']);
    const { dialog, done } = await page.compare('scene.jpg');
    await done();
    const controls = [
      dialog.getByLabel('Convert to'),
      dialog.getByRole('button', { name: 'Auto' }),
      dialog.getByLabel('Quality'),
      dialog.getByLabel('Max height'),
    ];
    const bottoms = await Promise.all(controls.map(bottomOf));
    expect(Math.max(...bottoms) - Math.min(...bottoms)).to.be.below(2);
  });

  it('states in the menu and the title of a row how the quality was reached, if the server chose it', async () => {
    const page = await open(service, {}, '?output_format=jpg&quality=auto');
    const photo = await fixture('scene.png');
    await page.convertFiles([made('a.png', photo)]);
    const { headers } = await convert(service.base, photo, { output_format: 'jpg', quality: 'auto' });
    const text = `JPEG, quality ${headers.get('x-image-quality')}: looks the same`;
    await page.row('a.png').getByTitle(text).waitFor();
    await (await page.openMenu('a.png')).getByText(text).waitFor();
    await page.keyboard.press('Escape');
    await page.getByLabel('Quality').fill('80');
    await page.convertAll();
    expect(await (await page.openMenu('a.png')).getByText('looks the same').count()).to.equal(0);
  });

  it('makes the smallest of the formats that browsers show, and states which it is', async () => {
    const page = await open(service, PHONE);
    const choice = page.getByRole('radio', { name: 'Smallest' });
    expect(await bottomOf(choice)).to.be.below(await bottomOf(page.getByRole('radio', { name: 'WebP' })));
    await choice.check();
    expect(String(await page.query())).to.equal('output_format=smallest');
    expect(await page.getByLabel('Quality').count()).to.equal(0);
    await page.pick(['scene.png']);
    const [request] = await Promise.all([page.waitForRequest(/convert\?/), page.convertAll()]);
    const { accept } = await request.allHeaders();
    expect(accept).to.include('image/webp').and.include('image/avif');
    const { body, headers } = await convert(
      service.base,
      await fixture('scene.png'),
      { output_format: 'smallest' },
      'scene.png',
      { accept: accept ?? '' },
    );
    expect(headers.get('content-type')).to.equal('image/webp');
    const { content } = await page.save('scene.webp');
    expect(content.equals(body)).to.equal(true);
    await page.row('scene.png').locator('strong').getByText('WebP').waitFor();
    await page.reload();
    expect(await choice.isChecked()).to.equal(true);
    expect(await page.curl()).to.include(`-H 'Accept: ${accept}'`);
  });

  it('keeps the original instead of a larger result, in one click, and saves it alone and in the archive', async () => {
    const page = await open(service, {}, '?output_format=png');
    const photo = await fixture('private.jpg');
    await page.convertFiles([made('a.jpg', photo), made('b.jpg', photo)]);
    const amber = (selector: string) =>
      page
        .locator(selector)
        .first()
        .evaluate((element) => getComputedStyle(element).color);
    const colours = await Promise.all(['.pill', '.saved', '.keep'].map(amber));
    expect([...new Set(colours)]).to.deep.equal(['rgb(104, 70, 0)']);
    await page.row('a.jpg').getByRole('button', { name: 'Keep the original a.jpg' }).click();
    await page.row('a.jpg').getByText('original kept').waitFor();
    expect((await page.save('a.jpg')).content.equals(photo)).to.equal(true);
    await page.getByText('kept in 1 photo.').waitFor(); // its metadata
    expect((await page.saveZip()).names).to.deep.equal(['a.jpg', 'b.png']);
    await (await page.openMenu('a.jpg')).getByRole('button', { name: 'Convert again' }).click();
    await page.getByText('2 results are larger than their originals.').waitFor();
    await page.getByRole('button', { name: 'Keep the originals', exact: true }).click();
    for (const { content } of (await page.saveZip()).entries) expect(content.equals(photo)).to.equal(true);
    await page.locator('.saved:not(.larger)').waitFor();
  });

  it('has the results of a file in other formats as bars in Compare, of which one is chosen by a click', async () => {
    const page = await open(service);
    await page.pick(['scene.jpg']);
    const { dialog, done } = await page.compare('scene.jpg');
    await done();
    const bars = dialog.getByRole('list', { name: 'Results of this file' }).getByRole('button');
    expect(await bars.count()).to.equal(0);
    await dialog.getByLabel('Convert to').selectOption('PNG');
    await bars.nth(1).waitFor();
    expect(await bars.allInnerTexts()).to.satisfy(
      ([first, second]: string[]) => first?.startsWith('WebP') && second?.startsWith('PNG'),
    );
    const widths = await dialog.locator('.bar').evaluateAll((all) => all.map((bar) => bar.clientWidth));
    expect(widths[0]).to.be.below(widths[1] as number);
    await bars.first().click();
    await dialog.getByRole('heading', { name: 'scene.webp' }).waitFor();
    expect(await dialog.getByLabel('Convert to').inputValue()).to.equal('webp');
    await dialog.getByLabel('Max width').fill('50'); // results of another size are not comparable
    await bars.first().waitFor({ state: 'detached' });
  });

  it('has no size in its chip that touches its border, on a phone', async () => {
    const page = await open(service, PHONE);
    const spaces = await page.locator('.segment:visible').evaluateAll((chips) =>
      chips.map((chip) => {
        const text = chip.querySelector('span')?.getBoundingClientRect();
        return (text?.left ?? 0) - chip.getBoundingClientRect().left;
      }),
    );
    expect(Math.min(...spaces)).to.be.above(5);
  });

  it('composes the names of results of parts, without typing', async () => {
    const page = await open(service);
    await page.convertFiles(['scene.jpg']);
    await page.showMore();
    await page.button('Insert the width').click();
    await page.saveLink('scene120.webp').waitFor();
  });

  it('gives results to the share sheet of the system', async () => {
    const page = await open(service, PHONE);
    await page.evaluate(() => {
      const share = async ({ files }: ShareData) =>
        void Object.assign(window, { shared: files?.map(({ name }) => name) });
      Object.defineProperties(navigator, { canShare: { value: () => true }, share: { value: share } });
    });
    await page.convertFiles(['grey.jpg', 'scene.jpg']);
    const shared = () => page.evaluate(() => Reflect.get(window, 'shared'));
    await (await page.openMenu('grey.jpg')).getByRole('button', { name: 'Share' }).tap();
    expect(await shared()).to.deep.equal(['grey.webp']);
    await page.button('Share all').tap();
    expect(await shared()).to.deep.equal(['grey.webp', 'scene.webp']);
  });

  it('accepts an MPO, and states a fixed limit as the server does', async () => {
    const page = await open(service);
    const svgless = await fixture('scene.jpg');
    await page.convertFiles([made('pair.mpo', svgless)]);
    await page.saveLink('pair.webp').waitFor();
    await page.pick([made('wide.tiff', WIDE)]);
    await page.showFailures();
    await page
      .row('wide.tiff')
      .getByText(/^The image is 70000 pixels wide or high, .* This limit is fixed\.$/)
      .waitFor();
  });
});
