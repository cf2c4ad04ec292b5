// @full: starts a browser
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import sharp from 'sharp';
import { formatBytes } from '../../src/base/text.ts';
import { OPTIONS, optionsWith } from '../../src/tables/options.ts';
import { convert, fixture } from '../helpers/client.ts';
import { extra, extraPath } from '../helpers/extra.ts';
import { makeTempDir, writeTempFile } from '../helpers/hooks.ts';
import { decode, difference, toPixels } from '../helpers/pixels.ts';
import { valuesOf } from '../helpers/plans.ts';
import { startService, useServiceWith } from '../helpers/service.ts';
import { eventually } from '../helpers/util.ts';
import { readZip } from '../helpers/zip.ts';
import { made, useBrowser, type WebPage } from './browser.ts';

describe('the page of a server with more formats', () => {
  const { open } = useBrowser();
  const service = useServiceWith({ EXTRA_INPUTS: 'heic,pdf', EXTRA_OUTPUTS: 'avif' });

  it('offers the resolution of PDFs while the list has one', async () => {
    const page = await open(service);
    const resolution = page.getByLabel('PDF resolution');
    await page.pick(['grey.jpg']);
    await page.row('grey.jpg').waitFor();
    expect(await resolution.count()).to.equal(0);
    await page.pick([extraPath('scene.pdf')]);
    await page.showMore();
    expect(await resolution.getAttribute('placeholder')).to.equal('144');
    await resolution.fill('300');
    expect((await page.query()).get('dpi')).to.equal('300');
  });

  it('converts pages by number to images in a ZIP archive, and sends no numbers for files without pages', async () => {
    const page = await open(service, {}, '?output_format=png');
    await page.pick(['pages.tiff', 'grey.jpg']);
    await page.showMore();
    await page.getByLabel('Pages', { exact: true }).fill('2-3');
    await page.getByLabel('Names of results').fill('{name}-{width}w');
    const queries = page.recordQueries();
    const { dialog, close } = await page.compare('pages.tiff');
    await dialog.getByText('The result is a ZIP archive, which cannot be shown.').waitFor();
    await close();
    await page.convertAll();
    await page.row('pages.tiff').locator('strong', { hasText: 'ZIP' }).waitFor();
    expect(await page.button('Compare pages.tiff').count()).to.equal(0);
    expect(queries.map((query) => query.get('pages'))).to.have.members(['2-3', null]);
    const { content } = await page.save('pages.zip');
    const images = await readZip(content);
    expect(images.map(({ name }) => name)).to.deep.equal(['pages-p2.png', 'pages-p3.png']);
    const source = await fixture('pages.tiff');
    for (const [at, image] of images.entries())
      expect(await sharp(image.content).removeAlpha().raw().toBuffer()).to.deep.equal(
        await sharp(source, { page: at + 1 })
          .removeAlpha()
          .raw()
          .toBuffer(),
      );
    const { names, entries } = await page.saveZip();
    expect(names).to.deep.equal(['grey-120w.png', 'pages.zip']);
    expect(entries[1]?.content).to.deep.equal(content);
  });

  it('says what is accepted as pages, sends nothing else, and keeps what is accepted', async () => {
    const page = await open(service);
    await page.pick(['pages.tiff']);
    const pages = page.getByLabel('Pages', { exact: true });
    await page.showMore();
    await pages.fill('1, 3');
    expect((await page.query()).get('pages')).to.equal('1,3');
    await pages.fill('3-1');
    await page.getByText('Type numbers from 1 to 10000, such as 1-3,5, or all, or first.').waitFor();
    expect((await page.query()).has('pages')).to.equal(false);
    const queries = page.recordQueries();
    for (const name of ['Convert 1 file', 'Convert pages.tiff']) {
      await page.getByRole('button', { name }).click();
      expect(await pages.evaluate((input) => input.matches(':focus:invalid'))).to.equal(true);
      await pages.blur();
    }
    await page.ready('pages.tiff');
    expect(queries).to.deep.equal([]);
    await pages.fill('FIRST');
    await page.goto(new URL('../', service.base).href);
    expect(await pages.inputValue()).to.equal('first');
  });

  it('offers the formats of EXTRA_OUTPUTS, accepts those of EXTRA_INPUTS, and saves the result', async () => {
    const page = await open(service);
    await page.chooseFormat('AVIF');
    await page.convertFiles([made('IMG_0001.HEIC', await extra('scene.heic'))]);
    const { format } = await page.saveImage('IMG_0001.avif');
    expect(format).to.equal('heif');
  });
});

