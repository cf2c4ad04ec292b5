import { expect } from 'chai';
import sharp from 'sharp';
import { convert, converted, edgeCase, type Fields, fixture } from '../helpers/client.ts';
import { decode, difference, drawPdf, type Pixels, pixelAt, sizeOf, toPixels } from '../helpers/pixels.ts';
import { useService } from '../helpers/service.ts';

/** @module Cuts a part out of images, and compares it with the same part of the whole result. */
describe('crop', () => {
  const service = useService();

  const ask = async (file: Buffer, fields: Fields): Promise<Buffer> =>
    (await converted(service.base, file, { format: 'png', ...fields })).body;

  /** Returns a part of a picture, by sharp. */
  async function extract(file: Buffer, [left, top, width, height]: readonly number[]): Promise<Pixels> {
    const area = { left, top, width, height } as { left: number; top: number; width: number; height: number };
    return toPixels(sharp(file).extract(area));
  }

  for (const name of [
    ...['jpg', 'png', 'gif', 'bmp', 'tiff', 'svg', 'avif', 'ico', 'webp'].map((type) => `scene.${type}`),
    'orientation-3.jpg',
    'orientation-6.jpg',
    'orientation-7.jpg',
    'p3.jpg',
    'pages.tiff',
  ]) {
    it(`keeps exactly the pixels of that part of the upright ${name}, in pixels and in percent`, async () => {
      const file = await fixture(name);
      const whole = await ask(file, {});
      const { width = 0, height = 0 } = await sharp(whole).metadata();
      const [x, y, w, h] = [3, 5, Math.floor(width / 2), Math.floor(height / 3)];
      const part = await decode(await ask(file, { crop: `${x},${y},${w},${h}` }));
      expect(difference(part, await extract(whole, [x, y, w, h])).max).to.equal(0);

      const [left, right] = [Math.round(width * 0.25), Math.round(width * 0.755)];
      const [top, bottom] = [Math.round(height * 0.1), height];
      const byShare = await decode(await ask(file, { crop: '25%,10%,50.5%,90%' }));
      const expected = await extract(whole, [left, top, right - left, bottom - top]);
      expect(sizeOf(byShare)).to.deep.equal(sizeOf(expected));
      expect(difference(byShare, expected).max).to.be.at.most(name.endsWith('.svg') ? 255 : 0);
    });
  }

  it('keeps the last pixel if a percentage rounds to the edge', async () => {
    const part = await decode(await ask(await fixture('scene.png'), { crop: '99.99%,99.99%,0.01%,0.01%' }));
    expect(sizeOf(part)).to.deep.equal([1, 1]);
  });

  it('applies before the fit, as extract and resize of sharp do', async () => {
    const file = await sharp(await fixture('scene.jpg'))
      .resize(400, 300, { fit: 'fill' })
      .jpeg({ quality: 100 })
      .toBuffer();
    for (const fit of ['inside', 'cover', 'contain', 'fill'] as const) {
      const ours = await decode(await ask(file, { crop: '40,30,200,150', width: '80', height: '40', fit }));
      const area = { left: 40, top: 30, width: 200, height: 150 };
      const background = { r: 0, g: 0, b: 0, alpha: 0 };
      const theirs = sharp(file).extract(area).resize({ width: 80, height: 40, fit, background });
      const expected = await toPixels(theirs);
      expect(sizeOf(ours), fit).to.deep.equal(sizeOf(expected));
      expect(difference(ours, expected).psnr, fit).to.be.above(34);
    }
  });

  it('cuts every frame of an animation', async () => {
    for (const name of ['moving.gif', 'moving.webp']) {
      const file = await fixture(name);
      const fields = { format: 'webp', lossless: 'true' };
      const whole = await ask(file, fields);
      const { pages = 1, delay, loop } = await sharp(whole, { animated: true }).metadata();
      const cut = await ask(file, { ...fields, crop: '4,6,20,10' });
      const facts = await sharp(cut, { animated: true }).metadata();
      expect([facts.pages, facts.delay, facts.loop], name).to.deep.equal([pages, delay, loop]);
      for (let page = 0; page < pages; page += 1) {
        const part = await toPixels(sharp(cut, { page }));
        const frame = await sharp(whole, { page }).png().toBuffer();
        expect(difference(part, await extract(frame, [4, 6, 20, 10])).max, `${name} ${page}`).to.equal(0);
      }
    }
  });

  it('cuts each page of a TIFF by its own size', async () => {
    const file = await fixture('pages.tiff');
    const whole = await ask(file, { format: 'pdf' });
    const cut = await ask(file, { format: 'pdf', crop: '0,0,50%,50%' });
    for (const page of [1, 2]) {
      const [before, after] = await Promise.all([whole, cut].map((pdf) => drawPdf(pdf, page).then(decode)));
      const half = [before?.width, before?.height].map((side = 0) => Math.round(side / 2));
      expect(sizeOf(after as Pixels), `page ${page}`).to.deep.equal(half);
    }
  });

  describe('of an SVG', () => {
    /** Four squares of 50 pixels. */
    const drawing = Buffer.from(
      '<svg xmlns="http://www.w3.org/2000/svg" width="100" height="100"><path fill="red" d="M0 0h50v50H0z"/>' +
        '<path fill="lime" d="M50 0h50v50H50z"/><path fill="blue" d="M0 50h50v50H0z"/><path fill="black" d="M50 50h50v50H50z"/></svg>',
    );
    const GREEN = [0, 255, 0, 255];

    it('renders only that part, at the size of the result', async () => {
      const part = await decode(await ask(drawing, { crop: '50%,0,50%,50%', width: '300' }));
      expect(sizeOf(part)).to.deep.equal([300, 300]);
      for (const at of [0, 150, 299]) expect(pixelAt(part, at, at)).to.deep.equal(GREEN);
    });

    it('measures a drawing that states no size', async () => {
      const file = await edgeCase('no-size.svg');
      const whole = await ask(file, {});
      const { width = 0, height = 0 } = await sharp(whole).metadata();
      const part = await decode(await ask(file, { crop: '0,0,50%,50%' }));
      expect(sizeOf(part)).to.deep.equal([Math.ceil(width / 2), Math.ceil(height / 2)]);
    });

    it('stays vector in a PDF, and the borders of contain show nothing that was cut off', async () => {
      const fields = { crop: '50,0,50,50', width: '120', height: '60' };
      const vector = await ask(drawing, { ...fields, format: 'pdf' });
      expect(vector.includes('/Subtype /Image')).to.equal(false);
      const page = await decode(await drawPdf(vector));
      expect(sizeOf(page)).to.deep.equal([60, 60]);
      for (const at of [1, 30, 58]) expect(pixelAt(page, at, at)).to.deep.equal(GREEN);

      const padded = await decode(await ask(drawing, { ...fields, format: 'pdf', fit: 'contain' }), 'pdf');
      expect(sizeOf(padded)).to.deep.equal([120, 60]);
      expect(pixelAt(padded, 15, 45)).to.deep.equal([255, 255, 255, 255]);
      expect(pixelAt(padded, 110, 45)).to.deep.equal([255, 255, 255, 255]);
      expect(pixelAt(padded, 60, 30)[1]).to.be.above(250);
    });
  });

  it('returns 400 with the upright size if it is not inside of the image', async () => {
    const file = await fixture('orientation-6.jpg');
    const { width = 0, height = 0 } = await sharp(await ask(file, {})).metadata();
    for (const crop of [`0,0,${width + 1},1`, `0,${height},1,1`, '50%,0,50.1%,100%']) {
      expect((await convert(service.base, file, { crop })).outcome, crop).to.equal(
        `400 The file is ${width} × ${height} pixels when upright, so the crop "${crop}" is not inside of it.`,
      );
    }
  });
});
