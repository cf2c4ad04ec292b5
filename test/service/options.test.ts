import { expect } from 'chai';
import sharp from 'sharp';
import {
  type ClientResponse,
  convert,
  edgeCase,
  expectSuccess,
  type Fields,
  type FormFile,
  fixture,
  sendBatch,
} from '../helpers/client.ts';
import { decode, difference, pixelAt } from '../helpers/pixels.ts';
import { useService } from '../helpers/service.ts';
import { readZip } from '../helpers/zip.ts';

/** Options other than format, quality and size, and the notes on a result. */
describe('frames, pages, background and notes', () => {
  const service = useService();

  const converted = (file: Buffer, fields: Fields): Promise<ClientResponse> =>
    expectSuccess(convert(service.base, file, fields));

  for (const [frames, pages, notes] of [
    ['all', 3, null],
    ['', 3, null],
    ['FIRST', 1, 'first-frame-only'],
  ] as const) {
    it(`frames=${frames} of an animation gives ${pages} frames and notes ${notes ?? 'nothing'}`, async () => {
      for (const format of ['gif', 'webp']) {
        const { body, headers } = await converted(await fixture('moving.gif'), { format, frames });
        expect((await sharp(body, { animated: true }).metadata()).pages ?? 1, format).to.equal(pages);
        expect(headers.get('x-conversion-notes'), format).to.equal(notes);
      }
    });
  }

  for (const [background, colour] of [
    ['#0080ff', [0, 128, 255]],
    ['#0F8', [0, 255, 136]],
    ['c0ffee', [192, 255, 238]],
    ['RebeccaPurple', [102, 51, 153]],
    ['', [255, 255, 255]],
  ] as const) {
    it(`background="${background}" fills transparent areas in formats without alpha`, async () => {
      for (const format of ['jpg', 'bmp', 'pdf'] as const) {
        const { body, notes } = await converted(await fixture('window.png'), {
          format,
          background,
          quality: '100',
        });
        const actual = pixelAt(await decode(body, format), 60, 20);
        for (const channel of [0, 1, 2]) {
          expect(actual[channel], `${format}: ${actual}`).to.be.closeTo(colour[channel] as number, 6);
        }
        expect(notes, format).to.equal('alpha-flattened');
      }
    });
  }

  it('background fills transparent areas of a greyscale TIFF with a colour', async () => {
    for (const format of ['jpg', 'bmp', 'pdf'] as const) {
      const fields = { format, background: '#3080c0', quality: '100' };
      const shown = await decode((await converted(await edgeCase('grey-alpha.tiff'), fields)).body, format);
      for (const [x, colour] of [
        [8, [100, 100, 100]],
        [24, [48, 128, 192]],
      ] as const) {
        for (const [channel, value] of colour.entries())
          expect(pixelAt(shown, x, 8)[channel], `${format} at ${x}`).to.be.closeTo(value, 6);
      }
    }
  });

  for (const file of ['scene.jpg', 'window.png', 'moving.gif']) {
    it(`lossless=true keeps every visible pixel of ${file} in a WebP, regardless of the quality`, async () => {
      const source = await fixture(file);
      const { body } = await converted(source, { format: 'webp', lossless: 'true', quality: '10' });
      expect(difference(await decode(body), await decode(source)).max).to.equal(0);
    });
  }

  it('background changes nothing in formats with alpha', async () => {
    for (const format of ['webp', 'png', 'gif'] as const) {
      const { body, notes } = await converted(await fixture('window.png'), { format, background: '#f00' });
      expect(pixelAt(await decode(body), 60, 20)[3], format).to.equal(0);
      expect(notes, format).to.equal(null);
    }
  });

  it('an opaque alpha channel is flattened without a note', async () => {
    const opaque = await sharp(await fixture('scene.png'))
      .ensureAlpha()
      .png()
      .toBuffer();
    expect((await converted(opaque, { format: 'jpg' })).notes).to.equal(null);
  });

  it('a batch applies fit, position and enlarge to every file', async () => {
    const names = ['scene.png', 'moving.gif', 'scene.svg'];
    const files = await Promise.all(names.map(async (name) => [name, await fixture(name)] as const));
    const box = { fit: 'cover', position: 'West', enlarge: 'yes', width: '90', height: '150' };
    const { body } = await expectSuccess(sendBatch(service.base, files, { format: 'png', ...box }));
    for (const { name, content } of await readZip(body)) {
      const { width, height } = await sharp(content).metadata();
      expect([width, height], name).to.deep.equal([90, 150]);
    }
  });

  it('a batch applies them to every file and lists the files of each note', async () => {
    const [moving, ...stills] = [
      await fixture('moving.gif'),
      await fixture('scene.png'),
      await fixture('window.png'),
      await edgeCase('p3-tagged.jpg'),
    ] as [Buffer, ...Buffer[]];
    const files = [moving, ...stills, moving].map((file, at): FormFile => [`${at}.bin`, file]);
    const fields = { format: 'jpg', background: '#00ff00' };
    const { notes, body } = await expectSuccess(sendBatch(service.base, files, fields));
    expect(notes).to.equal(
      'first-frame-only;files="0 4", alpha-flattened;files="2", colour-converted-to-srgb;files="3"',
    );
    const window = (await readZip(body))[2]?.content as Buffer;
    expect(pixelAt(await decode(window), 60, 20)[1]).to.be.at.least(245);
  });
});
