// @full
import { expect } from 'chai';
import sharp from 'sharp';
import { formatBytes } from '../../src/base/text.ts';
import { convert, fixture } from '../helpers/client.ts';
import { decode } from '../helpers/pixels.ts';
import { useServiceWith } from '../helpers/service.ts';
import { eventually } from '../helpers/util.ts';
import { boxOf, countAtOnce, made, useBrowser, type WebPage } from './browser.ts';

describe('the comparison dialog', () => {
  const { open } = useBrowser(true);
  const service = useServiceWith();

  /** A fully transparent image: the page shows a checkerboard, a JPEG white. */
  const clear = (width: number, height: number) =>
    sharp({ create: { width, height, channels: 4, background: '#0000' } })
      .png()
      .toBuffer();
  const convertImage = async (file: Buffer) => {
    const page = await open(service, {}, '?output_format=jpg');
    await page.convertFiles([made('image.png', file)]);
    return page;
  };
  const compare = async (file: Buffer) => {
    const page = await convertImage(file);
    await page.compare('image.png');
    await page
      .locator('.pair')
      .evaluate((pair) => Promise.all([...pair.querySelectorAll('img')].map((img) => img.decode())));
    return page;
  };
  /** Returns which halves of the image show the original. */
  const originals = async (page: WebPage) => {
    const { width, height, data } = await decode(await page.locator('.pair').screenshot());
    const squares = { left: 0, right: 0 };
    for (let at = 0; at < width * height; at += 1) {
      if (Math.min(...data.subarray(at * 4, at * 4 + 3)) < 250)
        squares[at % width < width / 2 ? 'left' : 'right'] += 1;
    }
    const most = (width * height) / 2;
    return [squares.left / most > 0.3, squares.right / most > 0.3];
  };

  it('divides the original and the result at the slider, which keys and the mouse move', async () => {
    const page = await compare(await clear(400, 300));
    const slider = page.getByRole('slider', { name: 'Position of the divider' });
    await slider.focus();
    expect(await originals(page)).to.deep.equal([true, false]);
    await page.keyboard.press('End');
    expect(await originals(page)).to.deep.equal([true, true]);
    await page.keyboard.press('Home');
    expect(await originals(page)).to.deep.equal([false, false]);
    await page.keyboard.press('ArrowRight');
    expect(await slider.inputValue()).to.equal('1');

    const { x, y } = await boxOf(page.locator('.pair'));
    await page.mouse.move(x + 200, y + 100);
    await page.mouse.down();
    await page.mouse.move(x + 100, y + 100);
    await page.mouse.up();
    await page.mouse.move(x + 300, y + 100);
    expect(await slider.inputValue()).to.equal('25');
  });

  it('shows the pages of a PDF', async () => {
    const page = await open(service, {}, '?output_format=pdf');
    await page.convertFiles(['scene.png']);
    await page.button('Compare scene.png').click();
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

  it('opens before the next frame, so that a key pressed at once reaches it, and closes with Escape', async () => {
    const page = await convertImage(await clear(40, 30));
    await page.evaluate(
      () => void Object.assign(window, { requestAnimationFrame: () => 0, setTimeout: () => 0 }),
    );
    await page.compare('image.png');
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await page.focused()).to.equal('Compare image.png');
  });

  it('converts a file that is not converted yet, and follows the quality slider, one request at a time', async () => {
    const page = await open(service);
    await page.pick(['scene.jpg', 'grey.jpg']);
    const most = countAtOnce(service);
    let aborted = 0;
    page.on('requestfailed', (request) => {
      if (request.url().includes('/convert?')) aborted += 1;
    });
    await page.button('Compare scene.jpg').click();
    const dialog = page.getByRole('dialog');
    const sent = async (quality: string) => {
      const { body } = await convert(service.base, await fixture('scene.jpg'), { quality });
      return formatBytes(body.length);
    };
    const output = dialog.locator('output');
    await output.getByText(await sent('80')).waitFor();

    // The first response comes after the slider has moved again.
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    await page.route('**/api/v1/convert?*', async (route) => {
      await held;
      await route.continue().catch(() => {});
    });
    const first = page.waitForRequest(/\/convert\?/);
    await dialog.getByLabel('Quality').fill('50');
    await first;
    const last = page.waitForRequest(/\/convert\?/);
    // In one turn, because the page waits for a moment after each change.
    await dialog.getByLabel('Quality').evaluate((slider) => {
      for (const value of ['40', '30', '20', '10']) {
        Object.assign(slider, { value });
        slider.dispatchEvent(new Event('input', { bubbles: true }));
      }
    });
    await last;
    release();
    await output.getByText(await sent('10')).waitFor();
    expect(await output.textContent()).to.match(/ [−+]\d+%$/);
    expect(most()).to.equal(1);
    expect(aborted).to.equal(1);

    await page.keyboard.press('Escape');
    await page.saveLink('scene.webp').waitFor();
    expect(await page.getByRole('link', { name: /^Save / }).count()).to.equal(1); // only the selected file
    await page.button('Convert 1 file').waitFor();
  });

  it('shows the error of a result that the server cannot create, and the next result', async () => {
    const page = await open(service, {}, '?output_format=jpg&max_bytes=10');
    await page.pick(['scene.jpg']);
    await page.button('Compare scene.jpg').click();
    await page.getByRole('dialog').locator('output').getByText('cannot be reduced to 10 bytes: ').waitFor();
  });

  it('fits a large image, zooms to 100%, with the wheel and two fingers around the pointer, and with keys', async () => {
    const page = await compare(await clear(3000, 1200));
    await page.locator('.tag').getByText('Original · PNG').waitFor();
    await page.locator('.tag').getByText('Result · JPEG').waitFor();
    const shown = async () =>
      (await page.locator('.after').boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
    await eventually(async () => (await shown()).width > 500);
    const fitted = await shown();
    expect(fitted.width).to.be.below(1100);
    const zoom = page.button('Zoom to 100%');
    await zoom.click();
    expect((await shown()).width).to.equal(3000);
    expect(await page.locator('.stage').evaluate((stage) => stage.scrollWidth)).to.equal(3000);
    // The centre of the image is still in the centre.
    const [stage, divider] = await Promise.all(
      ['.stage', '.divider'].map(async (selector) => {
        const { x, y, width, height } = await boxOf(page.locator(selector));
        return { x: x + width / 2, y: y + height / 2 };
      }),
    );
    expect(divider?.x).to.be.closeTo(stage?.x as number, 2);
    expect(divider?.y).to.be.closeTo(stage?.y as number, 2);
    await zoom.click();
    await eventually(async () => (await shown()).width === fitted.width);
    const [x, y] = [fitted.x + fitted.width * 0.75, fitted.y + fitted.height * 0.25];
    const across = async () => {
      const { x: left, y: top, width, height } = await shown();
      return [(x - left) / width, (y - top) / height] as const;
    };
    await page.mouse.move(x, y);
    await page.mouse.wheel(0, -600);
    await eventually(async () => (await shown()).width > fitted.width * 3);
    const [right, down] = await across();
    expect(right).to.be.closeTo(0.75, 0.01);
    expect(down).to.be.closeTo(0.25, 0.01);
    await page.locator('.stage').press('0');
    await eventually(async () => (await shown()).width === fitted.width);
    await page.locator('.stage').press('+');
    await eventually(async () => (await shown()).width > fitted.width * 1.2);
    await page.locator('.stage').press('1');
    await eventually(async () => (await shown()).width === 3000);
    await page.locator('.stage').press('0');
    await eventually(async () => (await shown()).width === fitted.width);

    const session = await page.context().newCDPSession(page);
    const touch = (type: 'touchStart' | 'touchMove' | 'touchEnd', distance = 0) =>
      session.send('Input.dispatchTouchEvent', {
        type,
        touchPoints: distance > 0 ? [-1, 1].map((side, id) => ({ x: x + (side * distance) / 2, y, id })) : [],
      });
    await touch('touchStart', 40);
    for (let distance = 50; distance <= 120; distance += 10) await touch('touchMove', distance);
    await touch('touchEnd');
    await eventually(async () => (await shown()).width > fitted.width * 2);
    expect((await across())[0]).to.be.closeTo(0.75, 0.05);
  });
});
