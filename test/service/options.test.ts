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
  formOf,
  postForm,
  sendBatch,
} from '../helpers/client.ts';
import { decode, difference, pixelAt } from '../helpers/pixels.ts';
import { useService } from '../helpers/service.ts';
import { readZip } from '../helpers/zip.ts';

const POSITION_NAMES =
  'one of center, top, right top, right, right bottom, bottom, left bottom, left, left top, attention, ' +
  'centre, north, northeast, east, southeast, south, southwest, west, northwest';

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

  for (const name of ['mauve-ish', 'nocolour', 'transparent', 'currentcolor', 'canvas', 'inherit']) {
    it(`background=${name} is rejected with 400, because it is not a colour`, async () => {
      const { outcome } = await convert(service.base, await fixture('window.png'), {
        background: name,
      });
      expect(outcome).to.match(/^400 /).and.include('expected a colour as #rgb, #rrggbb or a name of CSS');
    });
  }

  for (const file of ['scene.jpg', 'window.png', 'moving.gif']) {
    it(`lossless=true keeps every visible pixel of ${file} in a WebP, regardless of the quality`, async () => {
      const source = await fixture(file);
      const { body } = await converted(source, { format: 'webp', lossless: 'true', quality: '10' });
      expect(difference(await decode(body), await decode(source)).max).to.equal(0);
    });
  }

  it('lossless=true together with max_bytes is rejected with 400', async () => {
    const fields = { lossless: 'true', max_bytes: '5000' };
    const { outcome } = await convert(service.base, await fixture('scene.jpg'), fields);
    expect(outcome).to.equal('400 Invalid lossless "true": expected false if max_bytes is set.');
  });

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

  for (const [field, value, expected] of [
    ['frames', 'second', 'all or first'],
    ['pages', '1', 'all or first'],
    ['background', 'whitish', 'a colour as #rgb, #rrggbb or a name of CSS'],
    ['background', '#12345', 'a colour as #rgb, #rrggbb or a name of CSS'],
    ['background', '#12345678', 'a colour as #rgb, #rrggbb or a name of CSS'],
    ['background', '#ff00ff;', 'a colour as #rgb, #rrggbb or a name of CSS'],
    ['fit', 'crop', 'one of inside, cover, contain, fill'],
    ['fit', 'cover', 'width and height, of which both are missing'],
    ['fit', 'contain', 'width and height, of which both are missing'],
    ['fit', 'fill', 'width and height, of which both are missing'],
    ['position', 'top left', POSITION_NAMES],
    ['position', '5', POSITION_NAMES],
    ['position', 'constructor', POSITION_NAMES],
    ['enlarge', 'maybe', 'true or false (or 1/0, yes/no, on/off)'],
    ['max_bytes', '0', 'a whole number from 1 to 2147483648'],
    ['max_bytes', '-1', 'a whole number from 1 to 2147483648'],
    ['max_bytes', '200k', 'a whole number from 1 to 2147483648'],
    ['max_bytes', '2147483649', 'a whole number from 1 to 2147483648'],
  ] as const) {
    it(`${field}="${value}" is rejected by both endpoints, with the expected values`, async () => {
      for (const [path, part] of [
        ['convert', 'file'],
        ['batch', 'files'],
      ] as const) {
        const { outcome } = await postForm(
          `${service.base}/${path}`,
          formOf({ [field]: value }, [['a.png', await fixture('scene.png')]], part),
        );
        expect(outcome).to.equal(`400 Invalid ${field} "${value}": expected ${expected}.`);
      }
    });
  }

  for (const fit of ['cover', 'contain', 'fill']) {
    it(`fit=${fit} with one side is rejected, even if the image is smaller`, async () => {
      for (const side of ['width', 'height']) {
        const { outcome } = await convert(service.base, await fixture('scene.png'), {
          fit,
          [side]: '500',
        });
        expect(outcome).to.equal(
          `400 Invalid fit "${fit}": expected width and height, of which ${side === 'width' ? 'height' : 'width'} is missing.`,
        );
      }
    });
  }

  it('empty values of fit, position, enlarge and max_bytes are ignored', async () => {
    const empty = { fit: '', position: '', enlarge: '', max_bytes: '' };
    const { body } = await converted(await fixture('scene.png'), { ...empty, format: 'png', width: '300' });
    expect((await sharp(body).metadata()).width).to.equal(120);
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

  it('the notes header is exposed to other origins', async () => {
    const { headers } = await converted(await fixture('scene.png'), {});
    expect(headers.get('access-control-expose-headers')).to.include('X-Conversion-Notes');
  });
});