describe('the page of a private server', () => {
  const { open } = useBrowser();
  const service = useServiceWith({ ACCESS: 'private', MAX_FILE_BYTES: '2097152' });

  it('accepts all formats that work, and states its limits', async () => {
    const page = await open(service);
    await page.getByText(/HEIC, .*; up to 2\.1 MB and \d+ megapixels$/).waitFor();
    await page.convertFiles([made('photo.heic', await extra('scene.heic'))]);
    await page.saveLink('photo.webp').waitFor();
  });
});

describe('converting on the page', () => {
  const { open } = useBrowser();
  const service = useServiceWith();

  it('saves results under the names of a pattern, without another conversion', async () => {
    const page = await open(service);
    await page.showSize();
    await page.getByLabel('Max width').fill('60');
    await page.convertFiles(['scene.jpg', 'grey.jpg']);
    const names = page.getByLabel('Names of results');
    await page.showMore();
    await names.fill('{name}-{wide}');
    await page.getByText('{wide} is unknown.').waitFor();
    await page.save('scene.webp');
    await names.fill('{name}-{width}w');
    await page.getByText('Example: grey-60w.webp').waitFor();
    expect((await page.save('scene-60w.webp')).name).to.equal('scene-60w.webp');
    const { entries } = await page.saveZip();
    const widths = await Promise.all(
      entries.map(async (entry) => (await sharp(entry.content).metadata()).width),
    );
    expect(entries.map(({ name }) => name)).to.deep.equal(
      ['grey', 'scene'].map((name, at) => `${name}-${widths[at]}w.webp`),
    );
    expect(await page.stale().count()).to.equal(0);
    await page.chooseFormat('PDF'); // has no size in pixels
    await page.convertAll();
    expect((await page.saveZip()).names).to.deep.equal(['grey.pdf', 'scene.pdf']);
    await names.fill('{name}-{number}');
    expect((await page.saveZip()).names).to.deep.equal(['grey-001.pdf', 'scene-002.pdf']);
    await names.fill('web');
    expect((await page.saveZip()).names).to.deep.equal(['web.pdf', 'web (2).pdf']);
    await names.fill('{name}-{width}w');
    await page.reload();
    await page.showMore();
    expect(await names.inputValue()).to.equal('{name}-{width}w');
  });

  it('shows the name of a result before the conversion, with its format and its size', async () => {
    const page = await open(service);
    await page.showMore();
    await page.getByLabel('Names of results').fill('{name}-{width}w-{height}h');
    const drawn = (attributes: string) =>
      writeTempFile('drawing.svg', `<svg xmlns="http://www.w3.org/2000/svg" ${attributes}/>`);
    const drawing = await drawn('width="33" height="17"');
    for (const [file, query, expected] of [
      ['scene.jpg', 'output_format=jpg&width=60', 'scene-60w-40h.jpg'],
      ['scene.jpg', 'output_format=png&rotate=90&crop=10,20,40,50&scale=50', 'scene-20w-25h.png'],
      ['scene.jpg', 'width=300&height=50', 'scene-75w-50h.webp'],
      ['scene.jpg', 'width=300&height=50&fit=cover', 'scene-120w-50h.webp'],
      ['scene.jpg', 'width=300&height=50&fit=contain', 'scene-300w-50h.webp'],
      ['scene.jpg', 'width=90&height=160&fit=fill&enlarge=true', 'scene-90w-160h.webp'],
      ['scene.svg', 'output_format=gif&width=240', 'scene-240w-160h.gif'],
      [await drawn('viewBox="0 0 33.3 17"'), 'output_format=webp', 'drawing-34w-17h.webp'],
      [await drawn('viewBox="0 0 33 17"'), 'width=300&height=50', 'drawing-98w-50h.webp'],
      [await drawn('viewBox="0 0 33 17"'), 'scale=37', 'drawing-12w-6h.webp'],
      [await drawn('viewBox="0 0 33 17" width="100%" height="100%"'), 'rotate=90', 'drawing-17w-33h.webp'],
      [await drawn('viewBox="0 0 33 17" width="20pt"'), 'output_format=webp', 'drawing-27w-14h.webp'], // 26.67 × 13.74
      [await drawn('viewBox="0 0 33 17" height="3em"'), 'output_format=webp', 'drawing-94w-48h.webp'], // 93.18 × 48
      [await drawn('width="1cm" height="33.3"'), 'output_format=webp', 'drawing-38w-34h.webp'], // 37.80 × 33.3
      [
        await drawn('width="9" height="9" style="width: 20px; height: 12.5px"'),
        'output_format=webp',
        'drawing-20w-13h.webp',
      ],
      [drawing, 'width=300&height=50', 'drawing-98w-50h.webp'], // 97.06 × 50
      [drawing, 'scale=37', 'drawing-12w-6h.webp'], // 12.21 × 6.29
      [drawing, 'width=50&crop=10%25,10%25,33%25,47%25', 'drawing-50w-37h.webp'], // of 10.89 × 7.99
      ['scene.jpg', 'output_format=pdf&width=60', 'scene.pdf'],
    ] as const) {
      await page.goto(new URL(`../?${query}`, service.base).href);
      await page.pick([file]);
      await page.showMore();
      await page.getByText(`Example: ${expected}`).waitFor();
      await page.convertAll();
      expect((await page.save(expected)).name, query).to.equal(expected);
    }
  });

  it('converts a JPEG with the selected options and shows the saved bytes', async () => {
    const page = await open(service);
    await page.getByLabel('Quality').fill('40');
    await page.showSize();
    await page.getByLabel('Max width').fill('60');
    await page.convertFiles(['scene.jpg']);
    const { name, content } = await page.save('scene.webp');
    expect(name).to.equal('scene.webp');
    const wanted = await convert(service.base, await fixture('scene.jpg'), { quality: '40', width: '60' });
    expect(difference(await decode(content), await decode(wanted.body)).psnr).to.equal(
      Number.POSITIVE_INFINITY,
    );
    expect((await sharp(content).metadata()).width).to.equal(60);
    const before = (await fixture('scene.jpg')).length;
    const percent = Math.round((1 - content.length / before) * 100);
    const properties = page.row('scene.jpg').locator('.file-properties');
    await properties.getByText('60 × 40').waitFor({ state: 'attached' });
    expect(await properties.textContent()).to.equal(
      `JPEG ${formatBytes(before)} → WebP ${formatBytes(content.length)} −${percent}% 60 × 40`,
    );
  });

  it('crops a photo to a square below a maximum size, and the address has all options', async () => {
    const page = await open(service);
    await page.chooseFormat('JPEG');
    await page.showSize();
    expect(await page.getByLabel('Fit').isDisabled()).to.equal(true); // without a box there is nothing to fit into
    await page.getByLabel('Max width').fill('300');
    await page.getByLabel('Max height').fill('300');
    await page.getByLabel('Fit').selectOption('Fill and crop');
    await page.showMore();
    await page.getByLabel('Position').selectOption('Top right');
    await page.getByLabel('Max file size').fill('3');
    await page.getByLabel('Enlarge').check();
    const wanted = {
      output_format: 'jpg',
      width: '300',
      height: '300',
      fit: 'cover',
      position: 'right top',
      enlarge: 'true',
      max_bytes: '3000',
    };
    expect(Object.fromEntries(await page.query())).to.deep.equal(wanted);
    await page.convertFiles(['scene.jpg']);
    const { content } = await page.save('scene.jpg');
    const answer = await convert(service.base, await fixture('scene.jpg'), wanted);
    expect(content.equals(answer.body)).to.equal(true);
    expect(content.length).to.be.at.most(3000);
    await page.row('scene.jpg').getByText('The quality was lowered').waitFor();

    await page.reload();
    expect(await page.getByLabel('Position').inputValue()).to.equal('right top');
    expect(await page.getByLabel('Max file size').inputValue()).to.equal('3');
    await page.chooseFormat('PNG');
    expect(await page.getByLabel('Max file size').count()).to.equal(0);
    expect((await page.query()).has('max_bytes')).to.equal(false);
  });

  it('keeps a maximum size of the address to the byte, in kB of 1000 bytes', async () => {
    const page = await open(service, {}, '?output_format=jpg&max_bytes=204801');
    expect(await page.getByLabel('Max file size').inputValue()).to.equal('204.801');
    await page.showMore();
    await page.getByLabel('Metadata').selectOption('Kept');
    expect((await page.query()).get('max_bytes')).to.equal('204801');
    expect(await page.locator('form:invalid').count()).to.equal(0);
  });

  it('writes a lossless WebP without quality and maximum size, and the address has the option', async () => {
    const page = await open(service, {}, '?output_format=webp&quality=40&max_bytes=3000');
    await page.getByLabel('Lossless').check();
    const wanted = { output_format: 'webp', lossless: 'true' };
    expect(Object.fromEntries(await page.query())).to.deep.equal(wanted);
    expect(await page.getByLabel('Quality').isDisabled()).to.equal(true);
    expect(await page.getByLabel('Max file size').isDisabled()).to.equal(true);
    const photo = await fixture('scene.png');
    await page.convertFiles([made('photo.png', photo)]);
    const { content } = await page.save('photo.webp');
    expect(difference(await decode(content), await decode(photo)).max).to.equal(0);

    await page.reload();
    expect(await page.getByLabel('Lossless').isChecked()).to.equal(true);
    await page.chooseFormat('JPEG');
    expect(await page.getByLabel('Lossless').count()).to.equal(0);
    expect(await page.getByLabel('Quality').isDisabled()).to.equal(false);
    expect((await page.query()).has('lossless')).to.equal(false);
  });

  it('converts an animation, which also plays in the comparison', async () => {
    const page = await open(service);
    await page.convertFiles(['moving.gif']);
    const { pages } = await page.saveImage('moving.webp');
    expect(pages).to.equal((await sharp(await fixture('moving.gif')).metadata()).pages);
    await page.button('Compare moving.gif').click();
    await page.getByRole('slider', { name: 'Position of the divider' }).fill('0');
    const seen = new Set<string>();
    await eventually(async () => {
      seen.add((await page.locator('.pair').screenshot()).toString('base64'));
      return seen.size > 1;
    });
  });

  it('converts only the first frame of an animation if that is selected', async () => {
    const page = await open(service, {}, '?output_format=webp&lossless=true');
    await page.pick(['moving.gif']);
    await page.showMore();
    await page.getByLabel('Animations').selectOption('First frame');
    await page.convertAll();
    const { content } = await page.save('moving.webp');
    const { format, pages = 1 } = await sharp(content).metadata();
    expect([format, pages]).to.deep.equal(['webp', 1]);
    const first = await toPixels(sharp(await fixture('moving.gif')));
    expect(difference(await decode(content), first).max).to.equal(0);
  });

  it('rejects files beyond the limits before the upload, offers Remove, and sends only the others', async () => {
    await using small = await startService({ MAX_FILE_BYTES: '2100000', MAX_PIXELS: '5100000' });
    const page = await open(small);
    const sent: string[] = [];
    page.on('request', (request) => sent.push(request.url()));
    const create = { width: 3000, height: 2100, channels: 3 as const, background: '#888' };
    await page.pick([
      made('large.jpg', Buffer.concat([await fixture('scene.jpg'), Buffer.alloc(13_900_000)])),
      made('wide.png', await sharp({ create }).png().toBuffer()),
      { ...made('note.txt', Buffer.from('a note')), mimeType: 'text/plain' },
      made('photo.heic', Buffer.from('an image')),
      made('good.png', await fixture('scene.png')),
    ]);
    await page.showFailures();
    for (const [name, reason] of [
      ['large.jpg', `The file has 13.9 MB. This server accepts 2.1 MB. Its operator can raise it.`],
      [
        'wide.png',
        `The file has 6.3 megapixels. This server accepts 5.1 megapixels. Its operator can raise it.`,
      ],
      ['note.txt', 'TXT is not a format that this server converts.'],
      ['photo.heic', 'HEIC is switched off on this server. Its operator can switch it on.'],
    ] as const) {
      await page.row(name).getByText(reason).waitFor();
      expect(await page.row(name).getByRole('button').allTextContents()).to.deep.equal(['Remove']);
    }
    await page.button('Convert 1 file').click();
    await page.finished(1);
    expect(await page.locator('.totals').textContent()).to.match(
      /^1 of 5 files · .* → .* · .* (saved|larger)$/,
    );
    const bar = page.getByRole('progressbar', { name: 'Files converted' });
    expect(await bar.evaluate((progress) => (progress as HTMLProgressElement).position)).to.equal(1);
    expect(sent.filter((url) => url.includes('/convert?'))).to.have.length(1);
    await page.chooseFormat('GIF');
    await page.again.waitFor();
  });

  it('says whom to ask about a limit or a format that only the server can find exceeded', async () => {
    await using small = await startService({ MAX_FRAMES: '2', MAX_PIXELS: '5100000' });
    const page = await open(small);
    const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="3000" height="2100"/>';
    await page.convertFiles([
      made('plan.svg', Buffer.from(svg)),
      'moving.gif',
      made('photo.jpg', await extra('scene.heic')), // as phones name some of their photos
      made('broken.png', (await fixture('scene.png')).subarray(0, 300)),
    ]);
    for (const [name, reason] of [
      [
        'plan.svg',
        `The file has 6.3 megapixels. This server accepts 5.1 megapixels. Its operator can raise it.`,
      ],
      ['moving.gif', /more than the limit of 2\. The operator can raise this limit\.$/],
      ['photo.jpg', 'HEIC is switched off on this server. Its operator can switch it on.'],
      ['broken.png', 'The file is damaged or not a valid PNG image.'],
    ] as const)
      await page.row(name).getByText(reason).waitFor();
    // Another quality helps none of these files, and a smaller size only the drawing.
    expect(await page.button(/^Try again/).count()).to.equal(0);
    const again = page.button(/^Convert \d/);
    await page.getByLabel('Quality').fill('50');
    expect(await again.count()).to.equal(0);
    await page.showSize();
    await page.getByLabel('Max width').fill('300');
    expect(await again.innerText()).to.equal('Convert 1 again');
    await page.convertAll();
    await page.saveLink('plan.webp').waitFor();
    expect(await again.count()).to.equal(0);
  });

  it('shows the thumbnail of the result for a TIFF, and explains the notes, a loss in another colour', async () => {
    const page = await open(service, {}, '?output_format=jpg');
    await page.convertFiles(['window.tiff', 'p3.jpg']);
    const loss = page.row('window.tiff').locator('.loss', { hasText: 'Transparent areas' });
    const note = page.locator('.summary .note', { hasText: 'The colours were converted to sRGB.' });
    const colours = [loss, note].map((text) => text.evaluate((shown) => getComputedStyle(shown).color));
    expect(new Set(await Promise.all(colours)).size).to.equal(2);
    await page.row('window.tiff').locator('.thumbnail img').waitFor();
    await page.button('Compare window.tiff').click();
    await page.getByText('This browser cannot show the original').waitFor();
    expect(await page.getByRole('dialog').locator('.viewer img').count()).to.equal(1);
  });

  it('says which results have other options than the current ones, and converts only those again', async () => {
    const page = await open(service);
    await page.pick(['scene.png', 'scene.jpg']);
    await page.getByLabel('Format of scene.jpg').selectOption('PNG');
    await page.convertAll();
    await page.row('scene.jpg').locator('strong', { hasText: 'PNG' }).waitFor();
    expect(await page.button(/^Convert \d/).count()).to.equal(0);
    await page.chooseFormat('GIF');
    await page.stale('scene.png').waitFor();
    expect(await page.stale().count()).to.equal(1);
    await page.again.click();
    const { name, content } = await page.save('scene.gif');
    expect([name, (await sharp(content).metadata()).format]).to.deep.equal(['scene.gif', 'gif']);
    const own = await page.save('scene.png');
    expect((await sharp(own.content).metadata()).format).to.equal('png');
  });

  it('rotates, flips and scales a picture, and has a control for each other edit', async () => {
    const page = await open(service, {}, '?output_format=png');
    await page.pick(['scene.png']);
    await page.showMore();
    await page.getByRole('combobox', { name: 'Rotate' }).selectOption('90° right');
    await page.getByRole('combobox', { name: 'Flip' }).selectOption('Upside down');
    await page.showSize();
    await page.getByRole('combobox', { name: 'Size' }).selectOption('In percent');
    await page.getByRole('spinbutton', { name: 'Scale' }).fill('50');
    const edits = optionsWith('filter', 'colours').map((name) => [name, `${valuesOf(name)[0]}`] as const);
    for (const [name, value] of edits) {
      const control = page.getByLabel(OPTIONS[name].control.label);
      await (value === 'true' ? control.check() : control.fill(value));
    }
    expect(Object.fromEntries(await page.query())).to.deep.equal({
      output_format: 'png',
      rotate: '90',
      flip: 'vertical',
      scale: '50',
      ...Object.fromEntries(edits),
    });
    await page.convertAll();
    const { width, height } = await page.saveImage('scene.png');
    expect([width, height]).to.deep.equal([40, 60]);
    await page.getByRole('combobox', { name: 'Size' }).selectOption('In pixels');
    await page.getByLabel('Max width').fill('30');
    expect((await page.query()).has('scale')).to.equal(false);
  });
});

