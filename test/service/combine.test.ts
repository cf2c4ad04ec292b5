// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import sharp from 'sharp';
import { filled, pdf } from '../../scripts/fixtures/pdf.ts';
import { makeZip } from '../../src/cli/doctor/attack-files.ts';
import {
  type ClientResponse,
  conversionsWaiting,
  convert,
  converted,
  expectSuccess,
  type Fields,
  type FormFile,
  fixture,
  formOf,
  jsonOf,
  postImage,
  sendBatch,
  sendForm,
} from '../helpers/client.ts';
import { ALL_EXTRAS } from '../helpers/extra.ts';
import { fakeMagick } from '../helpers/fake-magick.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { pdfFacts } from '../helpers/pdf.ts';
import { decodeByPillow } from '../helpers/pillow.ts';
import { decode, difference, drawPdf, type Pixels, pixelAt, plain, toPixels } from '../helpers/pixels.ts';
import { pathWithout } from '../helpers/process.ts';
import { startService, useOwnServices, useServiceWith } from '../helpers/service.ts';
import { eventually, isRunning, writeScript } from '../helpers/util.ts';

const COLOURS = ['red', 'lime', 'blue', 'yellow', 'teal'];
/** PNGs of one colour each, and of different sizes, whose names are those of the colours. */
const coloured = await Promise.all(
  COLOURS.map(
    async (colour, at): Promise<FormFile> => [
      `${colour}.png`,
      await plain(40 + 10 * at, 30, colour)
        .png()
        .toBuffer(),
    ],
  ),
);
/** An SVG with text, which stays text in a PDF. */
const DRAWING = Buffer.from(
  '<svg xmlns="http://www.w3.org/2000/svg" width="90" height="60"><rect width="90" height="60" fill="#08f"/><text x="9" y="40">Text</text></svg>',
);
const colourOf = async (name: string) =>
  pixelAt(await decode(await plain(1, 1, name).png().toBuffer()), 0, 0);

/** Cuts stacked frames of equal height. */
function framesOf({ width, height, data }: Pixels, count: number): Pixels[] {
  const bytes = data.length / count;
  return Array.from({ length: count }, (_, at) => ({
    width,
    height: height / count,
    data: data.subarray(at * bytes, (at + 1) * bytes),
  }));
}

/** Decodes the pages of a TIFF, whose sizes can differ. */
async function tiffPages(file: Buffer): Promise<Pixels[]> {
  const { pages = 1 } = await sharp(file).metadata();
  return Promise.all(Array.from({ length: pages }, (_, page) => toPixels(sharp(file, { page }))));
}

