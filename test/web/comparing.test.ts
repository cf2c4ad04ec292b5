import { expect } from 'chai';
import type { Page } from 'playwright-core';
import sharp from 'sharp';
import { fixturePath } from '../helpers/client.ts';
import { decode } from '../helpers/pixels.ts';
import { type OwnService, startService } from '../helpers/service.ts';
import { eventually } from '../helpers/util.ts';
import { convertAll, made, pick, useBrowser } from './browser.ts';

describe('the comparison dialog', () => {
  const { open } = useBrowser(true);
  let service: OwnService;
  before(async () => {
    service = await startService();
  });
  after(() => service.stop());

  /** A fully transparent image: the page shows a checkerboard, a JPEG white. */
  const clear = (width: number, height: number) =>
    sharp({ create: { width, height, channels: 4, background: '#0000' } })
      .png()
      .toBuffer();
  const convertImage = async (file: Buffer) => {
    const page = await open(service, {}, '?output_format=jpg');
    await pick(page, [made('image.png', file)]);
    await convertAll(page);
    return page;
  };
  const compare = async (file: Buffer) => {
    const page = await convertImage(file);
    await page.getByRole('button', { name: 'Compare image.png' }).click();
    await page.getByRole('dialog').waitFor();
    return page;
  };
  /** Returns which halves of the image show the original. */
  const originals = async (page: Page) => {
    const { width, height, data } = await decode(await page.locator('.pair').screenshot());
    const squares = { left: 0, right: 0 };
    for (let at = 0; at < width * height; at += 1) {
      if (Math.min(...data.subarray(at * 4, at * 4 + 3)) < 250)
        squares[at % width < width / 2 ? 'left' : 'right'] += 1;
    }
    const most = (width * height) / 2;
    return [squares.left / most > 0.3, squares.right / most > 0.3];
  };

  it('divides the original and the result at the slider', async () => {
    const page = await compare(await clear(400, 300));
    const slider = page.getByRole('slider', { name: 'Position of the divider between original and result' });
    await slider.focus();
    expect(await originals(page)).to.deep.equal([true, false]);
    await page.keyboard.press('End');
    expect(await originals(page)).to.deep.equal([true, true]);
    await page.keyboard.press('Home');
    expect(await originals(page)).to.deep.equal([false, false]);
    await page.keyboard.press('ArrowRight');
    expect(await slider.inputValue()).to.equal('1');
  });

  it('moves the divider by touch and mouse on the image', async () => {
    const page = await compare(await clear(400, 300));
    const { x, y } = (await page.locator('.pair').boundingBox()) ?? { x: 0, y: 0 };
    await page.mouse.move(x + 200, y + 100);
    await page.mouse.down();
    await page.mouse.move(x + 100, y + 100);
    await page.mouse.up();
    await page.mouse.move(x + 300, y + 100);
    expect(await page.getByRole('slider').last().inputValue()).to.equal('25');
  });

  it('scales a large image to fit, and zooms to 100%', async () => {
    const page = await compare(await clear(3000, 2000));
    const width = async () => (await page.locator('.after').boundingBox())?.width ?? 0;
    await eventually(async () => (await width()) > 500);
    expect(await width()).to.be.below(1100);
    await page.getByRole('button', { name: 'Zoom to 100%' }).click();
    expect(await width()).to.equal(3000);
    expect(await page.locator('.stage').evaluate((stage) => stage.scrollWidth)).to.equal(3000);
    // The centre of the image is still in the centre.
    const middle = async (selector: string) => {
      const { x, y, width, height } = (await page.locator(selector).boundingBox()) ?? {
        x: 0,
        y: 0,
        width: 0,
        height: 0,
      };
      return { x: x + width / 2, y: y + height / 2 };
    };
    const [stage, divider] = [await middle('.stage'), await middle('.divider')];
    expect(divider.x).to.be.closeTo(stage.x, 2);
    expect(divider.y).to.be.closeTo(stage.y, 2);
  });

  it('shows the pages of a PDF', async () => {
    const page = await open(service, {}, '?output_format=pdf');
    await pick(page, [fixturePath('scene.png')]);
    await convertAll(page);
    await page.getByRole('button', { name: 'Compare scene.png' }).click();
    const frame = page.locator('iframe');
    // Only the disc of the scene is orange.
    await eventually(async () => {
      const { data } = await decode(await frame.screenshot());
      let orange = 0;
      for (let at = 0; at < data.length; at += 4) {
        const [red = 0, green = 0, blue = 0] = data.subarray(at, at + 3);
        if (red > 220 && green > 120 && green < 170 && blue < 60) orange += 1;
      }
      return orange > 200;
    });
  });

  it('opens before the next frame, so that a key pressed at once reaches it', async () => {
    const page = await convertImage(await clear(40, 30));
    await page.evaluate(
      () => void Object.assign(window, { requestAnimationFrame: () => 0, setTimeout: () => 0 }),
    );
    await page.getByRole('button', { name: 'Compare image.png' }).click();
    await page.getByRole('dialog').waitFor();
  });

  it('closes with Escape and restores the focus', async () => {
    const page = await compare(await clear(40, 30));
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await page.evaluate(() => document.activeElement?.getAttribute('aria-label'))).to.equal(
      'Compare image.png',
    );
  });
});
