/**
 * @module Takes the pictures of the web page and of a regression report for the documents, on a
 * separate server: `npm run build && node scripts/screenshots.ts [folder]`.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { BrowserContextOptions, Locator, Page } from 'playwright-core';
import sharp from 'sharp';
import { launchChromium } from '../test/helpers/chromium.ts';
import { startServerProcess } from './processes/start.ts';
import { drawing, landscapes, type Picture } from './screenshots/landscapes.ts';
import { makeReport } from './screenshots/report.ts';

const folder = process.argv[2] ?? new URL('../docs/screenshots', import.meta.url).pathname;
mkdirSync(folder, { recursive: true });

await using server = await startServerProcess();
await using browser = await launchChromium();
const photos = await landscapes();
const files = [
  ...photos.slice(0, 6),
  drawing(),
  { name: 'cut-off.gif', content: Buffer.from('GIF89a\x20\0\x20\0', 'latin1') },
];

const desk = { viewport: { width: 1180, height: 940 }, deviceScaleFactor: 1.5 };
const twenty = { viewport: { width: 1180, height: 1040 }, deviceScaleFactor: 1.5 };
await shoot('light', { ...twenty, colorScheme: 'light' }, (page) => convertAll(page, photos));
await recordTour();
await shoot('dark', { ...desk, colorScheme: 'dark' }, async (page) => {
  await convertAll(page, files);
  await page.getByRole('button', { name: 'Compare first-light.jpg' }).click();
  await page.getByRole('slider', { name: /divider/ }).fill('42');
});
await shoot('crop', { ...desk, colorScheme: 'light' }, async (page) => {
  await convertAll(page, files.slice(0, 1));
  await page.getByRole('button', { name: 'Compare first-light.jpg' }).click();
  await page.getByRole('button', { name: 'Crop', exact: true }).click();
  await page.getByLabel('Ratio').selectOption('4:3');
  await page.locator('dialog output').getByText(/%$/).waitFor();
});
const screen = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2 };
const phone = { ...screen, hasTouch: true, isMobile: true, colorScheme: 'light' } as const;
await shoot('phone', phone, (page) => convertAll(page, files.slice(0, 2)));

using report = await makeReport();
const page = await browser.newPage({ viewport: { width: 1180, height: 900 }, deviceScaleFactor: 1.5 });
await page.goto(pathToFileURL(report.path).href);
await save('report', await page.screenshot());

async function shoot(name: string, options: BrowserContextOptions, act: (page: Page) => Promise<void>) {
  await using context = await browser.newContext({ ...options, reducedMotion: 'reduce' });
  const page = await context.newPage();
  await page.goto(new URL('/?output_format=webp&width=1600', server.base).href);
  await act(page);
  await page.waitForLoadState('networkidle');
  await save(name, await page.screenshot());
}

/** A picture of an animation, and its time in ms. */
type Frame = readonly [png: Buffer, ms: number];

/** Records how photos are dropped, compared and saved, as an animation. */
async function recordTour(): Promise<void> {
  await using context = await browser.newContext({
    viewport: { width: 880, height: 560 },
    colorScheme: 'light',
    reducedMotion: 'reduce',
  });
  const page = await context.newPage();
  await page.goto(new URL('/?output_format=webp&width=1600', server.base).href);
  await page.getByText('Choose files').waitFor();
  const frames: Frame[] = [];
  const add = async (ms: number): Promise<void> => void frames.push([await page.screenshot(), ms]);
  await add(1200);
  await addFiles(page, photos.slice(0, 9));
  await page.locator('.thumbnail img').nth(7).waitFor();
  await add(1000);
  await convertAdded(page);
  await add(1800);
  await page.getByRole('button', { name: 'Compare first-light.jpg' }).click();
  const divider: Locator = page.getByRole('slider', { name: /divider/ });
  for (const at of [50, 38, 26, 44, 62]) {
    await divider.fill(`${at}`);
    await page.waitForLoadState('networkidle');
    await add(at === 50 ? 900 : 350);
  }
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Download ZIP' }).hover();
  await add(1800);
  const pictures = await Promise.all(
    frames.map(([png]) => sharp(png).resize({ width: 800 }).png().toBuffer()),
  );
  await sharp(pictures, { join: { animated: true } })
    .webp({ quality: 60, effort: 6, delay: frames.map(([, ms]) => ms), loop: 0 })
    .toFile(join(folder, 'tour.webp'));
}

/** Saves a screenshot as `NAME.webp`. */
async function save(name: string, png: Buffer): Promise<void> {
  await sharp(png)
    .webp({ quality: 82 })
    .toFile(join(folder, `${name}.webp`));
}

/** Adds the files to the page, converts them and waits until each has a result or an error. */
async function convertAll(page: Page, files: readonly Picture[]): Promise<void> {
  await addFiles(page, files);
  await convertAdded(page);
}

async function addFiles(page: Page, files: readonly Picture[]): Promise<void> {
  const payload = files.map(({ name, content }) => ({ name, mimeType: '', buffer: content }));
  await page.getByLabel(/^Choose (files|images)$/).setInputFiles(payload);
}

async function convertAdded(page: Page): Promise<void> {
  await page.getByRole('button', { name: /^Convert \d+ files?$/ }).click();
  await page.getByRole('button', { name: 'Clear list', disabled: false }).waitFor();
}
