/** @module Compares conversions of bitmaps, icons and GIFs with the same files in Chromium. */
import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { type Browser, chromium, type Page } from 'playwright-core';
import { CHROMIUM_FLAGS, chromiumPath } from '../helpers/chromium.ts';
import { convert } from '../helpers/client.ts';
import { decode, type Pixels } from '../helpers/pixels.ts';
import { useService } from '../helpers/service.ts';

const FOLDERS = ['images', 'traps'].map(
  (name) => new URL(`../../fixtures/${name}/`, import.meta.url).pathname,
);
/** Files that Chromium shows incompletely: it drops incomplete rows, and images whose alpha is 0 everywhere. */
const BETTER_HERE = ['padding-cut.bmp', 'alpha-all-zero.bmp'];
const FILES = FOLDERS.flatMap((folder) =>
  readdirSync(folder)
    .filter((name) => /\.(bmp|ico|gif)$/.test(name) && !BETTER_HERE.includes(name))
    .map((name) => ({ name, path: `${folder}${name}` })),
);
/** Maximum difference of a channel: rounding of colours that a canvas stores multiplied by their alpha. */
const TOLERANCE = 3;
/** Minimum alpha at which colours are compared: rounding makes those of nearly transparent pixels arbitrary. */
const MIN_ALPHA = 64;

describe('the rendering of Chromium', () => {
  const service = useService();
  let browser: Browser;
  let page: Page;
  before(async function () {
    this.timeout(60_000);
    browser = await chromium.launch({ executablePath: chromiumPath(), args: CHROMIUM_FLAGS });
    page = await browser.newPage();
  });
  after(() => browser.close());

  /** Decodes the first frame with Chromium. */
  async function shownByChromium(file: Buffer): Promise<Pixels> {
    const { width, height, data } = await page.evaluate(async (base64) => {
      const image = new Image();
      image.src = `data:application/octet-stream;base64,${base64}`;
      await image.decode();
      const { naturalWidth: width, naturalHeight: height } = image;
      const canvas = Object.assign(document.createElement('canvas'), { width, height });
      const context = canvas.getContext('2d') as CanvasRenderingContext2D;
      context.drawImage(image, 0, 0);
      return { width, height, data: [...context.getImageData(0, 0, width, height).data] };
    }, file.toString('base64'));
    return { width, height, data: Buffer.from(data) };
  }

  for (const { name, path } of FILES) {
    it(`of ${name} equals the PNG`, async () => {
      const file = readFileSync(path);
      const shown = await shownByChromium(file);
      const { status, body, message } = await convert(service.base, file, { format: 'png' }, name);
      expect(status, message).to.equal(200);
      const converted = await decode(body);
      expect([converted.width, converted.height]).to.deep.equal([shown.width, shown.height]);
      expect(firstDifference(shown, converted)).to.equal(undefined);
    });
  }
});

function firstDifference(one: Pixels, other: Pixels): string | undefined {
  for (let at = 0; at < one.data.length; at += 4) {
    const [a, b] = [one.data.subarray(at, at + 4), other.data.subarray(at, at + 4)];
    const channels = (a[3] as number) < MIN_ALPHA ? [3] : [0, 1, 2, 3];
    if (channels.some((channel) => Math.abs((a[channel] as number) - (b[channel] as number)) > TOLERANCE)) {
      const pixel = at / 4;
      return `at ${pixel % one.width},${Math.floor(pixel / one.width)}: ${[...b]} instead of ${[...a]}`;
    }
  }
  return undefined;
}
