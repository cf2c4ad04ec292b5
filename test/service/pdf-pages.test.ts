// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { expect } from 'chai';
import sharp from 'sharp';
import { open } from '../../scripts/fixtures/scene.ts';
import { convert, converted, edgeCase, type Fields, fixture, jsonOf } from '../helpers/client.ts';
import { pdfFacts } from '../helpers/pdf.ts';
import { decode, difference, drawPdf, onGrey, pixelAt, plain, toPixels } from '../helpers/pixels.ts';
import { useService } from '../helpers/service.ts';

const A4 = [595.276, 841.89];

describe('the pages of a PDF', () => {
  const service = useService();

  const made = async (file: Buffer, fields: Fields = {}) =>
    (await converted(service.base, file, { format: 'pdf', ...fields })).body;
  const pointsOf = async (file: Buffer, fields: Fields = {}) =>
    (await pdfFacts(await made(file, fields))).points;

  /** A file that states a resolution, in EXIF too if its format has it. */
  const stating = (
    density: number,
    format: 'jpeg' | 'png' | 'tiff' | 'webp' | 'avif',
    image = plain(600, 300),
  ) => image.withMetadata({ density }).toFormat(format, { quality: 90 }).toBuffer();

  it('follow the resolution that a JPEG, PNG, TIFF, WebP, AVIF or BMP states', async () => {
    for (const format of ['jpeg', 'png', 'tiff', 'webp', 'avif'] as const) {
      expect(await pointsOf(await stating(300, format)), format).to.deep.equal([[144, 72]]);
      expect(await pointsOf(await stating(150, format)), format).to.deep.equal([[288, 144]]);
    }
    const bmp = Buffer.from(await fixture('scene.bmp'));
    bmp.writeInt32LE(5906, 38); // 150 and 300 pixels per inch
    bmp.writeInt32LE(11811, 42);
    expect(await pointsOf(bmp)).to.deep.equal([[57.6, 19.2]]);
  });

  it('have one point for each pixel if the resolution is below 30 or above 2400 dpi', async () => {
    for (const [density, points] of [
      [20, [600, 300]],
      [30, [1440, 720]],
      [2400, [18, 9]],
      [2500, [600, 300]],
    ] as const)
      expect(await pointsOf(await stating(density, 'png')), `${density} dpi`).to.deep.equal([points]);
  });

  it('have sides that are turned with the picture', async () => {
    const jpeg = await plain(600, 300).withMetadata({ orientation: 6 }).jpeg().toBuffer();
    // JFIF takes precedence over the resolution in EXIF.
    const jfif = Buffer.from('ffe000104a46494600010101012c00640000', 'hex');
    const turned = Buffer.concat([jpeg.subarray(0, 2), jfif, jpeg.subarray(2)]);
    expect(await pointsOf(turned)).to.deep.equal([[216, 144]]);
    expect(await pointsOf(turned, { rotate: '90' })).to.deep.equal([[144, 216]]);
    expect(await pointsOf(turned, { width: '150' })).to.deep.equal([[108, 72]]);
  });

  it('have the resolution of `dpi` instead', async () => {
    expect(await pointsOf(await stating(300, 'png'), { dpi: '100' })).to.deep.equal([[432, 216]]);
    expect(await pointsOf(await fixture('scene.svg'), { dpi: '36' })).to.deep.equal([[240, 160]]);
  });

  it('have a size of paper, in the orientation of the picture or as requested', async () => {
    const wide = await plain(600, 300).png().toBuffer();
    for (const [fields, points] of [
      [{ page_size: 'a4' }, A4.toReversed()],
      [{ page_size: 'A4', page_orientation: 'portrait' }, A4],
      [{ page_size: 'a4', page_orientation: 'landscape', rotate: '90' }, A4.toReversed()],
      [{ page_size: 'a3', rotate: '90' }, [841.89, 1190.55]],
      [{ page_size: 'a5', rotate: '90' }, [419.528, 595.276]],
      [{ page_size: 'letter', rotate: '90' }, [612, 792]],
      [{ page_size: 'legal', rotate: '90' }, [612, 1008]],
      [{ page_size: '25.4x254' }, [720, 72]],
      [{ page_size: '5080x5080' }, [14_400, 14_400]],
    ] as const) {
      const [[width = 0, height = 0] = []] = await pointsOf(wide, fields);
      expect(width, JSON.stringify(fields)).to.be.closeTo(points[0] as number, 0.01);
      expect(height, JSON.stringify(fields)).to.be.closeTo(points[1] as number, 0.01);
    }
  });

  for (const [what, file] of [
    ['a raster picture', () => plain(40, 20, '#ff0000').png().toBuffer()],
    [
      'an SVG',
      () =>
        Buffer.from(
          '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20"><rect width="40" height="20" fill="#f00"/></svg>',
        ),
    ],
  ] as const) {
    it(`have ${what} in the centre, as large as the margins permit`, async () => {
      const body = await made(await file(), { page_size: '127x127', page_margin: '25.4' }); // 360 and 72 points
      const drawn = await decode(await drawPdf(body));
      expect([drawn.width, drawn.height]).to.deep.equal([360, 360]);
      const [red, white] = [
        [255, 0, 0, 255],
        [255, 255, 255, 255],
      ];
      for (const [x, y, colour] of [
        [75, 180, red],
        [284, 180, red],
        [69, 180, white],
        [291, 180, white],
        [180, 129, red],
        [180, 230, red],
        [180, 123, white],
        [180, 237, white],
      ] as const)
        expect(pixelAt(drawn, x, y), `${x}, ${y}`).to.deep.equal(colour);
    });
  }

  it('keep an SVG of vectors on paper, and draw what is cut as pixels', async () => {
    const svg = await fixture('scene.svg');
    for (const [fields, images] of [
      [{ page_size: 'a4' }, []],
      [{ page_size: 'a4', width: '50', height: '50', fit: 'contain' }, []],
      [{ page_margin: '10', crop: '10,10,50,50' }, ['jpeg']],
    ] as const) {
      const facts = await pdfFacts(await made(svg, fields));
      expect(facts.images.length, JSON.stringify(fields)).to.equal(images.length);
    }
  });

  it('have margins around a picture of its own size', async () => {
    const body = await made(await plain(72, 36).png().toBuffer(), { page_margin: '12.7' });
    expect((await pdfFacts(body)).points).to.deep.equal([[144, 108]]);
  });

  it('each fit the page of a TIFF', async () => {
    const mixed = await edgeCase('mixed.tiff');
    const points = await pointsOf(mixed, { page_size: '72x36' });
    expect(points.map(([width = 0, height = 0]) => width > height)).to.deep.equal([true, true, true, false]);
  });

  it('are rejected with a margin that leaves no space, and with sizes and orientations that mean nothing', async () => {
    const file = await plain(4, 4).png().toBuffer();
    for (const [fields, field] of [
      [{ page_size: 'a5', page_margin: '74' }, 'page_margin'],
      [{ page_margin: '1001' }, 'page_margin'],
      [{ page_size: 'a9' }, 'page_size'],
      [{ page_size: '0x5' }, 'page_size'],
      [{ page_size: '10x5081' }, 'page_size'],
      [{ page_size: '1e3x5' }, 'page_size'],
      [{ page_orientation: 'portrait' }, 'page_orientation'],
      [{ page_size: 'a4', page_orientation: 'left' }, 'page_orientation'],
    ] as const) {
      const answer = await convert(service.base, file, { format: 'pdf', ...fields });
      expect(answer.status, JSON.stringify(fields)).to.equal(400);
      expect(jsonOf(answer).error.field, JSON.stringify(fields)).to.equal(field);
    }
  });

  it('can be as small as a millimetre', async () => {
    const [[width = 0, height = 0] = []] = await pointsOf(await plain(1, 1).png().toBuffer(), {
      page_size: '1x1',
    });
    expect([width, height].map((side) => Math.round(side * 100))).to.deep.equal([283, 283]);
  });

  it('show the same pixels with every size', async () => {
    const file = await fixture('window.png');
    const expected = onGrey(await toPixels(sharp(file)), 255);
    const drawn = await decode(await drawPdf(await made(file, { page_margin: '25.4', lossless: 'true' })));
    const { width, height } = expected;
    const inner = await toPixels(open(drawn).extract({ left: 72, top: 72, width, height }));
    expect(difference(inner, expected).max).to.be.at.most(1);
  });
});
