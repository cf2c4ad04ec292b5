/** @module Renders images in Chromium, for a standard display. It is the reference for viewers. */
import { type Browser, chromium } from 'playwright-core';
import { CHROMIUM_FLAGS, chromiumPath, hasChromium } from './chromium.ts';
import { decode, type Pixels } from './pixels.ts';
import { requires } from './skips.ts';

/** Starts Chromium before the tests of a suite, and closes it after them. Skips them without a browser. */
export function useBrowserDecoder(): { show(file: Buffer, mediaType: string): Promise<Pixels> } {
  let browser: Browser | undefined;
  before(async function () {
    requires(this, 'browser', hasChromium());
    const args = [...CHROMIUM_FLAGS, '--force-color-profile=srgb'];
    browser = await chromium.launch({ executablePath: chromiumPath(), args });
  });
  after(() => browser?.close());
  return {
    /** Takes a screenshot of the image at its own size. Fails if Chromium cannot decode it. */
    async show(file, mediaType) {
      const page = await (browser as Browser).newPage();
      try {
        const source = `data:${mediaType};base64,${file.toString('base64')}`;
        await page.setContent(`<body style="margin:0"><img style="display:block" src="${source}">`);
        const image = page.locator('img');
        await image.evaluate((element) => (element as unknown as { decode(): Promise<void> }).decode());
        return await decode(await image.screenshot());
      } finally {
        await page.close();
      }
    },
  };
}
