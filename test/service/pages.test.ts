/** @module Pages that are chosen by number: `pages=1-3,5`. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import sharp from 'sharp';
import { filled, pdf } from '../../scripts/fixtures/pdf.ts';
import { convert, converted, fixture, identify, jsonOf, sendBatch } from '../helpers/client.ts';
import { ALL_EXTRAS } from '../helpers/extra.ts';
import { makeTempDir, writeTempFile } from '../helpers/hooks.ts';
import { decode, difference, drawPdf, type Pixels, toPixels } from '../helpers/pixels.ts';
import { execute } from '../helpers/process.ts';
import { startService, useServiceWith } from '../helpers/service.ts';
import { namesIn, readZip } from '../helpers/zip.ts';

/** A TIFF of 3 pages of 48 × 32 pixels. */
const TIFF = await fixture('pages.tiff');
/** A PDF of 5 pages, each with a square of its own at another place, of which page 4 is wider. */
const PDF = pdf(
  Array.from({ length: 5 }, (_, at) => ({
    width: at === 3 ? 140 : 100,
    height: 60,
    content: filled([at * 50, 255 - at * 50, 128], 10 + at * 15, 10, 20, 20),
  })),
);

const tiffPage = (page: number): Promise<Pixels> => toPixels(sharp(TIFF, { page: page - 1 }));
/** Draws a page with pdftoppm, which is not used by the service. */
async function pdfPage(page: number): Promise<Pixels> {
  const stem = join(await makeTempDir('pages'), 'page');
  const path = await writeTempFile('pages.pdf', PDF);
  const args = ['-png', '-r', '144', '-cropbox', '-singlefile', '-f', `${page}`, '-l', `${page}`, path, stem];
  await execute('pdftoppm', args);
  return decode(await readFile(`${stem}.png`));
}

