/** @module Controls the system's Chromium with the page of a service. */
import { readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { basename, isAbsolute } from 'node:path';
import axe from 'axe-core';
import { expect } from 'chai';
import type { Browser, BrowserContext, BrowserContextOptions, Locator, Page } from 'playwright-core';
import sharp from 'sharp';
import { launchChromium } from '../helpers/chromium.ts';
import { fixture, fixturePath } from '../helpers/client.ts';
import { execute } from '../helpers/process.ts';
import type { OwnService } from '../helpers/service.ts';
import { PATIENCE_MS } from '../helpers/util.ts';
import { readZip, type ZipEntry } from '../helpers/zip.ts';

/** Folder for traces of failed tests, with TRACES=on: it takes a fifth of the processor time. */
const TRACES = process.env.TRACES === 'on' && new URL('../../traces/', import.meta.url).pathname;

/**
 * Console messages that do not fail a test: responses with 4xx or 5xx, requests of the trace
 * recorder, and the script for shared photos if the test ends before it is loaded.
 */
const EXPECTED =
  /^Failed to load resource|^Connecting to 'blob:|^An unknown error occurred when fetching the script/;

/** A phone with a narrow screen. */
export const PHONE = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };

/** The page of a service, with what tests find and do on it. */
export type WebPage = Page & ReturnType<typeof actionsOn>;

/**
 * Creates a browser context without stored data for each test. Errors, requests to other hosts and
 * violations of the Content-Security-Policy fail the test. With TRACES=on, keeps a trace of failed
 * tests.
 *
 * @param showsPdf whether the browser must be able to show a PDF
 */
export function useBrowser(showsPdf = false): {
  open(service: Pick<OwnService, 'base'>, options?: BrowserContextOptions, query?: string): Promise<WebPage>;
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
      const opened = await context.newPage();
      const page = Object.assign(opened, actionsOn(opened));
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
      await page.loaded();
      return page;
    },
  };
}

const fileName = (title = 'test'): string => title.replace(/\W+/g, '-').slice(0, 120);

/** A file that exists only in memory. */
export interface Made {
  readonly name: string;
  readonly mimeType: string;
  readonly buffer: Buffer;
}
export const made = (name: string, buffer: Buffer): Made => ({ name, mimeType: '', buffer });

/** Returns copies of a photo under the names `0.jpg`, `1.jpg` and so on. */
export async function copies(count: number): Promise<Made[]> {
  const photo = await fixture('grey.jpg');
  return Array.from({ length: count }, (_, at) => made(`${at}.jpg`, photo));
}

/** Returns where a visible element is in the window. */
export const boxOf = async (element: Locator) =>
  (await element.boundingBox()) ?? expect.fail(`${element} is not visible`);

/** Paths of files, names of fixtures, and files that exist only in memory. */
type Files = readonly (string | Made)[];

const toPath = (name: string): string => (isAbsolute(name) ? name : fixturePath(name));

const actionsOn = (page: Page) => {
  const finders = findersOn(page);
  return {
    ...finders,
    ...optionsOn(page),
    ...listOn(page, finders),
    ...resultsOn(page, finders),
    ...urlsOn(page),
  };
};

