import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import type { Browser, Page } from 'playwright-core';
import { htmlReport } from '../../src/regress/report/html.ts';
import { launchChromium, openPage } from '../helpers/chromium.ts';
import { writeTempFile } from '../helpers/hooks.ts';
import { hostileFindings } from './findings.ts';

describe('the HTML report of regress in a browser', () => {
  let browser: Browser;
  let page: Page;
  const errors: string[] = [];
  before(async () => {
    const { findings, before: one, after } = await hostileFindings();
    const path = await writeTempFile('report.html', await htmlReport(findings, one, after));
    browser = await launchChromium();
    page = await openPage(browser, { viewport: { width: 1000, height: 900 } });
    page.setDefaultTimeout(15_000);
    page.on('pageerror', (error) => errors.push(String(error)));
    page.on('console', (message) => errors.push(message.text()));
    page.on('dialog', (dialog) => {
      errors.push(`a dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on('request', (request) => {
      if (!/^(?:file|data):/.test(request.url())) errors.push(`asked ${request.url()}`);
    });
    await page.goto(pathToFileURL(path).href);
  });
  after(() => browser?.close());
  afterEach(() => expect(errors).to.deep.equal([]));

  const shown = () => page.locator('.finding:visible').count();

  it('shows changed results first, and the others on request', async () => {
    expect(await page.getByRole('heading', { level: 1 }).textContent()).to.equal('4 of 5 results changed');
    expect(await shown()).to.equal(4);
    await page.getByRole('button', { name: /^identical/ }).click();
    expect(await shown()).to.equal(5);
    await page.getByRole('button', { name: /^changed/ }).click();
    expect(await shown()).to.equal(2);
    await page.getByRole('button', { name: /^changed/ }).click();
    await page.getByRole('button', { name: /^identical/ }).click();
  });

  it('filters by text, type and reason', async () => {
    await page.getByRole('searchbox').fill('ONERROR');
    expect(await shown()).to.equal(1);
    await page.getByRole('searchbox').fill('nowhere');
    expect(await page.getByText('No results match these filters.').isVisible()).to.equal(true);
    await page.getByRole('searchbox').fill('');
    await page.getByLabel('input').selectOption('gif');
    expect(await shown()).to.equal(1);
    await page.getByLabel('input').selectOption('');
    await page.getByRole('button', { name: 'pixels' }).click();
    expect(await shown()).to.equal(3);
    await page.getByLabel('kinds').selectOption('');
  });

  it('moves the slider by keyboard and pointer, and divides the images accordingly', async () => {
    const figure = page.locator('.slide').first();
    const slider = figure.getByRole('slider');
    const split = () => figure.locator('.stage').evaluate((stage) => stage.style.getPropertyValue('--split'));
    await slider.focus();
    await slider.press('ArrowRight');
    expect(await split()).to.equal('51%');
    const stage = figure.locator('.stage');
    const { width = 0, height = 0 } = (await stage.boundingBox()) ?? {};
    await stage.click({ position: { x: width / 4, y: height / 2 } });
    expect(Number.parseFloat(await split())).to.be.closeTo(25, 2);
    // Three quarters of the image before are clipped.
    const clip = await page.evaluate<string>(`getComputedStyle(document.querySelector('.before')).clipPath`);
    expect(clip).to.match(/inset\(0px 7\d|inset\(0px calc\(100% - 2\d/);
  });

  it('moves between findings with j and k', async () => {
    await page.locator('h1').click();
    await page.keyboard.press('j');
    const focused = () => page.locator('.finding:focus').getAttribute('data-verdict');
    expect(await focused()).to.equal('broken');
    await page.keyboard.press('j');
    expect(await focused()).to.equal('changed');
    await page.keyboard.press('k');
    expect(await focused()).to.equal('broken');
  });

  it('fits a narrow screen without horizontal scrolling', async () => {
    await page.setViewportSize({ width: 360, height: 800 });
    const overflow = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
    expect(await page.evaluate(overflow)).to.equal(0);
  });
});