describe('pages by number', () => {
  const own = useServiceWith(ALL_EXTRAS);
  const png = { format: 'png' };
  const archived = async (body: Buffer) =>
    Promise.all(
      (await readZip(body)).map(async ({ name, content }) => [name, await decode(content)] as const),
    );

  for (const [file, bytes, count, expected] of [
    ['report.tiff', TIFF, 3, tiffPage],
    ['report.pdf', PDF, 5, pdfPage],
  ] as const) {
    it(`of ${file} become an image each, in a ZIP archive, with the pixels of other decoders`, async () => {
      const pages = `${count},1-2`;
      const { body, headers } = await converted(own.base, bytes, { ...png, pages }, file);
      expect(headers.get('content-type')).to.equal('application/zip');
      const images = await archived(body);
      expect(images.map(([name]) => name)).to.deep.equal([1, 2, count].map((page) => `report-p${page}.png`));
      for (const [at, page] of [1, 2, count].entries())
        expect(difference(images[at]?.[1] as Pixels, await expected(page)).max, `${page}`).to.be.at.most(2);
    });

    it(`of ${file} become one image if there is only one, without an archive or a note`, async () => {
      const page = count - 1;
      const { body, headers, notes } = await converted(own.base, bytes, { ...png, pages: `${page}` }, file);
      expect(headers.get('content-disposition')).to.include('filename=report.png');
      expect(notes).to.equal(null);
      expect(difference(await decode(body), await expected(page)).max).to.be.at.most(2);
    });
  }

  it('become one document in a PDF, a TIFF, and the TIFF of a PDF', async () => {
    const fromTiff = await converted(own.base, TIFF, { format: 'pdf', pages: '1,3', quality: '100' });
    for (const [at, page] of [1, 3].entries()) {
      const drawn = await decode(await drawPdf(fromTiff.body, at + 1));
      expect(difference(drawn, await tiffPage(page)).max, `page ${page}`).to.be.at.most(8);
    }
    for (const [bytes, expected, pages] of [
      [TIFF, tiffPage, [2, 3]],
      [PDF, pdfPage, [2, 4, 5]],
    ] as const) {
      const { body } = await converted(own.base, bytes, { format: 'tiff', pages: pages.join() });
      expect((await sharp(body).metadata()).pages).to.equal(pages.length);
      for (const [at, page] of pages.entries()) {
        const found = await toPixels(sharp(body, { page: at }));
        expect(difference(found, await expected(page)).max, `page ${page}`).to.be.at.most(2);
      }
    }
  });

  it('apply to each file of a batch, and to a variant', async () => {
    const batch = await sendBatch(
      own.base,
      [
        ['a.tiff', TIFF],
        ['b.pdf', PDF],
      ],
      { ...png, pages: '2-3' },
    );
    expect(await namesIn(batch)).to.have.members(['a-p2.png', 'a-p3.png', 'b-p2.png', 'b-p3.png']);
    const variants = '[{"name":"web","pages":"1,3"},{"name":"doc","format":"pdf","pages":"2-3"}]';
    const answer = await converted(own.base, TIFF, { variants }, 'a.tiff');
    expect(await namesIn(answer)).to.include.members(['a-web-p1.webp', 'a-web-p3.webp', 'a-doc.pdf']);
  });

  it('beyond the last are rejected with 400, which says how many pages there are', async () => {
    for (const [bytes, fields, count] of [
      [TIFF, png, '3 pages'],
      [TIFF, { format: 'pdf' }, '3 pages'],
      [PDF, png, '5 pages'],
      [await fixture('scene.jpg'), png, '1 page'],
    ] as const) {
      const page = Number.parseInt(count, 10) + 1;
      const { outcome } = await convert(own.base, bytes, { ...fields, pages: `1-${page + 3}` });
      expect(outcome).to.equal(`400 The file has ${count}, so there is no page ${page}.`);
    }
  });

  it('count for the limits of frames and pixels all together', async () => {
    await using few = await startService({ ...ALL_EXTRAS, MAX_FRAMES: '3' });
    const tooMany = await convert(few.base, PDF, { ...png, pages: '1-4' });
    expect(tooMany.outcome).to.match(
      /^413 .* has 4 frames or pages, more than the limit of 3 \(MAX_FRAMES\)/,
    );
    expect((await convert(few.base, PDF, { format: 'tiff', pages: '1-4' })).status).to.equal(413);
    expect((await convert(few.base, PDF, { ...png, pages: '3-5' })).status).to.equal(200);
    await using small = await startService({ ...ALL_EXTRAS, MAX_TOTAL_PIXELS: '50000' });
    const fields = { ...png, dpi: '144' }; // a page has 24 000 pixels
    expect((await convert(small.base, PDF, { ...fields, pages: '2-3' })).status).to.equal(200);
    const tooLarge = jsonOf(await convert(small.base, PDF, { ...fields, pages: '1-3' })).error;
    expect(tooLarge).to.include({ setting: 'MAX_TOTAL_PIXELS', limit: 50_000, actual: 72_000 });
    const cropped = { ...fields, pages: '1-3', crop: '0,0,10,10' }; // whole pages are drawn
    expect((await convert(small.base, PDF, cropped)).status).to.equal(413);
  });

  it('of all variants together are at most 1000 as images, which is checked before they are listed', async () => {
    const variants = JSON.stringify([1, 2].map((name) => ({ name: `v${name}`, pages: '1-501' })));
    const tooMany = '400 Invalid pages "1-501": expected at most 1000 pages in all.';
    expect((await convert(own.base, TIFF, { variants })).outcome).to.equal(tooMany);
  });

  it('are explained by /identify, and one that does not exist is its problem', async () => {
    const asked = { ...png, pages: '4', plan: 'true' };
    const { pages, conversion, explanation } = await identify(own.base, PDF, asked);
    expect([pages, conversion.width, conversion.height]).to.deep.equal([5, 280, 120]);
    expect(explanation.sentences).to.include('page 4 of 5');
    const { problem } = await identify(own.base, PDF, { ...png, pages: '6' });
    expect(problem).to.include({ reason: 'page_missing', limit: 5 });
  });
});
