// @full: all handles and keys
// @slow
import { expect } from 'chai';
import sharp from 'sharp';
import type { Area } from '../../src/web/state/crop.ts';
import { type Handle, moveHandle } from '../../src/web/state/crop-frame.ts';
import { fixture } from '../helpers/client.ts';
import { decode, difference, toPixels } from '../helpers/pixels.ts';
import { useServiceWith } from '../helpers/service.ts';
import { boxOf, made, PHONE, useBrowser, type WebPage } from './browser.ts';

describe('a crop by hand', () => {
  const { open } = useBrowser();
  const service = useServiceWith();

  const SIZE = { width: 120, height: 80 };
  /** Opens the crop of a fixture of 120 × 80 pixels, whose result is PNG. */
  const openCrop = async (options: Parameters<typeof open>[1] = {}, turn?: string) => {
    const page = await open(service, options, '?output_format=png');
    const file = await fixture('scene.png');
    await page.pick([made('scene.png', file)]);
    const comparison = await page.compare('scene.png');
    const { dialog } = comparison;
    if (turn) await dialog.getByRole('button', { name: turn }).click();
    await comparison.done();
    await dialog.getByRole('button', { name: 'Crop', exact: true }).click();
    await dialog.locator('.frame').waitFor();
    const field = (name: string) => dialog.getByRole('spinbutton', { name, exact: true });
    return {
      page,
      file,
      field,
      ...comparison,
      handle: (name: string) => dialog.getByRole('button', { name, exact: true }),
      numbers: () =>
        Promise.all(
          ['Left', 'Top', 'Width', 'Height'].map(async (name) => Number(await field(name).inputValue())),
        ),
      /** Does something, and returns the result of the request with this crop. */
      resultOf: async (crop: string, act: () => Promise<void>) => {
        const response = page.waitForResponse(
          (found) => new URL(found.url()).searchParams.get('crop') === crop,
        );
        await act();
        return (await response).body();
      },
    };
  };
  const press = async (page: WebPage, ...keys: readonly string[]) => {
    for (const key of keys) await page.keyboard.press(key);
  };

  it('by keys has exactly the pixels that sharp extracts from the rotated picture', async () => {
    const { page, file, handle, numbers, resultOf } = await openCrop({}, 'Rotate right');
    const area = { left: 13, top: 5, width: 67, height: 100 };
    const result = await resultOf('13,5,67,100', async () => {
      await handle('Left edge').focus();
      await press(page, 'Shift+ArrowRight', 'ArrowRight', 'ArrowRight', 'ArrowRight', 'ArrowUp');
      await handle('Bottom edge').focus();
      await press(page, 'Shift+ArrowUp', 'Shift+ArrowUp');
      await handle('Selected part').focus();
      await press(page, ...Array<string>(5).fill('ArrowDown'));
    });
    expect(await numbers()).to.deep.equal(Object.values(area));
    const turned = await sharp(file).rotate(90).png().toBuffer();
    const expected = await toPixels(sharp(turned).extract(area));
    expect(difference(await decode(result), expected).max).to.equal(0);
    await page.announced('67 × 100 pixels, 13 from the left');
  });

  it('turns with the picture, and the comparison shows the same part of the original', async () => {
    const { file, dialog, field, done, resultOf } = await openCrop();
    await field('Width').fill('50');
    await field('Width').press('Enter');
    await field('Left').fill('9');
    await field('Left').press('Enter');
    // 120 × 80 becomes 80 × 120. The upper edge of the area was its right edge.
    const result = await resultOf('0,61,80,50', () =>
      dialog.getByRole('button', { name: 'Rotate left' }).click(),
    );
    const part = sharp(file).extract({ left: 9, top: 0, width: 50, height: 80 });
    const expected = await toPixels(sharp(await part.png().toBuffer()).rotate(270));
    expect(difference(await decode(result), expected).max).to.equal(0);
    await done();
    await dialog.getByRole('button', { name: 'Crop', exact: true }).click();
    const slider = dialog.getByRole('slider', { name: /divider/ });
    const shown = async (position: string) => {
      await slider.fill(position);
      return decode(await dialog.locator('.pair').screenshot());
    };
    await dialog.locator('.divider').evaluate((divider) => divider.remove());
    expect(difference(await shown('0'), await shown('100')).mae).to.be.below(1);
  });

  it('by mouse moves and resizes, keeps the ratio, and stays inside of the picture', async () => {
    const { page, dialog, handle, numbers, field } = await openCrop();
    const box = async (name: string) => {
      const { x, y, width, height } = await boxOf(handle(name));
      return [x + width / 2, y + height / 2] as const;
    };
    const { width: shownWidth } = await boxOf(dialog.locator('.cropper'));
    const scale = shownWidth / SIZE.width;
    const drag = async (name: string, x: number, y: number) => {
      const [left, top] = await box(name);
      await page.mouse.move(left, top);
      await page.mouse.down();
      await page.mouse.move(left + x * scale, top + y * scale, { steps: 4 });
      await page.mouse.up();
    };
    await drag('Bottom right corner', -60, -20);
    expect(await numbers()).to.deep.equal([0, 0, 60, 60]);
    await drag('Selected part', 30, 500);
    expect(await numbers()).to.deep.equal([30, 20, 60, 60]);
    await drag('Right edge', 500, 0);
    expect(await numbers()).to.deep.equal([30, 20, 90, 60]);
    await dialog.getByLabel('Ratio').selectOption('1:1');
    expect(await numbers()).to.deep.equal([45, 20, 60, 60]);
    await drag('Top left corner', 20, 0);
    expect(await numbers()).to.deep.equal([65, 40, 40, 40]);
    await dialog.getByLabel('Ratio').selectOption('16:9');
    expect((await numbers()).slice(2)).to.deep.equal([40, 23]);
    await dialog.getByLabel('Ratio').selectOption('Original');
    expect((await numbers()).slice(2)).to.deep.equal([35, 23]);
    await field('Width').fill('9999');
    await field('Width').press('Enter');
    const [left = 0, top = 0, width = 0, height = 0] = await numbers();
    expect([left + width <= 120, top + height <= 80]).to.deep.equal([true, true]);
    await dialog.getByRole('button', { name: 'Whole picture' }).click();
    expect(await numbers()).to.deep.equal([0, 0, 120, 80]);
    await dialog.getByLabel('Ratio').selectOption('4:3');
    expect(await numbers()).to.deep.equal([6, 0, 107, 80]);
    await dialog.getByLabel('Ratio').selectOption('3:4');
    expect(await numbers()).to.deep.equal([29, 0, 60, 80]);
    await dialog.getByRole('button', { name: 'Whole picture' }).click();
    await dialog.getByLabel('Ratio').selectOption('Original');
    await drag('Bottom right corner', -60, 0);
    expect(await numbers()).to.deep.equal([0, 0, 60, 40]);
  });

  it('by touch resizes, with handles of at least 44 pixels, on a phone without horizontal scrolling', async () => {
    const { page, dialog, handle, numbers } = await openCrop(PHONE, 'Rotate right');
    const { x, y, width, height } = await boxOf(handle('Bottom edge'));
    expect([width, height]).to.deep.equal([44, 44]);
    const { height: shown } = await boxOf(dialog.locator('.cropper'));
    const session = await page.context().newCDPSession(page);
    const touch = (type: 'touchStart' | 'touchMove' | 'touchEnd', by = 0) =>
      session.send('Input.dispatchTouchEvent', {
        type,
        touchPoints: type === 'touchEnd' ? [] : [{ x: x + 22, y: y + 22 - by * (shown / 120) }],
      });
    await touch('touchStart');
    for (const by of [10, 20, 30]) await touch('touchMove', by);
    await touch('touchEnd');
    expect(await numbers()).to.deep.equal([0, 0, 80, 90]);
    expect(await dialog.getByLabel('Ratio').locator('option').allTextContents()).to.deep.equal([
      'Free',
      'Original',
      '1:1',
      '4:3',
      '3:4',
      '16:9',
      '9:16',
    ]);
    expect(await dialog.evaluate((element) => element.scrollWidth)).to.be.at.most(360);
  });

  it('is disabled, with what it needs, for a TIFF and for an SVG that has only a viewBox', async () => {
    const page = await open(service);
    const drawing =
      '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 90 30"><path d="M0 0h90v30z"/></svg>';
    await page.pick(['scene.tiff', made('drawing.svg', Buffer.from(drawing)), 'scene.png']);
    for (const [name, needs] of [
      ['scene.tiff', 'Needs an original that this browser can show.'],
      ['drawing.svg', 'Needs an SVG with a width and a height.'],
      ['scene.png', null],
    ] as const) {
      const { dialog, done, close } = await page.compare(name);
      await done();
      const crop = dialog.getByRole('button', { name: 'Crop', exact: true, disabled: needs !== null });
      await crop.waitFor();
      const id = await crop.getAttribute('aria-describedby');
      expect(id && (await dialog.locator(`#${id}`).innerText()), name).to.equal(needs);
      await close();
    }
  });

  it('of one file is sent for this file, and for all after Apply to all, which the panel shows', async () => {
    const page = await open(service, {}, '?output_format=png&crop=1,2,30,40');
    await page.pick(['scene.png', 'scene.jpg']);
    expect((await page.query()).get('crop')).to.equal('1,2,30,40');
    await page.button('Reset the crop').click();
    const { dialog, close } = await page.compare('scene.png');
    await dialog.getByRole('button', { name: 'Crop', exact: true }).click();
    await dialog.getByRole('button', { name: 'Top edge' }).press('Shift+ArrowDown');
    await close();
    await page.ownOptions('scene.png', 'Crop').waitFor();
    const queries = page.recordQueries();
    await page.convertAll();
    expect(queries.map((query) => query.get('crop'))).to.have.members(['0,10,120,70', null]);
    const again = await page.compare('scene.png');
    await again.dialog.getByRole('button', { name: 'Apply to all' }).click();
    await again.close();
    await page.getByLabel('Options', { exact: true }).getByText('0,10,120,70').waitFor();
    await page.stale('scene.jpg').waitFor();
  });
});

