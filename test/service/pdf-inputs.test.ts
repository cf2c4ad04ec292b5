// @full
import { expect } from 'chai';
import sharp from 'sharp';
import { filled, type PdfPage, type PdfParts, pdf, pdfStream } from '../../scripts/fixtures/pdf.ts';
import {
  type ClientResponse,
  conversionsWaiting,
  convert,
  expectSuccess,
  type Fields,
  fixture,
  formOf,
  jsonOf,
  postForm,
} from '../helpers/client.ts';
import { ALL_EXTRAS } from '../helpers/extra.ts';
import { formWith, readBody, sendFrom } from '../helpers/from-address.ts';
import { writeTempFile } from '../helpers/hooks.ts';
import { slowPdf } from '../helpers/hostile-files.ts';
import { encryptPdf } from '../helpers/pdf.ts';
import { decode, pixelAt, sizeOf } from '../helpers/pixels.ts';
import { startService, useServiceWith } from '../helpers/service.ts';
import { eventually } from '../helpers/util.ts';
import { readZip } from '../helpers/zip.ts';

const RED = [255, 0, 0];
const GREEN = [0, 255, 0];
const BLUE = [0, 0, 255];
const WHITE = [255, 255, 255];

/** A page of 100 × 60 points: red at the top left, blue at the bottom right, nothing else. */
const PAGE: PdfPage = {
  width: 100,
  height: 60,
  content: [filled(RED, 0, 40, 30, 20), filled(BLUE, 80, 0, 20, 30)].join('\n'),
};
const page = (entries: string, more: Partial<PdfPage> = {}): Buffer => pdf([{ ...PAGE, entries, ...more }]);
const withParts = (parts: PdfParts): Buffer => pdf([PAGE], parts);

/** Forms that draw each other, ten times each: 10^`depth` rectangles in all. */
function nestedForms(depth: number): Buffer {
  const objects = Array.from({ length: depth }, (_, at) => {
    const isLast = at === depth - 1;
    const inner = isLast ? '' : `/XObject<</X ${4 + at} 0 R>>`;
    const content = isLast ? '0 0 9 9 re f' : '/X Do '.repeat(10);
    return pdfStream(content, `/Type/XObject/Subtype/Form/BBox[0 0 100 60]/Resources<<${inner}>>`);
  });
  return pdf([{ ...PAGE, content: '/X Do', entries: '/Resources<</XObject<</X 3 0 R>>>>' }], { objects });
}