/** Finds elements by role and name, and waits for what the page shows. */
const findersOn = (page: Page) => {
  const button = (name: string | RegExp) => page.getByRole('button', { name });
  /** The row of a file. */
  const row = (name: string) =>
    page.getByRole('grid', { name: 'Files' }).getByRole('row').filter({ hasText: name });
  return {
    button,
    row,
    /** Waits until the page has the formats of the server, or asks for an API key. */
    loaded: () =>
      page
        .locator('input[value=bmp]')
        .or(page.getByRole('form', { name: 'API key' }))
        .first()
        .waitFor({ state: 'attached' }),
    /** The paths of the rows. */
    names: () => page.locator('.file-name').allTextContents(),
    /** Waits until screen readers are told a text. */
    announced: (text: string) =>
      page.getByRole('status').filter({ hasText: text }).waitFor({ state: 'attached' }),
    /** The name of the focused element. */
    focused: () =>
      page.evaluate(() => {
        const at = document.activeElement as HTMLInputElement | null;
        return at?.ariaLabel ?? at?.labels?.[0]?.textContent?.trim() ?? at?.textContent ?? '';
      }),
    /**
     * Whether other elements cover the focused one.
     *
     * @param shares where to look, as shares of its height
     */
    isFocusCovered: (...shares: readonly number[]) =>
      page.evaluate((places) => {
        const at = document.activeElement as Element;
        const shown = at.closest('label') ?? at;
        const { x, y, width, height } = shown.getBoundingClientRect();
        const isShown = (share: number) =>
          shown.contains(document.elementFromPoint(x + width / 2, y + height * share));
        return at !== document.body && !places.some(isShown);
      }, shares),
    /** The marks of files whose results have other options than the current ones. */
    stale: (name = '') => row(name).locator('.stale'),
    /** The mark of a file that has these options of its own, or any. */
    ownOptions: (name = '', options = '') =>
      row(name).locator('.own', { hasText: options && `: ${options}` }),
    /**
     * The violations that axe-core finds with its default rules.
     *
     * @param leastRules number of rules that must have something to look at
     */
    async faults(leastRules = 10): Promise<string[]> {
      await page.evaluate(axe.source);
      const { violations, passes } = await page.evaluate(() =>
        (window as unknown as { axe: typeof axe }).axe.run(),
      );
      expect(passes.length, 'rules that had something to look at').to.be.above(leastRules);
      return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
    },
    /** Waits until a file is not converted, and nothing is in progress for it. */
    ready: (name: string) =>
      row(name)
        .getByRole('button', { name: /^Convert / })
        .waitFor(),
    /** The button that converts again what has other options. */
    again: button(/^Convert \d+ again$/),
    /** The link that saves the result with this name. */
    saveLink: (name: string) => page.getByRole('link', { name: `Save ${name}` }),
  };
};

type Finders = ReturnType<typeof findersOn>;

/** Shows and changes the options. */
const optionsOn = (page: Page) => {
  /** Shows the less common options. */
  const showMore = async (): Promise<void> => {
    const more = page.getByText('More', { exact: true });
    await more.waitFor();
    if (await page.locator('.more:not([open])').isVisible()) await more.click();
    await page.getByText('As curl').waitFor();
  };
  const curl = async (): Promise<string> => {
    await showMore();
    return page.getByRole('textbox', { name: 'curl command', includeHidden: true }).inputValue();
  };
  return {
    showMore,
    /** The query of the page's address, from the page: Playwright learns of a change later. */
    query: async () => new URLSearchParams(await page.evaluate(() => location.search)),
    /** Shows the options, which are a line on a narrow screen with files. */
    async showOptions(): Promise<void> {
      const closed = page.locator('.side-toggle[aria-expanded=false]');
      if (await closed.isVisible()) await closed.click();
    },
    /** Chooses a format of results, which can be one of those that are not always visible. */
    async chooseFormat(name: string): Promise<void> {
      const radio = page.getByRole('radio', { name, exact: true });
      await page.locator('input[value=webp]').waitFor({ state: 'attached' });
      if (!(await radio.isVisible())) await page.getByText('Other…').click();
      await radio.check();
    },
    /** Shows the fields of the size. */
    showSize: () => page.getByRole('radio', { name: 'Own' }).check(),
    /** Shows the curl command. */
    async showCurl(): Promise<void> {
      await showMore();
      await page.getByText('As curl').click();
    },
    /** Returns the curl command. */
    curl,
    /** Runs the curl command in a folder. */
    runCurl: async (cwd: string) => execute('sh', ['-ec', await curl()], { cwd }),
  };
};

