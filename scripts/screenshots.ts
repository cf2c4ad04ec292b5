/**
 * @module Takes the screenshots of the web page and of a regression report for the README, on a separate server: `npm
 * run build && node scripts/screenshots.ts [folder]`.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { BrowserContextOptions, Page } from 'playwright-core';
import sharp from 'sharp';
import { launchChromium } from '../test/helpers/chromium.ts';
import { startServerProcess } from './processes/start.ts';
import { drawing, landscapes, type Picture } from './screenshots/landscapes.ts';
import { makeReport } from './screenshots/report.ts';

const folder = process.argv[2] ?? new URL('../docs/screenshots', import.meta.url).pathname;
mkdirSync(folder, { recursive: true });

await using server = await startServerProcess();
await using browser = await launchChromium();
const files = [
  ...(await landscapes()),
  drawing(),
  { name: 'cut-off.gif', content: Buffer.from('GIF89a\x20\0\x20\0', 'latin1') },
];

const desk = { viewport: { width: 1180, height: 940 }, deviceScaleFactor: 1.5 };
await shoot('light', { ...desk, colorScheme: 'light' }, (page) => convertAll(page, files));
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

/** Saves a screenshot as `NAME.webp`. */
async function save(name: string, png: Buffer): Promise<void> {
  await sharp(png)
    .webp({ quality: 82 })
    .toFile(join(folder, `${name}.webp`));
}

/** Uploads the files on the page, converts them and waits until each has a result or an error. */
async function convertAll(page: Page, files: readonly Picture[]): Promise<void> {
  const payload = files.map(({ name, content }) => ({ name, mimeType: '', buffer: content }));
  await page.getByLabel(/^Choose (files|images)$/).setInputFiles(payload);
  await page.getByRole('button', { name: /^Convert \d+ files?$/ }).click();
  await page.locator('.finished').waitFor();
}
