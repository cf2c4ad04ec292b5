/** @module Controls the system's Chromium with the page of a service. */
import { readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { expect } from 'chai';
import type { Browser, BrowserContext, BrowserContextOptions, Locator, Page } from 'playwright-core';
import { launchChromium } from '../helpers/chromium.ts';
import type { OwnService } from '../helpers/service.ts';
import { PATIENCE_MS } from '../helpers/util.ts';
import { readZip, type ZipEntry } from '../helpers/zip.ts';

/**
 * Folder for the traces of failed tests. Without TRACES=on there are none: recording takes a fifth
 * of the processor time.
 */
const TRACES = process.env.TRACES === 'on' && new URL('../../traces/', import.meta.url).pathname;

/**
 * Console messages that do not fail a test: responses with 4xx or 5xx, requests of the trace
 * recorder, and the script for shared photos if the test ends before it is loaded.
 */
const EXPECTED =
  /^Failed to load resource|^Connecting to 'blob:|^An unknown error occurred when fetching the script/;

/**
 * Returns the query of the page's address. The page itself is asked: Playwright learns of a changed
 * address later.
 */
export async function queryOf(page: Page): Promise<URLSearchParams> {
  return new URLSearchParams(await page.evaluate(() => location.search));
}

/**
 * Creates a browser context without stored data for each test. Errors, requests to other hosts and
 * violations of the Content-Security-Policy fail the test. With TRACES=on, keeps a trace of failed
 * tests.
 *
 * @param showsPdf whether the browser must be able to show a PDF
 */
export function useBrowser(showsPdf = false): {
  open(service: Pick<OwnService, 'base'>, options?: BrowserContextOptions, query?: string): Promise<Page>;
} {
  let browser: Promise<Browser> | undefined;
  let context: BrowserContext | undefined;
  let errors: string[] = [];
  after(async () => {
    await (await browser)?.close();
    browser = undefined;
  });
  afterEach(async function () {
    if (!context) return;
    const failed = this.currentTest?.state === 'failed' || errors.length > 0;
    if (TRACES) {
      const path = `${TRACES}${fileName(this.currentTest?.fullTitle())}.zip`;
      await context.tracing.stop(failed ? { path } : {});
    }
    await context.close();
    context = undefined;
    expect(errors, 'errors of the page').to.deep.equal([]);
  });
  return {
    async open({ base }, options = {}, query = '') {
      errors = [];
      browser ??= launchChromium(showsPdf);
      context = await (await browser).newContext({
        viewport: { width: 1100, height: 800 },
        reducedMotion: 'reduce',
        ...options,
      });
      if (TRACES) await context.tracing.start({ snapshots: true });
      const page = await context.newPage();
      page.setDefaultTimeout(PATIENCE_MS);
      page.on('pageerror', (error) => errors.push(String(error)));
      page.on('console', (message) => {
        if (message.type() === 'error' && !EXPECTED.test(message.text())) errors.push(message.text());
      });
      page.on('request', (request) => {
        const { protocol, origin } = new URL(request.url());
        if (protocol.startsWith('http') && origin !== new URL(base).origin) errors.push(request.url());
      });
      await page.goto(new URL(`../${query}`, base).href);
      await page
        .locator('input[value=bmp]')
        .or(page.getByRole('form', { name: 'API key' }))
        .first()
        .waitFor({ state: 'attached' });
      return page;
    },
  };
}

const fileName = (title = 'test'): string => title.replace(/\W+/g, '-').slice(0, 120);

/** Picks files with the button. */
export async function pick(page: Page, files: readonly string[] | readonly Made[]): Promise<void> {
  await page.getByLabel(/^Choose (files|images)$/).setInputFiles(files as string[]);
}

/** Drops files and folders by path, as the system does: the browser reads them itself. */
export async function drop(page: Page, paths: readonly string[]): Promise<void> {
  const session = await page.context().newCDPSession(page);
  const data = { items: [], files: [...paths], dragOperationsMask: 1 };
  for (const type of ['dragEnter', 'dragOver', 'drop'] as const) {
    await session.send('Input.dispatchDragEvent', { type, x: 700, y: 700, data });
    if (type === 'dragOver') await page.getByText('Drop to add files').waitFor();
  }
}

/** Shows the options, which are a line on a narrow screen with files. */
export async function showOptions(page: Page): Promise<void> {
  const closed = page.locator('.side-toggle[aria-expanded=false]');
  if (await closed.isVisible()) await closed.click();
}

/** Chooses a format of results, which can be one of those that are not always visible. */
export async function chooseFormat(page: Page, name: string): Promise<void> {
  const radio = page.getByRole('radio', { name, exact: true });
  await page.locator('input[value=webp]').waitFor({ state: 'attached' });
  if (!(await radio.isVisible())) await page.getByText('Other…').click();
  await radio.check();
}

/** Shows the fields of the size. */
export const showSize = (page: Page): Promise<void> => page.getByRole('radio', { name: 'Own' }).check();

/** Shows the less common options. */
export async function showMore(page: Page): Promise<void> {
  const more = page.getByText('More', { exact: true });
  await more.waitFor();
  if (await page.locator('.more:not([open])').isVisible()) await more.click();
  await page.getByText('As curl').waitFor();
}

/** Shows the curl command. */
export async function showCurl(page: Page): Promise<void> {
  await showMore(page);
  await page.getByText('As curl').click();
}

/** Shows the rows of the files that have failed. */
export const showFailures = (page: Page): Promise<void> =>
  page.getByRole('button', { name: / not converted$/, expanded: false }).click();

/** Opens the menu of a file. */
export async function openMenu(page: Page, name: string): Promise<Locator> {
  await page.getByRole('button', { name: `More for ${name}` }).click();
  return page.getByRole('dialog', { name: `More for ${name}` });
}

/** Waits until all files are converted, of which this number has a result. */
export const finished = (page: Page, count: number): Promise<void> =>
  page.locator('.finished strong', { hasText: new RegExp(`^${count} (?:of|file)`) }).waitFor();

/** A file that exists only in memory. */
export interface Made {
  readonly name: string;
  readonly mimeType: string;
  readonly buffer: Buffer;
}
export const made = (name: string, buffer: Buffer): Made => ({ name, mimeType: '', buffer });

/** Converts all files and waits until each is done or has failed. */
export async function convertAll(page: Page): Promise<void> {
  await page.getByRole('button', { name: /^Convert \d+ (?:files?|again)$/ }).click();
  await settled(page);
}

/** Picks files with the button, and converts all files of the list. */
export async function convertFiles(page: Page, files: Parameters<typeof pick>[1]): Promise<void> {
  await pick(page, files);
  await convertAll(page);
}

/**
 * Returns a function that returns how many conversions of the page the service has received at once
 * at most.
 */
export function countAtOnce({ server }: Pick<OwnService, 'server'>): () => number {
  let [underWay, most] = [0, 0];
  server.on('request', ({ url, headers }: IncomingMessage, res: ServerResponse) => {
    if (!url?.includes('/convert?') || !headers['user-agent']?.includes('Chrome')) return;
    most = Math.max(most, ++underWay);
    res.once('close', () => {
      underWay -= 1;
    });
  });
  return () => most;
}

/** Records the queries of the conversions that the page requests from now on. */
export function recordQueries(page: Page): URLSearchParams[] {
  const queries: URLSearchParams[] = [];
  page.on('request', (request) => {
    const { pathname, searchParams } = new URL(request.url());
    if (pathname.endsWith('/convert')) queries.push(searchParams);
  });
  return queries;
}

/** Opens the comparison of a file. */
export async function compare(page: Page, name: string) {
  await page.getByRole('button', { name: `Compare ${name}` }).click();
  const dialog = page.getByRole('dialog');
  await dialog.waitFor();
  return {
    dialog,
    /** Waits until the result has the current options. */
    done: () =>
      dialog
        .locator('output')
        .getByText(/^\d.*%$/)
        .waitFor(),
    close: async () => {
      await page.keyboard.press('Escape');
      await page.locator('dialog').waitFor({ state: 'detached' }); // a closed one has no role, but fields
    },
  };
}

/** Waits until no conversion is in progress. */
export async function settled(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Clear list', disabled: false }).waitFor();
}

/** Finds the row of a file. */
export const row = (page: Page, name: string) =>
  page.getByRole('grid', { name: 'Files' }).getByRole('row').filter({ hasText: name });

/** Clicks on what starts a download, and returns the file. */
export async function download(page: Page, control: Locator): Promise<{ name: string; content: Buffer }> {
  const [started] = await Promise.all([page.waitForEvent('download'), control.click()]);
  return { name: started.suggestedFilename(), content: await readFile(await started.path()) };
}

/** Finds the link that saves the result with this name. */
export const saveLink = (page: Page, name: string) => page.getByRole('link', { name: `Save ${name}` });

/** Saves the result with this name. */
export const save = (page: Page, name: string) => download(page, saveLink(page, name));

/** Downloads the archive of all results, and reads it. */
export async function saveZip(page: Page): Promise<{ name: string; entries: ZipEntry[] }> {
  const { name, content } = await download(page, page.getByRole('button', { name: 'Download ZIP' }));
  return { name, entries: await readZip(content) };
}

/** Records the object URLs that the page has not revoked, for {@link heldUrls}. */
export const recordUrls = (page: Page): Promise<void> =>
  page.evaluate(() => {
    const held = new Set<string>();
    Object.assign(window, { held });
    const { createObjectURL, revokeObjectURL } = URL;
    URL.createObjectURL = (blob) => {
      const url = createObjectURL(blob);
      held.add(url);
      return url;
    };
    URL.revokeObjectURL = (url) => {
      held.delete(url);
      revokeObjectURL(url);
    };
  });

/** Returns the object URLs that the page has not revoked since {@link recordUrls}. */
export const heldUrls = (page: Page): Promise<string[]> =>
  page.evaluate(() => [...(Reflect.get(window, 'held') as Set<string>)]);