/** Adds and converts files. */
const listOn = (page: Page, { button }: Finders) => {
  /** Picks files with the button. */
  const pick = async (files: Files): Promise<void> => {
    const picker = page.getByLabel(/^Choose (files|images)$/);
    const paths = files.filter((file) => typeof file === 'string').map(toPath);
    if (paths.length === files.length) return picker.setInputFiles(paths);
    // Playwright takes either all paths or none.
    const read = files.map(async (file) =>
      typeof file === 'string' ? made(basename(file), await readFile(toPath(file))) : file,
    );
    return picker.setInputFiles(await Promise.all(read));
  };
  /** Waits until no conversion is in progress. */
  const settled = () => page.getByRole('button', { name: 'Clear list', disabled: false }).waitFor();
  /** Converts all files and waits until each is done or has failed. */
  const convertAll = async (): Promise<void> => {
    await button(/^Convert \d+ (?:files?|again)$/).click();
    await settled();
  };
  return {
    pick,
    settled,
    convertAll,
    /** Picks files with the button, and converts all files of the list. */
    async convertFiles(files: Files): Promise<void> {
      await pick(files);
      await convertAll();
    },
    /** Drops files and folders by path, as the system does: the browser reads them itself. */
    async drop(paths: readonly string[]): Promise<void> {
      const session = await page.context().newCDPSession(page);
      const data = { items: [], files: paths.map(toPath), dragOperationsMask: 1 };
      for (const type of ['dragEnter', 'dragOver', 'drop'] as const) {
        await session.send('Input.dispatchDragEvent', { type, x: 700, y: 700, data });
        if (type === 'dragOver') await page.getByRole('heading', { name: 'Drop to add files' }).waitFor();
      }
    },
    /** Shows the rows of the files that have failed. */
    showFailures: () => page.getByRole('button', { name: / not converted$/, expanded: false }).click(),
    /** Opens the menu of a file. */
    async openMenu(name: string): Promise<Locator> {
      await button(`More for ${name}`).click();
      return page.getByRole('dialog', { name: `More for ${name}` });
    },
    /** Waits until all files are converted, of which this number has a result. */
    finished: (count: number) =>
      page.locator('.finished strong', { hasText: new RegExp(`^${count} (?:of|file)`) }).waitFor(),
    /** Records the queries of the conversions that the page requests from now on. */
    recordQueries(): URLSearchParams[] {
      const queries: URLSearchParams[] = [];
      page.on('request', (request) => {
        const { pathname, searchParams } = new URL(request.url());
        if (pathname.endsWith('/convert')) queries.push(searchParams);
      });
      return queries;
    },
  };
};

/** Compares and saves results. */
const resultsOn = (page: Page, { button, saveLink }: Finders) => {
  /** Clicks on what starts a download, and returns the file. */
  const download = async (control: Locator): Promise<{ name: string; content: Buffer }> => {
    const [started] = await Promise.all([page.waitForEvent('download'), control.click()]);
    return { name: started.suggestedFilename(), content: await readFile(await started.path()) };
  };
  return {
    download,
    /** Saves the result with this name. */
    save: (name: string) => download(saveLink(name)),
    /** Saves the result with this name, and returns what sharp reads in its header. */
    saveImage: async (name: string) => sharp((await download(saveLink(name))).content).metadata(),
    /** Downloads the archive of all results, and reads it. */
    async saveZip(): Promise<{ name: string; entries: ZipEntry[]; names: string[] }> {
      const { name, content } = await download(button('Download ZIP'));
      const entries = await readZip(content);
      return { name, entries, names: entries.map((entry) => entry.name) };
    },
    /** Opens the comparison of a file. */
    async compare(name: string) {
      await button(`Compare ${name}`).click();
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
    },
  };
};

/** Observes the object URLs that the page has not revoked. */
const urlsOn = (page: Page) => ({
  /** Records the object URLs, for `heldUrls`. */
  recordUrls: (): Promise<void> =>
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
    }),
  /** Returns the object URLs that the page has not revoked since `recordUrls`. */
  heldUrls: (): Promise<string[]> => page.evaluate(() => [...(Reflect.get(window, 'held') as Set<string>)]),
});

/** Returns a function that counts the conversions that the service has received at once at most. */
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