describe('a frame of a crop', () => {
  const SIDES = [-1, 0, 1] as const;
  const handles: readonly Handle[] = SIDES.flatMap((across) =>
    SIDES.flatMap((down) => (across === 0 && down === 0 ? [] : [{ across, down }])),
  );
  const size = { width: 97, height: 61 };
  const start: Area = { left: 20, top: 13, width: 40, height: 30 };
  const moves = [-200, -31, -1, 0, 5, 200];
  /** Calls a function for each handle and move. */
  const forAll = (
    ratio: number | undefined,
    check: (area: Area, handle: Handle, message: string) => void,
  ) => {
    for (const handle of handles)
      for (const x of moves)
        for (const y of moves)
          check(
            moveHandle(start, handle, [x, y], size, ratio),
            handle,
            JSON.stringify({ handle, x, y, ratio }),
          );
  };
  const expectInside = ({ left, top, width, height }: Area, message: string) => {
    for (const value of [left, top, width, height]) expect(Number.isInteger(value), message).to.equal(true);
    expect(Math.min(left, top, width - 1, height - 1), message).to.be.at.least(0);
    expect([left + width <= size.width, top + height <= size.height], message).to.deep.equal([true, true]);
  };

  it('keeps the opposite side, has whole pixels and stays inside, whatever a handle does', () => {
    forAll(undefined, (area, { across, down }, message) => {
      expectInside(area, message);
      if (across >= 0) expect(area.left, message).to.equal(start.left);
      if (across <= 0) expect(area.left + area.width, message).to.equal(start.left + start.width);
      if (down >= 0) expect(area.top, message).to.equal(start.top);
      if (down <= 0) expect(area.top + area.height, message).to.equal(start.top + start.height);
    });
  });

  it('keeps the ratio to the pixel, and then also stays inside', () => {
    for (const ratio of [1, 4 / 3, 16 / 9, 3 / 4, 97 / 61]) {
      forAll(ratio, (area, { across, down }, message) => {
        expectInside(area, message);
        const isRounded =
          area.width === Math.round(area.height * ratio) || area.height === Math.round(area.width / ratio);
        if (Math.min(area.width, area.height) > 1)
          expect(isRounded, `${message} ${JSON.stringify(area)}`).to.equal(true);
        if (across < 0) expect(area.left + area.width, message).to.equal(start.left + start.width);
        if (down > 0) expect(area.top, message).to.equal(start.top);
      });
    }
  });
});