describe('combine', () => {
  const own = useServiceWith(ALL_EXTRAS);
  const combine = (files: readonly FormFile[], fields: Fields = {}) =>
    sendBatch(own.base, files, { combine: 'true', ...fields });
  const combined = (files: readonly FormFile[], fields: Fields = {}) => expectSuccess(combine(files, fields));
  const mixed = async (): Promise<FormFile[]> => [
    ['photo.jpg', await fixture('orientation-6.jpg')],
    ['logo.svg', DRAWING],
    ['pages.tiff', await fixture('pages.tiff')],
    ['moving.gif', await fixture('moving.gif')],
    ['p3.png', await fixture('p3.png')],
  ];

  it('makes one PDF of a photo, a drawing, three pages and an animation, with the pages of single PDFs', async () => {
    const files = await mixed();
    const { body, headers } = await combined(files, { format: 'pdf' });
    const { pages, points, fonts } = await pdfFacts(body);
    expect([pages, headers.get('content-type')]).to.deep.equal([7, 'application/pdf']);
    expect(
      fonts.map(({ embedded }) => embedded),
      'fonts of the drawing',
    ).to.include(true);
    let page = 0;
    for (const [name, bytes] of files) {
      const single = (await converted(own.base, bytes, { format: 'pdf' }, name)).body;
      const facts = await pdfFacts(single);
      for (let at = 1; at <= facts.pages; at += 1) {
        page += 1;
        expect(points[page - 1], name).to.deep.equal(facts.points[at - 1]);
        const drawn = await decode(await drawPdf(body, page));
        expect(difference(drawn, await decode(await drawPdf(single, at))).max, `${name} ${at}`).to.equal(0);
      }
    }
    expect(page).to.equal(7);
  });

  it('draws the pages of a PDF, which keep their size, and nothing of its file', async () => {
    const square = (at: number) => filled([255, 0, 0], at, 10, 20, 20);
    const report = pdf(
      [10, 60].map((at) => ({ width: 100, height: 60, content: square(at), entries: '/Marker(MARKER)' })),
    );
    const files: FormFile[] = [coloured[2] as FormFile, ['report.pdf', report]];
    const { body } = await combined(files, { format: 'pdf', dpi: '300' });
    const { points } = await pdfFacts(body);
    expect(
      points.slice(1).map(([width = 0, height = 0]) => [Math.round(width), Math.round(height)]),
    ).to.deep.equal([
      [100, 60],
      [100, 60],
    ]);
    expect(body.includes('MARKER')).to.equal(false);
    for (const [at, x] of [20, 70].entries()) {
      const drawn = await decode(await drawPdf(body, at + 2));
      expect(pixelAt(drawn, x, 40)[1], `page ${at + 2}`).to.be.below(20);
      expect(pixelAt(drawn, 90 - x, 40)[1], `page ${at + 2}`).to.be.above(235);
    }
    const numbered = await combined(files, { format: 'pdf', pages: '2', on_error: 'skip' });
    expect(numbered.headers.get('x-skipped-files')).to.equal('0'); // a picture has no second page
  });

  it('makes one TIFF of all pages of all files, with the pixels of single TIFFs', async () => {
    const files = await mixed();
    const { body, headers } = await combined(files, { format: 'tiff' });
    expect(headers.get('content-type')).to.equal('image/tiff');
    const pages = await tiffPages(body);
    const single = await Promise.all(
      files.map(async ([name, bytes]) =>
        tiffPages((await converted(own.base, bytes, { format: 'tiff', frames: 'first' }, name)).body),
      ),
    );
    expect(pages).to.have.length(7);
    for (const [at, page] of single.flat().entries())
      expect(difference(pages[at] as Pixels, page).max, `${at}`).to.equal(0);
  });

  it('keeps the metadata and the profiles of the pages of a TIFF', async () => {
    const fields = { format: 'tiff', metadata: 'all' };
    const files: FormFile[] = [
      ['private.jpg', await fixture('private.jpg')],
      ['p3.jpg', await fixture('p3.jpg')],
    ];
    const { body } = await combined(files, fields);
    for (const [page, [, bytes]] of files.entries()) {
      const single = await sharp((await converted(own.base, bytes, fields)).body).metadata();
      const { exif, icc, xmp } = await sharp(body, { page }).metadata();
      expect([icc, xmp].map((block) => block?.toString('hex'))).to.deep.equal(
        [single.icc, single.xmp].map((block) => block?.toString('hex')),
      );
      expect(exif?.length).to.equal(single.exif?.length);
    }
  });

  for (const format of ['gif', 'webp'])
    it(`makes one ${format} of the size of the first picture, with the given delay and repetitions`, async () => {
      const { body, headers } = await combined(coloured, { format, delay: '120', loop: '3' });
      const { pages, delay, loop, width, pageHeight } = await sharp(body, { animated: true }).metadata();
      expect({ pages, delay, width, pageHeight }).to.deep.equal({
        pages: 5,
        delay: [120, 120, 120, 120, 120],
        width: 40,
        pageHeight: 30,
      });
      expect(loop).to.equal(3);
      expect(headers.get('x-image-width')).to.equal('40');
      for (const decoded of [await decode(body), await decodeByPillow(body)]) {
        const frames = framesOf(decoded, 5);
        for (const [at, name] of COLOURS.entries()) {
          const [red, green, blue, alpha] = pixelAt(frames[at] as Pixels, 20, 15);
          const expected = await colourOf(name);
          for (const [channel, value] of [red, green, blue, alpha].entries())
            expect(Math.abs((value ?? 0) - (expected[channel] ?? 0)), `${name} ${channel}`).to.be.at.most(3);
          // Wider pictures are fitted into the first, between transparent borders.
          expect(pixelAt(frames[at] as Pixels, 20, 1)[3], name).to.equal(at === 0 ? 255 : 0);
        }
      }
    });

  it('shows opaque frames of 256 colours between transparent ones in a gif', async () => {
    const side = 64;
    // 256 colours in blocks of 4 × 4 pixels.
    const many = Buffer.alloc(side * side * 3);
    for (let at = 0; at < side * side; at += 1) {
      const [column, row] = [(at % side) >> 2, Math.floor(at / side) >> 2];
      many.set([16 * column, 16 * row, 8 * (column ^ row)], 3 * at);
    }
    const opaque = await sharp(many, { raw: { width: side, height: side, channels: 3 } })
      .png()
      .toBuffer();
    const clear = await plain(side / 2, side, 'red')
      .png()
      .toBuffer(); // has transparent borders as a frame
    for (const order of [
      [opaque, clear, opaque, clear],
      [clear, opaque, clear, opaque],
    ]) {
      const files = order.map((bytes, at): FormFile => [`${at}.png`, bytes]);
      const { body } = await combined(files, { format: 'gif', width: `${side}`, height: `${side}` });
      for (const [decoder, decoded] of [
        ['sharp', await decode(body)],
        ['Pillow', await decodeByPillow(body)],
      ] as const)
        for (const [at, frame] of framesOf(decoded, 4).entries()) {
          const isClear = order[at] === clear;
          expect(pixelAt(frame, 2, 32)[3], `${decoder} ${at}`).to.equal(isClear ? 0 : 255);
          expect(pixelAt(frame, 32, 32)[3], `${decoder} ${at}`).to.equal(255);
          if (!isClear)
            expect(difference(frame, await toPixels(sharp(opaque))).max, `${decoder} ${at}`).to.be.at.most(8);
        }
    }
  });

  it('fits frames as width, height, fit and background say, and plays them forever by default', async () => {
    const fields = { format: 'webp', width: '60', height: '60', background: 'black', lossless: 'yes' };
    const { body } = await combined(coloured.slice(0, 2), fields);
    const { delay, loop, width, pageHeight } = await sharp(body, { animated: true }).metadata();
    expect({ delay, loop, width, pageHeight }).to.deep.equal({
      delay: [500, 500],
      loop: 0,
      width: 60,
      pageHeight: 60,
    });
    const [first] = framesOf(await decode(body), 2);
    expect(pixelAt(first as Pixels, 30, 5)).to.deep.equal([0, 0, 0, 255]);
    expect(pixelAt(first as Pixels, 30, 30)).to.deep.equal([255, 0, 0, 255]);
    const cover = await combined(coloured.slice(0, 2), { ...fields, fit: 'cover', enlarge: 'yes' });
    expect(pixelAt(framesOf(await decode(cover.body), 2)[1] as Pixels, 30, 2)).to.deep.equal([
      0, 255, 0, 255,
    ]);
  });

  it('takes the first frame of an animation, and says so for its position', async () => {
    const files: FormFile[] = [
      ['a.gif', await fixture('scene.gif')],
      ['moving.gif', await fixture('moving.gif')],
    ];
    const { body, notes } = await combined(files, { format: 'gif' });
    expect((await sharp(body, { animated: true }).metadata()).pages).to.equal(2);
    expect(notes).to.include('first-frame-only;files="1"');
  });

  it('makes a page of each frame of an animation with frames=all', async () => {
    const animation = await fixture('moving.gif');
    const { pages: frames = 0 } = await sharp(animation).metadata();
    const files: FormFile[] = [['moving.gif', animation], coloured[0] as FormFile];
    const { body } = await combined(files, { format: 'pdf', frames: 'all' });
    expect((await pdfFacts(body)).pages).to.equal(frames + 1);
  });

  it('has the order of the request, or that of the names as in file managers', async () => {
    const [red, lime, blue] = coloured as [FormFile, FormFile, FormFile];
    const files: FormFile[] = [
      ['IMG_10.png', red[1]],
      ['../IMG_9.png', lime[1]],
      ['IMG_2.png', blue[1]],
    ];
    const orderOf = async (sent: readonly FormFile[], order: string) => {
      const { body } = await combined(sent, { format: 'tiff', order });
      return Promise.all((await tiffPages(body)).map(async (page) => pixelAt(page, 5, 5).join(' ')));
    };
    const [first, second, third] = await Promise.all(
      ['red', 'lime', 'blue'].map(async (name) => (await colourOf(name)).join(' ')),
    );
    expect(await orderOf(files, 'request')).to.deep.equal([first, second, third]);
    const plainNames = files.map(([name, bytes]): FormFile => [name.replace('../', ''), bytes]);
    expect(await orderOf(plainNames, 'name')).to.deep.equal([third, second, first]);
  });

  it('sorts hostile names without an error: empty, equal, long, and with half and reversed characters', async () => {
    const names = ['', 'a.png', 'a.png', `${'x9'.repeat(400)}.png`, '\u202e.png', '\ud800.png', '/'];
    const files = names.map((name, at): FormFile => [name, (coloured[at % 5] as FormFile)[1]]);
    const { body } = await combined(files, { format: 'tiff', order: 'name' });
    expect(await tiffPages(body)).to.have.length(7);
  });

  it('is named combined, or by the field name without folders, control characters and a second extension', async () => {
    const nameFor = async (name: string) =>
      (await combined(coloured.slice(0, 1), { format: 'pdf', name })).headers.get('content-disposition');
    expect(await nameFor('')).to.equal('attachment; filename=combined.pdf');
    expect(await nameFor('album')).to.equal('attachment; filename=album.pdf');
    expect(await nameFor('Album.PDF')).to.equal('attachment; filename=Album.pdf');
    expect(await nameFor('a.b')).to.equal('attachment; filename=a.b.pdf');
    expect(await nameFor('../../etc/\u0007x')).to.equal('attachment; filename=x.pdf');
    expect(await nameFor('C:\\x\\..')).to.equal('attachment; filename=image.pdf');
  });

  it('has the headers of a single result, whose key depends on the files, their order and the timing', async () => {
    const keyOf = async (files: readonly FormFile[], fields: Fields = {}) => {
      const { headers, body } = await combined(files, { format: 'gif', ...fields });
      expect(headers.get('etag')).to.equal(`"${headers.get('x-conversion-key')}"`);
      expect(headers.get('content-length')).to.equal(String(body.length));
      expect(headers.get('repr-digest')).to.match(/^sha-256=:.{44}:$/);
      expect(headers.get('server-timing')).to.match(/queue;dur=.*convert;dur=/);
      return headers.get('x-conversion-key');
    };
    const same = coloured.slice(0, 2).map(([name, bytes]): FormFile => [`other-${name}`, bytes]);
    const key = await keyOf(coloured.slice(0, 2));
    expect(key).to.match(/^[\da-f]{64}$/);
    expect(await keyOf(same)).to.equal(key);
    expect(await keyOf([...same].reverse(), { format: 'tiff' })).to.not.equal(
      await keyOf(same, { format: 'tiff' }),
    );
    expect(await keyOf(same, { delay: '20' })).to.not.equal(key);
  });

  it('takes the files of a ZIP archive, in its order', async () => {
    const archive = makeZip(
      coloured.slice(0, 3).map(([name, content]) => ({ name, content: Buffer.from(content) })),
    );
    const { body } = await combined([['all.zip', archive]], { format: 'gif' });
    expect((await sharp(body, { animated: true }).metadata()).pages).to.equal(3);
  });

  it('makes an animation of the pages of one file, also for an image as the body of /convert', async () => {
    const query = 'combine=yes&format=gif&pages=3,1&width=48&height=32&delay=70';
    const { headers, body } = await expectSuccess(
      postImage(`${own.base}/convert?${query}`, await fixture('pages.tiff')),
    );
    expect(headers.get('content-disposition')).to.equal('attachment; filename=combined.gif');
    expect(await sharp(body, { animated: true }).metadata()).to.include({
      pages: 2,
      width: 48,
      pageHeight: 32,
    });
  });

  describe('with a file that fails', () => {
    const wrong: FormFile = ['note.txt', Buffer.from('not an image')];
    const cut: FormFile = ['cut.png', (coloured[0] as FormFile)[1].subarray(0, 60)];

    it('fails with the position and the name of the file', async () => {
      const { status, body } = await combine([coloured[0] as FormFile, cut], { format: 'pdf' });
      expect(status).to.equal(400);
      expect(jsonOf({ body }).error).to.deep.include({ file: { index: 1, name: 'cut.png' } });
    });

    for (const format of ['pdf', 'webp'])
      it(`leaves it out of a ${format} with on_error=skip, and lists its position`, async () => {
        const files = [cut, coloured[1] as FormFile, wrong, coloured[2] as FormFile];
        const { body, headers, notes } = await combined(files, { on_error: 'skip', format });
        expect(headers.get('x-skipped-files')).to.equal('0, 2');
        expect(notes).to.equal('files-skipped;files="0 2"');
        const pages =
          format === 'pdf'
            ? (await pdfFacts(body)).pages
            : (await sharp(body, { animated: true }).metadata()).pages;
        expect(pages).to.equal(2);
      });

    it('lists positions in the request with order=name, too', async () => {
      const files: FormFile[] = [
        ['z.png', (coloured[0] as FormFile)[1]],
        ['a.png', cut[1]],
      ];
      const { headers } = await combined(files, { on_error: 'skip', order: 'name', format: 'gif' });
      expect(headers.get('x-skipped-files')).to.equal('1');
    });

    it('has the error of the first file if all fail', async () => {
      const { outcome } = await combine([cut, wrong], { on_error: 'skip', format: 'pdf' });
      expect(outcome).to.match(/^400 File 1 \("cut.png"\) is damaged/);
    });

    it('has the page that other programs draw for a PDF with a page of no size', async () => {
      const empty = pdf([{ width: 0, height: 0, content: filled([0, 0, 0], 0, 0, 1, 1) }]);
      const { body } = await combined([coloured[0] as FormFile, ['empty.pdf', empty]], { format: 'tiff' });
      expect((await tiffPages(body)).map(({ width, height }) => [width, height])).to.deep.equal([
        [40, 30],
        [1224, 1584],
      ]);
    });
  });

  describe('rejects', () => {
    const refusals: Readonly<Record<string, readonly [fields: Fields, outcome: RegExp]>> = {
      'a format of one image': [
        { format: 'png' },
        /^400 Invalid output_format "png": expected one of webp, gif, pdf, tiff if combine is true\.$/,
      ],
      'the best format': [{ format: 'auto' }, /^400 Invalid output_format "auto": expected one of webp, /],
      variants: [{ format: 'pdf', variants: '[{"name":"a"}]' }, /^400 Invalid combine "true"/],
      'a maximum of bytes': [{ format: 'webp', max_bytes: '5000' }, /^400 Invalid max_bytes/],
      'all frames as frames': [{ format: 'gif', frames: 'all' }, /^400 Invalid frames "all"/],
      'metadata of frames': [{ format: 'webp', metadata: 'all' }, /^400 Invalid metadata "all"/],
      'pages without a size': [
        { format: 'gif', pages: '1-2' },
        /^400 Invalid pages "1-2": expected width and height/,
      ],
      'a delay that browsers ignore': [{ format: 'gif', delay: '10' }, /^400 Invalid delay "10"/],
      'too many repetitions': [{ format: 'gif', loop: '65536' }, /^400 Invalid loop "65536"/],
    };
    for (const [what, [fields, expected]] of Object.entries(refusals))
      it(what, async () => {
        expect((await combine(coloured.slice(0, 2), fields)).outcome).to.match(expected);
      });
  });

  it('is off by default, and false', async () => {
    for (const fields of [{}, { combine: 'no' }]) {
      const { headers } = await expectSuccess(sendBatch(own.base, coloured.slice(0, 2), fields));
      expect(headers.get('content-type')).to.equal('application/zip');
    }
  });

  it('lists the formats that combine', async () => {
    const { body } = await sendForm(`${own.base}/formats`);
    expect(jsonOf({ body }).combine).to.deep.equal(['webp', 'gif', 'pdf', 'tiff']);
  });
});

