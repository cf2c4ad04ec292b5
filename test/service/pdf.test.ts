import { expect } from 'chai';
import sharp from 'sharp';
import { frame } from '../../scripts/fixtures/scene.ts';
import { converted, edgeCase, type Fields, fixture } from '../helpers/client.ts';
import { imageSizes, pdfFacts } from '../helpers/pdf.ts';
import { decode, difference, drawPdf, onGrey, plain, toPixels } from '../helpers/pixels.ts';
import { useService } from '../helpers/service.ts';

describe('conversion to PDF', () => {
  const service = useService();

  const made = async (file: Buffer, fields: Fields = {}) => {
    const { body, headers } = await converted(service.base, file, {
      format: 'pdf',
      ...fields,
    });
    return { body, notes: headers.get('x-conversion-notes') ?? '', facts: await pdfFacts(body) };
  };

  it('keeps an SVG as vector, at 72 points per inch', async () => {
    const { facts } = await made(await fixture('scene.svg'));
    expect(facts).to.deep.equal({ images: [], pages: 1, title: undefined, points: [[120, 80]], fonts: [] });
  });

  it('embeds the fonts of an SVG', async () => {
    const svg =
      '<svg xmlns="http://www.w3.org/2000/svg" width="200" height="50"><text y="30">Grüße</text></svg>';
    const { facts } = await made(Buffer.from(svg));
    expect(facts.images).to.deep.equal([]);
    expect(facts.fonts.map(({ embedded }) => embedded)).to.deep.equal([true]);
  });

  it('draws an SVG on the requested background', async () => {
    const svg =
      '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><rect width="5" height="5"/></svg>';
    const { body } = await made(Buffer.from(svg), { background: '#0080ff' });
    const { data } = await decode(await drawPdf(body));
    expect([...data.subarray(-4)]).to.deep.equal([0, 128, 255, 255]);
  });

  it('embeds a photo as JPEG of the requested quality, at one point per pixel regardless of its density', async () => {
    const photo = await sharp(await fixture('scene.jpg'))
      .withMetadata({ density: 300 })
      .jpeg({ quality: 95 })
      .toBuffer();
    const { facts, body } = await made(photo);
    expect(facts).to.deep.include({ images: ['jpeg'], pages: 1, points: [[120, 80]] });
    const better = await made(photo, { quality: '98' });
    expect(better.body.length).to.be.above(body.length);
  });

  it('has a title that viewers can show', async () => {
    const { facts, body } = await made(await fixture('scene.jpg'));
    expect(facts.title).to.equal('image');
    expect(body.includes('/Title <FEFF0069006D006100670065>'), 'the title has a byte order mark').to.equal(
      true,
    );
  });

  describe('of an image with a side above 14400 pixels', () => {
    /** Rounding of a page size by the tools, in points. */
    const close = (points: readonly (readonly number[])[], width: number, height: number) => {
      expect(points[0]?.[0]).to.be.closeTo(width, 2);
      expect(points[0]?.[1]).to.be.closeTo(height, 2);
    };

    it('scales the page of a photo, and keeps its pixels', async () => {
      const wide = await plain(16_000, 40).jpeg().toBuffer();
      const { facts, body } = await made(wide);
      close(facts.points, 14_400, 36);
      expect(await imageSizes(body)).to.deep.equal([[16_000, 40]]);
    });

    for (const [fields, width, height] of [
      [{ width: '1000' }, 2.88, 14_400],
      [{ width: '100', height: '16000', fit: 'fill' }, 90, 14_400],
      [{ width: '16000', height: '160', fit: 'contain' }, 14_400, 144],
    ] as const) {
      it(`scales the page of an SVG with ${JSON.stringify(fields)}`, async () => {
        const svg =
          '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="5000"><rect width="1" height="1"/></svg>';
        close((await made(Buffer.from(svg), fields)).facts.points, width, height);
      });
    }
  });

  for (const [what, file, image] of [
    ['a table of colours', () => edgeCase('few-colours.png'), 'image'],
    ['an animation, of which the first frame is shown', () => fixture('moving.gif'), 'image'],
    ['black and white', () => edgeCase('white-is-zero-1.tiff'), 'ccitt'],
  ] as const) {
    it(`embeds ${what} losslessly`, async () => {
      const source = await file();
      const { facts, body } = await made(source);
      expect(facts.images).to.deep.equal([image]);
      const expected = onGrey(await toPixels(sharp(source)), 255);
      expect(difference(await decode(body, 'pdf'), expected).max).to.be.at.most(1);
    });
  }

  it('embeds a resized bilevel image as greyscale without JPEG', async () => {
    const { facts } = await made(await edgeCase('white-is-zero-1.tiff'), { width: '30' });
    expect(facts).to.deep.include({ images: ['image'], points: [[30, 15]] });
  });

  it('writes all pages of a TIFF, or the first on request', async () => {
    const mixed = await edgeCase('mixed.tiff');
    const { facts, body, notes } = await made(mixed);
    expect(facts).to.deep.include({
      pages: 4,
      points: [
        [64, 32],
        [48, 32],
        [64, 32],
        [32, 48],
      ],
    });
    expect(notes).to.equal('');
    const pages = await Promise.all([1, 2, 3, 4].map(async (page) => decode(await drawPdf(body, page))));
    const left = pages.map(({ width, data }) => [
      ...data.subarray((16 * width + 8) * 4, (16 * width + 8) * 4 + 3),
    ]);
    const [white, bar, sky] = [
      [255, 255, 255],
      [200, 40, 40],
      [40, 90, 160],
    ];
    expect(left).to.deep.equal([white, bar, white, sky]); // rotated, the bar is higher up

    const first = await made(mixed, { pages: 'first' });
    expect([first.facts.pages, first.notes]).to.deep.equal([1, 'first-page-only']);
  });

  it('writes one page per frame of an animation on request', async () => {
    for (const name of ['moving.gif', 'moving.webp']) {
      const { facts, body, notes } = await made(await fixture(name), { frames: 'all' });
      expect(facts.pages, name).to.equal(3);
      expect(notes).to.equal('');
      for (const page of [1, 2, 3]) {
        const { psnr } = difference(await decode(await drawPdf(body, page)), frame(page - 1));
        expect(psnr, `${name}, page ${page}`).to.be.at.least(26);
      }
    }
  });

  it('contains no names of files or software', async () => {
    for (const name of ['scene.jpg', 'scene.svg']) {
      const { body } = await made(await fixture(name));
      for (const trace of ['/tmp', 'imagemill', 'request-', '(in)', '(out)']) {
        const inTitle = Buffer.from(trace, 'utf16le').swap16().toString('hex').toUpperCase();
        for (const text of [trace, inTitle])
          expect(body.includes(text), `${trace} of ${name}`).to.equal(false);
      }
    }
  });
});
