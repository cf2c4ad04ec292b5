/** @module Finds Chromium for the browser tests, and compares results with what it shows. */
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { expect } from 'chai';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { convert } from './client.ts';
import { decode, difference, type Pixels } from './pixels.ts';
import { requires } from './skips.ts';
import { PATIENCE_MS } from './util.ts';

/**
 * Debian's browser without windows. It takes a third of the processor time of the others, but
 * cannot show a PDF.
 */
const HEADLESS_SHELL = 'chromium-headless-shell';
const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];
const FOLDERS = (process.env.PATH ?? '').split(delimiter);
const MAC_PATHS = [
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];

/**
 * Returns the path of a browser on this machine. `scripts/bootstrap.sh` installs the Debian
 * packages.
 *
 * @param showsPdf whether the browser must be able to show a PDF
 * @throws {Error} if there is none
 */
function chromiumPath(showsPdf = false): string {
  const names = showsPdf ? NAMES : [HEADLESS_SHELL, ...NAMES];
  const paths = [...names.flatMap((name) => FOLDERS.map((folder) => join(folder, name))), ...MAC_PATHS];
  const found = paths.find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
  if (!found) throw new Error('No Chromium on this machine. On Debian: apt install chromium');
  return found;
}

/** Returns whether there is a browser on this machine. */
export function hasChromium(): boolean {
  try {
    return chromiumPath() !== '';
  } catch {
    return false;
  }
}

/** Flags that allow Chromium to run as root and prevent requests to other hosts. */
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
];

/**
 * Starts Chromium.
 *
 * @param showsPdf whether it must be able to show a PDF
 * @param flags more flags
 */
export const launchChromium = (showsPdf = false, flags: readonly string[] = []): Promise<Browser> =>
  chromium.launch({
    executablePath: chromiumPath(showsPdf),
    args: [...FLAGS, ...flags],
    timeout: PATIENCE_MS,
  });

export async function openPage(browser: Browser, options: BrowserContextOptions = {}): Promise<Page> {
  const page = await browser.newPage(options);
  page.setDefaultTimeout(PATIENCE_MS);
  return page;
}

/**
 * Maximum mean absolute error of a channel (0 to 255) between a result and what Chromium or sharp
 * shows. Without a conversion, patches in all colours have 4 to 50.
 */
export const MAX_MEAN_ERROR = 1;

/** Converts an image whose colours are not sRGB to PNG, and expects what Chromium shows. */
export async function expectAsInBrowser(
  { base }: { readonly base: string },
  browser: ReturnType<typeof useBrowserDecoder>,
  file: Buffer,
  mediaType: string,
): Promise<void> {
  const { status, message, headers, body } = await convert(base, file, { format: 'png' });
  expect(status, message).to.equal(200);
  expect(headers.get('x-conversion-notes')).to.equal('colour-converted-to-srgb');
  const { mae } = difference(await decode(body), await browser.show(file, mediaType));
  expect(mae).to.be.below(MAX_MEAN_ERROR);
}

/**
 * Starts Chromium before the tests of a suite, and closes it after them. Skips them without a
 * browser.
 */
export function useBrowserDecoder(): { show(file: Buffer, mediaType: string): Promise<Pixels> } {
  let browser: Browser | undefined;
  before(async function () {
    requires(this, 'browser', hasChromium());
    browser = await launchChromium(false, ['--force-color-profile=srgb']);
  });
  after(() => browser?.close());
  return {
    /** Takes a screenshot of the image at its own size. Fails if Chromium cannot decode it. */
    async show(file, mediaType) {
      const page = await openPage(browser as Browser);
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