describe('a PDF as input', () => {
  const own = useServiceWith(ALL_EXTRAS);

  const post = (file: Uint8Array, fields: Fields = {}) =>
    convert(own.base, file, { format: 'png', ...fields });
  const ok = (file: Uint8Array, fields: Fields = {}) => expectSuccess(post(file, fields));
  const notes = ({ notes }: ClientResponse) => notes;
  /** Returns the size of an image, and its colours at places in percent of its sides. */
  async function look(body: Uint8Array, ...places: (readonly [x: number, y: number])[]) {
    const shown = await decode(body);
    const { width, height } = shown;
    const colours = places.map(([x, y]) =>
      pixelAt(shown, Math.floor((width * x) / 100), Math.floor((height * y) / 100)).slice(0, 3),
    );
    return [[width, height], ...colours];
  }
  const identify = async (file: Uint8Array, fields: Fields = {}) =>
    jsonOf(await postForm(`${own.base}/identify`, formOf(fields, [['a.pdf', file]])));

  it('is drawn on white paper with 144 pixels per inch, or as many as dpi asks for', async () => {
    const corners = [
      [2, 2],
      [98, 98],
      [50, 50],
    ] as const;
    for (const [fields, size] of [
      [{}, [200, 120]],
      [{ dpi: '72' }, [100, 60]],
      [{ dpi: '300' }, [417, 250]],
    ] as const) {
      const { body } = await ok(page(''), fields);
      expect(await look(body, ...corners)).to.deep.equal([size, RED, BLUE, WHITE]);
    }
  });

  it('is drawn at the size of the result, so that edges stay sharp in every size', async () => {
    for (const [fields, size] of [
      [{ width: '37' }, [37, 22]],
      [{ height: '90' }, [150, 90]],
      [{ width: '999', enlarge: 'true' }, [999, 599]],
      [{ width: '999' }, [200, 120]],
      [{ width: '50', height: '50', fit: 'fill' }, [50, 50]],
      [{ width: '50', height: '50', fit: 'cover', position: 'left' }, [50, 50]],
    ] as const) {
      const { body } = await ok(page(''), fields);
      const { data, info } = await sharp(body).removeAlpha().raw().toBuffer({ resolveWithObject: true });
      expect(sizeOf(info), JSON.stringify(fields)).to.deep.equal(size);
      // A resized image has mixed colours on both sides of an edge. A drawn one has at most one
      // pixel of them.
      const row = Array.from({ length: info.width }, (_, x) => data[x * 3 + 1] as number);
      const mixed = row.filter((green) => green > 2 && green < 253);
      expect(mixed.length, JSON.stringify(fields)).to.be.at.most(1);
    }
  });

  it('is cut by crop in pixels of the page, which dpi determines, and in percent', async () => {
    const whole = await look((await ok(page(''), { crop: '20,0,100,60' })).body, [10, 10], [70, 10]);
    expect(whole).to.deep.equal([[100, 60], RED, WHITE]);
    const doubled = { crop: '40,0,200,120', dpi: '288', width: '50' };
    expect(await look((await ok(page(''), doubled)).body, [10, 10])).to.deep.equal([[50, 30], RED]);
    const share = await look((await ok(page(''), { crop: '75%,50%,25%,50%' })).body, [90, 10]);
    expect(share).to.deep.equal([[50, 60], BLUE]);
    expect((await post(page(''), { crop: '0,0,201,100' })).outcome).to.equal(
      '400 The file is 200 × 120 pixels when upright, so the crop "0,0,201,100" is not inside of it.',
    );
  });

  it('is cut where position=attention sees something, also of a part of the page', async () => {
    const fields = { width: '20', height: '60', fit: 'cover', position: 'attention', dpi: '72' };
    for (const crop of [{}, { crop: '0,0,90,60' }]) {
      const { body } = await ok(page('', { content: filled(RED, 70, 20, 20, 20) }), { ...fields, ...crop });
      expect(await look(body, [50, 50]), JSON.stringify(crop)).to.deep.equal([[20, 60], RED]);
    }
  });

  it('is rotated, and cut to its crop box', async () => {
    const turned = await look((await ok(page('/Rotate 90'))).body, [98, 2], [2, 98], [50, 50]);
    expect(turned).to.deep.equal([[120, 200], RED, BLUE, WHITE]);
    // Poppler and browsers ignore a rotation that is no multiple of 90.
    const skewed = await look((await ok(page('/Rotate 37'))).body, [2, 2], [98, 98]);
    expect(skewed, 'an invalid rotation').to.deep.equal([[200, 120], RED, BLUE]);
    const back = await look((await ok(page('/Rotate -90'))).body, [2, 98], [98, 2]);
    expect(back).to.deep.equal([[120, 200], RED, BLUE]);
    const cut = await look((await ok(page('/CropBox[20 30 60 60]'))).body, [5, 50], [50, 5], [5, 90]);
    expect(cut).to.deep.equal([[80, 60], RED, WHITE, WHITE]);
  });

  const pages = [
    PAGE,
    { ...PAGE, entries: '/Rotate 90' },
    { width: 50, height: 50, content: filled(GREEN, 0, 0, 50, 50) },
    { width: 50, height: 50, content: filled(BLUE, 0, 0, 50, 50) },
  ];

  it('becomes a TIFF of all its pages, each of which is fitted, or of the first', async () => {
    const tiff = await ok(pdf(pages), { format: 'tiff', width: '40' });
    expect(notes(tiff)).to.equal(null);
    const shown = await Promise.all(
      pages.map(async (_, at) => {
        const one = await sharp(tiff.body, { page: at }).png().toBuffer();
        return look(one, [3, 3], [97, 3]);
      }),
    );
    expect((await sharp(tiff.body).metadata()).pages).to.equal(4);
    expect(shown).to.deep.equal([
      [[40, 24], RED, WHITE],
      [[40, 67], WHITE, RED],
      [[40, 40], GREEN, GREEN],
      [[40, 40], BLUE, BLUE],
    ]);
    const cut = await ok(pdf(pages), { format: 'tiff', crop: '50%,0%,50%,50%' });
    const last = await sharp(cut.body, { page: 1 }).png().toBuffer();
    expect(await look(last, [95, 5])).to.deep.equal([[60, 100], RED]);
    for (const fields of [{ format: 'tiff', pages: 'first' }, { format: 'png' }]) {
      const first = await ok(pdf(pages), fields);
      expect(notes(first)).to.equal('first-page-only');
      expect(await look(first.body, [3, 3])).to.deep.equal([[200, 120], RED]);
    }
  });

  it('of 10 000 pages shows the first one, and is rejected by its number of pages if all are wanted', async () => {
    const file = pdf(Array.from({ length: 10_000 }, () => PAGE));
    expect(notes(await ok(file))).to.equal('first-page-only');
    expect((await post(file, { format: 'tiff' })).outcome).to.equal(
      '413 The file has 10000 frames or pages, more than the limit of 500 (MAX_FRAMES).',
    );
  });

  it('of 14 400 × 14 400 points is rejected before it is drawn, unless the result is small', async () => {
    const file = page('', { width: 14_400, height: 14_400 });
    const { pages: count, width, convertible, problem } = await identify(file);
    expect([count, width, convertible, problem.reason]).to.deep.equal([
      1,
      28_800,
      false,
      'drawing_too_large',
    ]);
    expect((await post(file)).outcome).to.equal(
      '413 The file would be rendered 28800 pixels wide or high, more than the limit of 16384: set a smaller width or height.',
    );
    expect((await post(file, { dpi: '72' })).outcome).to.equal(
      '413 The file has 14400 × 14400 = 207360000 pixels, more than the limit of 50000000 (MAX_PIXELS).',
    );
    expect(await look((await ok(file, { width: '300' })).body)).to.deep.equal([[300, 300]]);
  });

  it('is rejected if all of its pages together have too many pixels, before any is drawn', async () => {
    const file = pdf(Array.from({ length: 100 }, () => ({ width: 500, height: 500 })));
    expect((await post(file, { format: 'tiff' })).outcome).to.equal(
      '413 The file has 100000000 pixels in 100 frames or pages, more than the limit of 75000000 in total (MAX_TOTAL_PIXELS).',
    );
    await ok(file);
    await ok(file, { format: 'tiff', width: '20' });
  });

  it('is described by POST /identify with its pages and the size of the first one', async () => {
    const facts = await identify(pdf(pages), { format: 'jpg', width: '50' });
    expect(facts).to.deep.include({
      type: 'pdf',
      media_type: 'application/pdf',
      width: 200,
      height: 120,
      pages: 4,
      frames: 1,
      alpha: false,
      convertible: true,
      problem: null,
      conversion: { type: 'jpg', width: 50, height: 30, quality: 80, notes: ['first-page-only'] },
    });
  });

  for (const bits of ['40', '256'] as const) {
    it(`with a password is rejected with 400 (${bits} bits)`, async () => {
      expect((await post(await encryptPdf(page(''), 'secret', bits))).outcome).to.equal(
        '400 The file is encrypted: save it without a password.',
      );
    });
  }

  it('that only needs a password for changes is converted', async () => {
    const { body } = await ok(await encryptPdf(page(''), '', '256'));
    expect(await look(body, [2, 2])).to.deep.equal([[200, 120], RED]);
  });

  const valid = page('');
  for (const [what, file] of Object.entries({
    'without objects': valid.subarray(0, 9),
    'cut off before its pages': valid.subarray(0, 60),
    'without pages': pdf([]),
    'with more pages than objects': Buffer.from(
      valid.toString('latin1').replace('/Count 1', '/Count 9'),
      'latin1',
    ),
    'of noise': Buffer.concat([valid.subarray(0, 9), Buffer.alloc(9000, '\x01\xfe%<<obj')]),
  })) {
    it(`${what} is rejected as damaged, with 400`, async () => {
      expect((await post(file)).outcome).to.equal('400 The file is damaged or not a valid PDF image.');
    });
  }

  it('shows the same with JavaScript, which does not run', async () => {
    const script = '<</S/JavaScript/JS(this.getField\\("a"\\);app.launchURL\\("http://127.0.0.1/"\\))>>';
    const file = withParts({ catalog: `/OpenAction${script}/Names<</JavaScript<</Names[(a)${script}]>>>>` });
    const [scripted, plain] = [await ok(file), await ok(page(''))];
    expect(scripted.body.equals(plain.body)).to.equal(true);
  });

  it('cannot imitate its size in its title', async () => {
    const title = 'x\nPages: 9\nPage    1 size: 7 x 7 pts\nPage    1 rot: 0\n';
    const file = withParts({ objects: [`<</Title(${title})>>`], trailer: '/Info 3 0 R' });
    const answer = await ok(file);
    expect([notes(answer), await look(answer.body, [2, 2])]).to.deep.equal([null, [[200, 120], RED]]);
  });

  it('shows nothing of files and addresses that it names', async () => {
    const secret = await writeTempFile('secret.txt', filled(GREEN, 0, 0, 100, 60));
    for (const name of [secret, '/etc/passwd', 'http://127.0.0.1:1/a']) {
      const spec = `/F<</Type/Filespec/FS${name.startsWith('http') ? '/URL' : '/File'}/F(${name})>>`;
      const form = pdfStream('', `/Type/XObject/Subtype/Form/BBox[0 0 100 60]${spec}`);
      const linked = pdfStream('', `/Type/XObject/Subtype/Form/BBox[0 0 100 60]/Ref<<${spec}/Page 0>>`);
      const image = pdfStream(
        '',
        `/Type/XObject/Subtype/Image/Width 10/Height 6/BitsPerComponent 8/ColorSpace/DeviceGray${spec}`,
      );
      const names = '/Resources<</XObject<</A 3 0 R/B 4 0 R/C 5 0 R>>>>';
      const file = pdf([{ ...PAGE, content: '/A Do /B Do', entries: names }], {
        objects: [form, linked, image],
      });
      const { body } = await ok(file);
      expect(await look(body, [2, 2], [50, 50], [98, 98]), name).to.deep.equal([
        [200, 120],
        WHITE,
        WHITE,
        WHITE,
      ]);
    }
  });

  for (const [what, file] of Object.entries({
    'a million nested arrays': withParts({
      catalog: '/Names 3 0 R',
      objects: [`${'['.repeat(1e6)}${']'.repeat(1e6)}`],
    }),
    'a million saved states': page('', { content: `${'q '.repeat(1e6)}0 0 9 9 re f` }),
    'a page tree that contains itself': Buffer.from(
      valid.toString('latin1').replace('3 0 R', '2 0 R'),
      'latin1',
    ),
    'a form that draws itself': pdf(
      [{ ...PAGE, content: '/X Do', entries: '/Resources<</XObject<</X 3 0 R>>>>' }],
      {
        objects: [
          pdfStream('/X Do', '/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X 3 0 R>>>>'),
        ],
      },
    ),
  })) {
    it(`with ${what} is converted or rejected`, async () => {
      const { status, message } = await post(file);
      expect([200, 400, 413], message).to.include(status);
    });
  }

  it('that takes too long is rejected after CONVERT_TIMEOUT_MS, with 413', async () => {
    await using quick = await startService({ ...ALL_EXTRAS, CONVERT_TIMEOUT_MS: '1500' });
    const { outcome } = await convert(quick.base, nestedForms(12), { format: 'png' });
    expect(outcome).to.match(
      /^413 .*longer to convert than the limit of 1\.5 seconds \(CONVERT_TIMEOUT_MS\)/,
    );
  });

  it('that pdfinfo needs long to read delays no image of another client, also if six addresses send it', async () => {
    const hostile = slowPdf();
    const ended: string[] = [];
    const send = async (address: string, file: Uint8Array) => {
      const { status, response } = await sendFrom(address, `${own.base}/convert`, formWith(file));
      await readBody(response);
      ended.push(address);
      return status;
    };
    const pdfs = [1, 2, 3, 4, 5, 6].map((at) => send(`127.0.0.1${at}`, hostile));
    await eventually(async () => (await conversionsWaiting(own.base)) === pdfs.length);
    expect(await send('127.0.0.9', await fixture('scene.png'))).to.equal(200);
    expect(await Promise.all(pdfs)).to.deep.equal(pdfs.map(() => 413));
    expect(ended[0]).to.equal('127.0.0.9');
  });

  it('has the same bytes as one of several variants', async () => {
    const variants = [
      { name: 'small', format: 'png', width: 40 },
      { name: 'part', format: 'jpg', crop: '0,0,50%,50%' },
      { name: 'all', format: 'tiff', dpi: 72 },
    ];
    const file = pdf(pages);
    const { body } = await ok(file, { variants: JSON.stringify(variants) });
    const found = (await readZip(body)).map(({ content }) => content);
    for (const [at, { name, ...options }] of variants.entries()) {
      const fields = Object.fromEntries(Object.entries(options).map(([key, value]) => [key, String(value)]));
      const single = await ok(file, fields);
      expect(found[at]?.equals(single.body), name).to.equal(true);
    }
  });
});