describe('combine without qpdf', () => {
  it('is refused for a PDF with the package to install, and works for other formats', async () => {
    await using service = await startService({ PATH: await pathWithout(['qpdf']) });
    const { base } = service;
    const formats = jsonOf(await sendForm(`${base}/formats`));
    expect(formats.combine).to.deep.equal(['webp', 'gif']);
    expect(formats.output).to.include('pdf');
    const send = (fields: Fields): Promise<ClientResponse> =>
      sendBatch(base, coloured.slice(0, 2), { combine: 'true', ...fields });
    const refused = await send({ format: 'pdf' });
    expect(refused.outcome).to.match(/^400 .* apt install qpdf\.$/);
    expect(jsonOf(refused).error).to.deep.include({ reason: 'not_available', field: 'combine' });
    expect((await send({ format: 'gif' })).status).to.equal(200);
    expect((await convert(base, (coloured[0] as FormFile)[1], { format: 'pdf' })).status).to.equal(200);
  });
});

describe('combine for a client that leaves', () => {
  const { start, current, nothingLeft } = useOwnServices();

  it('leaves no file behind', async () => {
    await start({ CONCURRENCY: '1', MAGICK_BIN: await fakeMagick('sleep 60') });
    const client = new AbortController();
    const body = formOf({ combine: 'true', format: 'pdf' }, coloured, 'files');
    const answer = fetch(`${current().base}/batch`, { method: 'POST', body, signal: client.signal });
    answer.catch(() => {});
    await eventually(async () => (await conversionsWaiting(current().base)) > 0);
    client.abort();
    await nothingLeft();
  });

  it('while its parts are joined leaves no process and no file behind, and its slot is free', async () => {
    const gate = await makeTempDir('gate');
    const joiner = await writeScript(
      'qpdf',
      `case "$*" in *--deterministic-id*) echo $$ >${gate}/pid; exec sleep 60 ;; esac; exec /usr/bin/qpdf "$@"`,
    );
    const PATH = `${dirname(joiner)}:${await pathWithout(['qpdf'])}`; // a binary would take precedence
    await start({ PATH, SANDBOX: 'off', CONCURRENCY: '1' });
    const { base } = current();
    const client = new AbortController();
    const body = formOf({ combine: 'true', format: 'pdf' }, coloured, 'files');
    const answer = fetch(`${base}/batch`, { method: 'POST', body, signal: client.signal });
    answer.catch(() => {});
    const pid = async () => Number(await readFile(join(gate, 'pid'), 'utf8').catch(() => ''));
    await eventually(async () => (await pid()) > 0);
    client.abort();
    await eventually(async () => !isRunning(await pid()));
    await nothingLeft();
    expect((await convert(base, (coloured[0] as FormFile)[1], { format: 'png' })).status).to.equal(200);
  });
});
