// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { expect } from 'chai';
import sharp from 'sharp';
import { frame } from '../../scripts/fixtures/scene.ts';
import { withChunk } from '../../scripts/fixtures/writers.ts';
import { convert, converted, edgeCase, type Fields, fixture } from '../helpers/client.ts';
import { entropyCoded, imageRows, imageSizes, jpegIn, pdfFacts } from '../helpers/pdf.ts';
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

  it('embeds a photo as JPEG of the requested quality', async () => {
    const photo = await sharp(await fixture('scene.jpg'))
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

  for (const [what, file, ...images] of [
    ['a table of colours', () => edgeCase('few-colours.png'), 'image', 'image'],
    ['an animation, of which the first frame is shown', () => fixture('moving.gif'), 'image'],
    ['black and white', () => edgeCase('white-is-zero-1.tiff'), 'ccitt'],
  ] as const) {
    it(`embeds ${what} losslessly`, async () => {
      const source = await file();
      const { facts, body } = await made(source);
      expect(facts.images).to.deep.equal(images);
      const expected = onGrey(await toPixels(sharp(source)), 255);
      expect(difference(await decode(body, 'pdf'), expected).max).to.be.at.most(1);
    });
  }

  const fewColours = async () =>
    plain(400, 200).composite([{ input: await plain(90, 90).negate().png().toBuffer() }]);

  it('embeds few colours without loss, whatever the type of the pixels', async () => {
    const image = await fewColours();
    const expected = await toPixels(image.clone());
    for (const [type, source] of [
      ['png', image.clone().png()],
      ['tiff', image.clone().tiff({ compression: 'lzw' })],
      ['webp', image.clone().webp({ lossless: true })],
      ['deep png', image.clone().toColourspace('rgb16').png()],
    ] as const) {
      const { facts, body } = await made(await source.toBuffer());
      expect(facts.images, type).to.deep.equal(['image']);
      expect(difference(await decode(body, 'pdf'), expected).max, type).to.be.at.most(
        type === 'deep png' ? 1 : 0,
      );
    }
  });

  it('embeds black and white without loss in one bit, also from greys and colours of eight', async () => {
    const shape = await plain(90, 90, 'black').png().toBuffer();
    const image = plain(400, 200, 'white').composite([{ input: shape, left: 31, top: 17 }]);
    for (const source of [
      image.clone().png(),
      image.clone().toColourspace('b-w').png(),
      image.clone().tiff({ compression: 'lzw' }),
    ]) {
      const { facts, body } = await made(await source.toBuffer());
      expect(facts.images).to.deep.equal(['ccitt']);
      expect(difference(await decode(body, 'pdf'), await toPixels(image.clone())).max).to.equal(0);
    }
  });

  it('embeds a photo as JPEG, also one of greys, or with few colours in most of the picture', async () => {
    const scene = sharp(await fixture('scene.png'));
    const detail = await scene.clone().resize(30, 20).png().toBuffer();
    const mixed = plain(4000, 3000).composite([{ input: detail, left: 100, top: 100 }]);
    for (const [what, source] of [
      ['colours', scene.clone().png()],
      ['greys', scene.clone().toColourspace('b-w').png({ compressionLevel: 0 })],
      ['a detail', mixed.png()],
    ] as const)
      expect((await made(await source.toBuffer())).facts.images, what).to.deep.equal(['jpeg']);
  });

  it('shows transparency by a soft mask, or the background on request', async () => {
    for (const name of ['window.png', 'window.webp', 'window.gif']) {
      const source = await fixture(name);
      const { body, facts, notes } = await made(source, { quality: '95' });
      expect(facts.images.length, name).to.equal(2);
      expect(
        (await imageRows(body)).map(([, , type]) => type),
        name,
      ).to.deep.equal(['image', 'smask']);
      expect(notes, name).to.equal('');
      const expected = onGrey(await toPixels(sharp(source)), 255);
      expect(difference(await decode(body, 'pdf'), expected).psnr, name).to.be.at.least(35);

      const flat = await made(source, { quality: '95', background: '#808080' });
      expect(
        (await imageRows(flat.body)).map(([, , type]) => type),
        name,
      ).to.deep.equal(['image']);
      expect(flat.notes, name).to.equal('alpha-flattened');
      const onGreyPaper = onGrey(await toPixels(sharp(source)), 128);
      expect(difference(await decode(flat.body, 'pdf'), onGreyPaper).psnr, name).to.be.at.least(35);
    }
  });

  it('has a soft mask of greys with kept metadata, whatever background a PNG states', async () => {
    const background = Buffer.from([0, 0, 0, 255, 0, 0]); // green
    const source = withChunk(await fixture('window.png'), 'bKGD', background);
    const { body } = await made(source, { metadata: 'all', quality: '95' });
    const expected = onGrey(await toPixels(sharp(source)), 255);
    expect(difference(await decode(body, 'pdf'), expected).psnr).to.be.at.least(35);
  });

  it('has no soft mask for an opaque picture with alpha', async () => {
    const opaque = await sharp(await fixture('scene.png'))
      .ensureAlpha()
      .png()
      .toBuffer();
    expect((await made(opaque)).facts.images).to.deep.equal(['jpeg']);
  });

  describe('with `lossless`', () => {
    const exact = (file: Buffer, fields: Fields = {}) => made(file, { lossless: 'true', ...fields });

    it('contains a JPEG of any orientation as it is, and shows it upright', async () => {
      for (const orientation of [1, 2, 3, 4, 5, 6, 7, 8]) {
        const source = await fixture(`orientation-${orientation}.jpg`);
        const { body } = await exact(source);
        expect(entropyCoded(await jpegIn(body)), `${orientation}`).to.deep.equal(entropyCoded(source));
        const expected = await toPixels(sharp(source).autoOrient());
        expect(difference(await decode(body, 'pdf'), expected).max, `${orientation}`).to.be.at.most(2);
        const turned = await exact(source, { rotate: '90', flip: 'horizontal' });
        expect(entropyCoded(await jpegIn(turned.body))).to.deep.equal(entropyCoded(source));
        const asTurned = await toPixels(
          sharp(await sharp(source).autoOrient().rotate(90).png().toBuffer()).flop(),
        );
        expect(difference(await decode(turned.body, 'pdf'), asTurned).max, `${orientation}`).to.be.at.most(2);
      }
    });

    it('contains a progressive JPEG, one of greys, of CMYK and in Display P3, with its colours', async () => {
      const cmyk = await sharp(await fixture('scene.png'))
        .toColourspace('cmyk')
        .jpeg({ quality: 95 })
        .toBuffer();
      for (const [what, source] of [
        [
          'progressive',
          await sharp(await fixture('scene.png'))
            .jpeg({ progressive: true })
            .toBuffer(),
        ],
        ['grey', await fixture('grey.jpg')],
        ['p3', await fixture('p3.jpg')],
        ['cmyk', cmyk],
      ] as const) {
        const { body, notes } = await exact(source);
        expect(entropyCoded(await jpegIn(body)), what).to.deep.equal(entropyCoded(source));
        expect(notes, what).to.equal('');
        const [shown, expected] = [await decode(body, 'pdf'), await toPixels(sharp(source))];
        // Neither poppler nor sharp is exact for a profile of inks.
        expect(difference(shown, expected).psnr, what).to.be.at.least(what === 'cmyk' ? 20 : 35);
      }
      expect((await exact(await fixture('p3.jpg'))).body.includes('/ICCBased'), 'a profile').to.equal(true);
    });

    it('contains no metadata, thumbnail or data after the pixels of a JPEG, unless all is kept', async () => {
      const secret = Buffer.from('secret appendix');
      const source = Buffer.concat([await fixture('private.jpg'), secret]);
      const jpeg = await jpegIn((await exact(source)).body);
      for (const text of ['Exif', 'http://ns.adobe.com', '8BIM', 'ICC_PROFILE', secret])
        expect(jpeg.includes(text), String(text)).to.equal(false);
      const kept = await exact(source, { metadata: 'all' });
      expect((await jpegIn(kept.body)).includes('Exif')).to.equal(true);
      expect(kept.body.includes(secret)).to.equal(false);
      expect(kept.notes).to.equal('');
    });

    it('has the note of a JPEG that is cut off, and rejects one without pixels', async () => {
      const source = await fixture('scene.jpg');
      const fields = { format: 'pdf', lossless: 'true' };
      const cut = await converted(service.base, source.subarray(0, source.length / 2), fields);
      expect(cut.headers.get('x-conversion-notes')).to.equal('truncated-input');
      const { status } = await convert(service.base, source.subarray(0, 300), {
        format: 'pdf',
        lossless: 'true',
      });
      expect(status).to.equal(400);
    });

    it('has exactly the pixels of other files, and of an edited JPEG', async () => {
      const edited = { width: '40', greyscale: 'true' };
      for (const [name, fields] of [
        ['scene.png', {}],
        ['scene.webp', {}],
        ['scene.tiff', {}],
        ['scene.bmp', {}],
        ['scene.jpg', edited],
        ['p3.png', {}],
      ] as const) {
        const source = await fixture(name);
        const png = await converted(service.base, source, { format: 'png', ...fields });
        const { facts, body } = await exact(source, fields);
        expect(facts.images, name).to.deep.equal(['image']);
        const expected = onGrey(await decode(png.body), 255);
        expect(difference(await decode(body, 'pdf'), expected).max, name).to.be.at.most(1);
      }
    });

    it('keeps 16 bits per channel', async () => {
      const { body } = await exact(await edgeCase('deep.png'));
      expect((await imageRows(body)).map((row) => row[7])).to.deep.equal(['16']);
    });
  });

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