describe('the options on the page', () => {
  const { open } = useBrowser();
  const service = useServiceWith();

  it('offer the formats of the server, and quality only for formats that support it', async () => {
    const page = await open(service);
    const formats = page.getByRole('group', { name: 'Convert to' }).getByRole('radio');
    await page.getByText('Other…').click();
    const all = await formats.evaluateAll((inputs) =>
      inputs.map((input) => (input as HTMLInputElement).value),
    );
    expect(all).to.deep.equal(['smallest', 'webp', 'jpg', 'png', 'pdf', 'gif', 'bmp']);
    const withQuality: string[] = [];
    for (const format of all) {
      await page.locator(`input[value=${format}]`).check();
      if ((await page.getByLabel('Quality').count()) > 0) withQuality.push(format);
    }
    expect(withQuality).to.deep.equal(['webp', 'jpg', 'pdf']);
  });

  it('say why the fit has no effect, and name the sides by what they mean', async () => {
    const page = await open(service);
    const fit = page.getByRole('combobox', { name: 'Fit' });
    await page.showSize();
    expect(await fit.isDisabled()).to.equal(true);
    await page.getByText('Needs a width and a height.').waitFor();
    await page.getByLabel('Max width').fill('300');
    await page.getByLabel('Max height').fill('200');
    expect(await page.getByText('Needs a width and a height.').count()).to.equal(0);
    await fit.selectOption('Stretch');
    expect(await page.getByRole('spinbutton', { name: 'Width', exact: true }).inputValue()).to.equal('300');
    expect(await page.getByRole('spinbutton', { name: 'Height', exact: true }).inputValue()).to.equal('200');
  });

  it('include background, frames and pages when a file in the list needs them', async () => {
    const page = await open(service, {}, '?output_format=pdf');
    const special = async () => {
      const fields = page.locator('[name=background], [name=frames], [name=pages]');
      return fields.evaluateAll((found) => found.map((field) => (field as HTMLInputElement).name));
    };
    await page.pick(['scene.jpg']);
    await page.showMore();
    expect(await special()).to.deep.equal([]);
    await page.pick(['moving.gif', 'pages.tiff']);
    await page.getByLabel('Animations').waitFor();
    expect(await special()).to.deep.equal(['background', 'frames', 'pages']);
    await page.getByLabel('Background', { exact: true }).fill('#ff0000');
    await page.getByLabel('Animations').selectOption('All frames');
    await page.locator('[name=pages]').fill('first');
    expect(String(await page.query())).to.equal(
      'output_format=pdf&frames=all&pages=first&background=%23ff0000',
    );
    await page.pick([extraPath('scene.pdf')]);
    await page.showFailures();
    await page.row('scene.pdf').getByText('PDF is switched off on this server.').waitFor();
    expect(await page.getByLabel('PDF resolution').count()).to.equal(0);
    await page.chooseFormat('WebP');
    await page.button('Reset the background').click();
    expect((await page.query()).has('background')).to.equal(false);
  });

  it('fill the borders with the background of the address', async () => {
    const page = await open(
      service,
      {},
      '?output_format=png&width=90&height=40&fit=contain&background=rebeccapurple',
    );
    expect(await page.getByLabel('Background', { exact: true }).inputValue()).to.equal('#663399');
    await page.convertFiles(['scene.png']);
    const { data } = await decode((await page.save('scene.png')).content);
    expect([...data.subarray(0, 4)]).to.deep.equal([0x66, 0x33, 0x99, 255]);
  });

  it('are stored in the address and for the next visit', async () => {
    const page = await open(service);
    await page.chooseFormat('JPEG');
    await page.getByLabel('Quality').fill('55');
    await page.showSize();
    await page.getByLabel('Max height').fill('900');
    await page.showMore();
    await page.getByLabel('Metadata').selectOption('Only copyright');
    const query = 'output_format=jpg&quality=55&height=900&metadata=copyright';
    expect(String(await page.query())).to.equal(query);
    await page.goto(new URL('/', service.base).href);
    expect(await page.getByRole('radio', { name: 'JPEG' }).isChecked()).to.equal(true);
    expect(await page.getByLabel('Quality').inputValue()).to.equal('55');
    expect(await page.getByLabel('Max height').inputValue()).to.equal('900');
    expect(await page.getByLabel('Metadata').inputValue()).to.equal('copyright');
  });

  it('are read from the address, and invalid values are ignored', async () => {
    const page = await open(service, {}, '?output_format=exe&quality=900&width=12&height=-3');
    expect(await page.getByRole('radio', { name: 'WebP' }).isChecked()).to.equal(true);
    expect(await page.getByLabel('Quality').inputValue()).to.equal('80');
    expect(await page.getByLabel('Max width').inputValue()).to.equal('12');
    expect(await page.getByLabel('Max height').inputValue()).to.equal('');
  });

  it('can be a point in the address, which another position replaces, and a border to trim', async () => {
    const page = await open(service, {}, '?width=40&height=40&fit=cover&position=30%25%2C70.5%25&trim=yes');
    expect(await page.getByLabel('Position').inputValue()).to.equal('30%,70.5%');
    await page.getByLabel('Enlarge').check();
    expect(await page.getByLabel('Trim tolerance').inputValue()).to.equal('4');
    expect((await page.query()).get('position')).to.equal('30%,70.5%');
    await page.getByLabel('Position').selectOption('Top right');
    expect((await page.query()).get('position')).to.equal('right top');
  });

  it('keep the metadata if selected, also by a link with strip_metadata', async () => {
    const page = await open(service, {}, '?output_format=jpg&strip_metadata=false');
    expect(await page.getByLabel('Metadata').inputValue()).to.equal('all');
    await page.convertFiles(['private.jpg']);
    expect((await page.saveImage('private.jpg')).exif).to.be.instanceOf(Buffer);
  });

  /** Fills a folder with these files, picks them, and returns what reads its results. */
  const pickFrom = async (page: WebPage, files: Readonly<Record<string, string | Buffer>>) => {
    const folder = await makeTempDir('curl');
    for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content);
    await page.pick(Object.keys(files).map((name) => join(folder, name)));
    return {
      folder,
      widthOf: async (name: string) => (await sharp(join(folder, name)).metadata()).width,
      namesIn: async (name: string) =>
        (await readZip(await readFile(join(folder, name)))).map((entry) => entry.name),
    };
  };

  it('as a curl command give the same result, also with special characters in file names', async () => {
    const permissions = ['clipboard-read', 'clipboard-write'];
    const page = await open(service, { permissions }, '?output_format=gif&width=50');
    const image = await fixture('scene.png');
    const { folder, widthOf, namesIn } = await pickFrom(page, { "it's a, b; c.png": image });
    await page.showCurl();
    await page.button('Copy').click();
    await page.button('Copied').waitFor();
    expect(await page.evaluate(() => navigator.clipboard.readText())).to.equal(await page.curl());
    await page.runCurl(folder);
    expect(await widthOf("it's a, b; c.gif")).to.equal(50);
    await writeFile(join(folder, 'plain.png'), image);
    await page.pick([join(folder, 'plain.png')]);
    await page.runCurl(folder);
    expect(await namesIn('converted.zip')).to.deep.equal(["it's a, b; c.gif", 'plain.gif']);
  });

  it('as a curl command do not overwrite the input with its result', async () => {
    const page = await open(service, {}, '?output_format=png&width=50');
    const { folder, widthOf } = await pickFrom(page, { 'scene.png': await fixture('scene.png') });
    await page.runCurl(folder);
    expect([await widthOf('scene (2).png'), await widthOf('scene.png')]).to.deep.equal([50, 120]);
  });

  it('as a curl command exit with an error status and save the message when the conversion fails', async () => {
    const page = await open(service);
    const { folder } = await pickFrom(page, { 'text.png': 'text' });
    const failed = await page.runCurl(folder).catch((error) => error);
    expect(failed.stderr).to.include('error: 415');
    expect((await readdir(folder)).sort()).to.deep.equal(['convert', 'text.png']);
    const { error } = JSON.parse(await readFile(join(folder, 'convert'), 'utf8'));
    expect(error.message).to.include('is not an image of a supported format');
  });

  it('as curl commands create one archive per batch and format, without the files that fail', async () => {
    await using small = await startService({ MAX_BATCH_FILES: '2' });
    const image = await fixture('scene.png');
    const files = { '1.png': 'text', '2.png': image, '3.png': image, '4.png': image };
    const page = await open(small);
    const { folder, namesIn } = await pickFrom(page, files);
    await page.getByLabel('Format of 4.png').selectOption('GIF');
    await page.runCurl(folder);
    const archives = [1, 2, 3].map((at) => namesIn(`converted-${at}-of-3.zip`));
    expect(await Promise.all(archives)).to.deep.equal([['2.webp', 'errors.json'], ['3.webp'], ['4.gif']]);
  });
});
