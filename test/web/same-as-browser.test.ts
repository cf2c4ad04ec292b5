// @full: all images and options of the page
// @slow
/** @module Compares conversions of bitmaps, icons and GIFs with the same files in Chromium. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import type { Browser, Page } from 'playwright-core';
import { GOOD, QUESTIONABLE } from '../helpers/bmp-kinds.ts';
import { launchChromium, openPage } from '../helpers/chromium.ts';
import { convert, expectSuccess } from '../helpers/client.ts';
import { composedFrames, gifWithDisposal } from '../helpers/gif-disposal.ts';
import { decode, type Pixels, sizeOf } from '../helpers/pixels.ts';
import { useService } from '../helpers/service.ts';

const FOLDERS = ['images', 'traps'].map(
  (name) => new URL(`../../fixtures/${name}/`, import.meta.url).pathname,
);
/** Files that differ: Chromium drops an incomplete row, and shows skipped pixels as black. */
const DIFFERENT = ['padding-cut.bmp', 'rle8-gaps.bmp'];
const isRejected = (path: string): boolean =>
  existsSync(`${path}.json`) && 'refused' in JSON.parse(readFileSync(`${path}.json`, 'utf8'));
const FILES = FOLDERS.flatMap((folder) =>
  readdirSync(folder)
    .filter((name) => /\.(bmp|ico|gif)$/.test(name) && !DIFFERENT.includes(name))
    .map((name) => ({ name, path: `${folder}${name}` }))
    .filter(({ path }) => !isRejected(path)),
);
/** Maximum difference of a channel: a canvas rounds colours multiplied by their alpha. */
const TOLERANCE = 3;
/** Minimum alpha to compare colours: those of nearly transparent pixels are rounded arbitrarily. */
const MIN_ALPHA = 64;

describe('the rendering of Chromium', () => {
  const service = useService();
  let browser: Browser;
  let page: Page;
  before(async () => {
    browser = await launchChromium();
    page = await openPage(browser);
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

  /** Converts the file to PNG, and compares the result with what Chromium shows. */
  async function check(file: Buffer, name: string): Promise<void> {
    const shown = await shownByChromium(file);
    const { body } = await expectSuccess(convert(service.base, file, { format: 'png' }, name));
    const converted = await decode(body);
    expect(sizeOf(converted)).to.deep.equal(sizeOf(shown));
    expect(firstDifference(shown, converted)).to.equal(undefined);
  }

  for (const { name, path } of FILES) it(`of ${name} equals the PNG`, () => check(readFileSync(path), name));

  for (const { names, make } of [...GOOD, ...QUESTIONABLE].filter(
    (kind) => kind.shows && !kind.unlikeChromium,
  ))
    it(`of the BMP Suite kind ${names} equals the PNG`, async () => check(await make(), 'kind.bmp'));

  // The other pairs of methods need no browser: test/service/animations.test.ts.
  for (const [first, second] of [
    [0, 2],
    [1, 3],
    [2, 0],
    [2, 2],
    [2, 'none'],
    [3, 2],
  ] as const) {
    it(`of each frame of a GIF with the disposal methods ${first} and ${second} equals the WebP`, async () => {
      await page.goto(new URL('/livez', service.base).href);
      const file = gifWithDisposal(first, second);
      const shown = await framesInChromium(page, file, 'image/gif');
      expect(firstDifference(composedFrames(first, second), shown)).to.equal(undefined);
      const { body } = await convert(service.base, file, { format: 'webp', lossless: 'true' });
      expect(firstDifference(shown, await framesInChromium(page, body, 'image/webp'))).to.equal(undefined);
    });
  }
});

/** Decodes all frames with Chromium, stacked vertically. The page must be of a local host. */
async function framesInChromium(page: Page, file: Buffer, type: string): Promise<Pixels> {
  const { width, height, data } = await page.evaluate(
    async ([base64, mediaType]) => {
      const bytes = Uint8Array.from(atob(base64 as string), (character) => character.charCodeAt(0));
      const decoder = new ImageDecoder({ data: bytes, type: mediaType as string });
      await decoder.tracks.ready;
      const count = decoder.tracks.selectedTrack?.frameCount ?? 0;
      const pixels: number[] = [];
      let size = { width: 0, height: 0 };
      for (let frameIndex = 0; frameIndex < count; frameIndex += 1) {
        const { image } = await decoder.decode({ frameIndex });
        size = { width: image.displayWidth, height: image.displayHeight };
        const context = new OffscreenCanvas(size.width, size.height).getContext('2d');
        context?.drawImage(image, 0, 0);
        pixels.push(...(context?.getImageData(0, 0, size.width, size.height).data ?? []));
      }
      return { width: size.width, height: size.height * count, data: pixels };
    },
    [file.toString('base64'), type] as const,
  );
  return { width, height, data: Buffer.from(data) };
}

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
