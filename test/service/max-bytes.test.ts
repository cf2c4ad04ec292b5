// @full
import { expect } from 'chai';
import sharp from 'sharp';
import { seeded } from '../../scripts/stress/random.ts';
import type { Step } from '../../src/conversion/plan/step.ts';
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
import { convertWith } from '../helpers/engine.ts';
import { readTags } from '../helpers/exif.ts';
import { ALL_EXTRAS, extra } from '../helpers/extra.ts';
import { COPY_SCENE, fakeMagick } from '../helpers/fake-magick.ts';
import { writeTempFile } from '../helpers/hooks.ts';
import { decode, pixelAt } from '../helpers/pixels.ts';
import { startEngine, useOwnServices, useServiceWith } from '../helpers/service.ts';
import { readZip } from '../helpers/zip.ts';

describe('max_bytes', () => {
  const service = useServiceWith(ALL_EXTRAS);
  let photo: Buffer;
  before(async () => {
    photo = await noisyPhoto(480, 320);
  });

  const converted = (file: Buffer, fields: Fields): Promise<ClientResponse> =>
    expectSuccess(convert(service.base, file, fields));
  const qualityOf = ({ headers }: ClientResponse): number => Number(headers.get('x-conversion-quality'));
  const notesOf = ({ notes }: ClientResponse): string | null => notes;

  for (const format of ['webp', 'jpg'] as const) {
    it(`gives ${format} the best quality within the limit, and states it`, async () => {
      const full = (await converted(photo, { format })).body.length;
      for (const share of [0.9, 0.4]) {
        const maxBytes = Math.round(full * share);
        const answer = await converted(photo, { format, max_bytes: String(maxBytes) });
        const quality = qualityOf(answer);
        expect(answer.body.length, `${share}`).to.be.at.most(maxBytes);
        expect(notesOf(answer)).to.equal('quality-lowered');
        expect(quality).to.be.within(10, 79);
        const plain = await converted(photo, { format, quality: String(quality) });
        expect(plain.body.equals(answer.body), `as quality=${quality}`).to.equal(true);
        const better = await converted(photo, { format, quality: String(quality + 3) });
        expect(better.body.length, `quality ${quality + 3}`).to.be.greaterThan(0.96 * maxBytes);
      }
    });

    it(`does not change a ${format} that is small enough, and states its quality`, async () => {
      const plain = await converted(photo, { format, quality: '70' });
      const fields = { format, quality: '70', max_bytes: String(plain.body.length) };
      const answer = await converted(photo, fields);
      expect([qualityOf(answer), notesOf(answer)]).to.deep.equal([70, null]);
      expect(answer.body.equals(plain.body)).to.equal(true);
    });
  }

  for (const format of ['avif', 'jxl']) {
    it(`gives ${format} the result of a lower quality, and states it`, async () => {
      const file = await extra('grid.heic');
      const full = (await converted(file, { format, quality: '90' })).body.length;
      const maxBytes = Math.round(full * 0.6);
      const answer = await converted(file, { format, quality: '90', max_bytes: String(maxBytes) });
      const quality = qualityOf(answer);
      expect(answer.body.length).to.be.within(maxBytes * 0.7, maxBytes);
      expect(notesOf(answer)).to.include('quality-lowered');
      expect(quality).to.be.within(10, 89);
      const plain = await converted(file, { format, quality: String(quality) });
      expect(plain.body.equals(answer.body), `as quality=${quality}`).to.equal(true);
    });
  }

  it('counts the metadata of a JPEG XL', async () => {
    const file = await fixture('private.jpg');
    const bare = (await converted(file, { format: 'jxl' })).body.length;
    const fields = { format: 'jxl', strip_metadata: 'false', max_bytes: String(bare) };
    const answer = await converted(file, fields);
    expect(answer.body.length).to.be.at.most(bare);
    expect(notesOf(answer)).to.include('quality-lowered');
    const [tags] = await readTags([await writeTempFile('kept.jxl', answer.body)]);
    expect(tags).to.include({ 'IFD0:Artist': 'Somebody Private' });
  });

  it('keeps the frames, delays and loop count of an animation', async () => {
    const file = await noisyAnimation();
    const full = (await converted(file, { format: 'webp' })).body.length;
    const answer = await converted(file, { format: 'webp', max_bytes: String(Math.round(full * 0.6)) });
    expect(answer.body.length).to.be.at.most(full * 0.6);
    expect(notesOf(answer)).to.equal('quality-lowered');
    const { pages, delay, loop } = await sharp(answer.body, { animated: true }).metadata();
    expect({ pages, delay, loop }).to.deep.equal({ pages: 3, delay: [100, 250, 40], loop: 2 });
  });

  it('keeps or flattens transparency as it does without a limit', async () => {
    const window = await noisyWindow();
    for (const format of ['webp', 'jpg'] as const) {
      const full = (await converted(window, { format })).body.length;
      const max_bytes = String(Math.round(full * 0.7));
      const answer = await converted(window, { format, background: '#ff0000', max_bytes });
      const [red = 0, green = 0, , alpha = 0] = pixelAt(await decode(answer.body), 100, 100);
      if (format === 'webp') expect(alpha).to.equal(0);
      else expect([red > 200, green < 60], `${red} ${green}`).to.deep.equal([true, true]);
      expect(notesOf(answer)?.split(', ')).to.deep.equal([
        ...(format === 'jpg' ? ['alpha-flattened'] : []),
        'quality-lowered',
      ]);
    }
  });

  it('keeps metadata, profile and CMYK on request', async () => {
    const cmyk = await sharp(photo)
      .toColourspace('cmyk')
      .withIccProfile('cmyk')
      .withExif({ IFD0: { Artist: 'A' } });
    const file = await cmyk.jpeg({ quality: 95 }).toBuffer();
    const fields = { format: 'jpg', strip_metadata: 'false' };
    const full = (await converted(file, fields)).body.length;
    const answer = await converted(file, { ...fields, max_bytes: String(full - 8000) });
    expect(answer.body.length).to.be.at.most(full - 8000);
    const { space, icc, exif } = await sharp(answer.body).metadata();
    expect([space, icc !== undefined, exif?.includes('A')]).to.deep.equal(['cmyk', true, true]);
  });

  it('applies to SVGs, and to images that another tool decodes', async () => {
    const avif = await sharp(photo).avif({ quality: 90, effort: 0 }).toBuffer();
    for (const [what, file, width] of [
      ['svg', await fixture('scene.svg'), '600'],
      ['avif', avif, '400'],
    ] as const) {
      const fields = { format: 'jpg', width, quality: '95' };
      const full = (await converted(file, fields)).body.length;
      const answer = await converted(file, { ...fields, max_bytes: String(Math.round(full * 0.7)) });
      expect(answer.body.length, what).to.be.at.most(full * 0.7);
      expect(notesOf(answer), what).to.equal('quality-lowered');
    }
  });

  it('that no quality reaches is rejected with the smallest size and advice', async () => {
    for (const [max_bytes, quality] of [
      ['1', '80'],
      ['1500', '80'],
      ['1', '5'],
    ] as const) {
      const { status, message } = await convert(service.base, photo, { format: 'jpg', max_bytes, quality });
      expect(status).to.equal(400);
      const [, bytes, used] =
        /^The file cannot be reduced to (?:1 byte|1500 bytes) \(max_bytes\): the smallest result has (\d+) bytes, at quality (\d+)\. Set a smaller width or height, choose another format, or allow more bytes\.$/.exec(
          message,
        ) ?? [];
      expect(used, message).to.equal(quality === '5' ? '5' : '10');
      const plain = await converted(photo, { format: 'jpg', quality: String(used) });
      expect(plain.body.length).to.equal(Number(bytes));
    }
  });

  it('of a batch applies to each file, and each quality is stated', async () => {
    const small = await fixture('scene.jpg');
    const files = [small, photo, small].map((file, at): FormFile => [`${at}.jpg`, file]);
    const fields = { format: 'jpg', max_bytes: '9000' };
    const answer = await expectSuccess(sendBatch(service.base, files, fields));
    expect(notesOf(answer)).to.equal('quality-lowered;files="1"');
    expect(answer.headers.get('x-conversion-quality')).to.match(/^80;files="0 2", \d\d;files="1"$/);
    for (const { content } of await readZip(answer.body)) expect(content.length).to.be.at.most(9000);
  });
});

describe('the encodes for max_bytes', () => {
  it('are at most six, and the image is decoded once', async () => {
    const engine = await startEngine();
    try {
      for (const [type, maxBytes] of [
        ['jpg', 700],
        ['svg', 500],
        ['avif', 600],
        ['gif', 100],
      ] as const) {
        const bytes = await fixture(type === 'gif' ? 'moving.gif' : `scene.${type}`);
        const steps: Step[] = [];
        const onCommand = (step: Step) => void steps.push(step);
        const options = { format: 'webp', quality: 100, metadata: 'none', maxBytes } as const;
        await convertWith(engine, { bytes, type, onCommand }, options, async () => {}).catch(() => {});
        const reads = steps.filter(
          ({ args, stdin }) => stdin === 'in' || args.some((arg) => /(^|:)in(\[|$)/.test(arg)),
        );
        const encodes = steps.filter(({ args }) => args.some((arg) => arg.endsWith('image.webp')));
        expect(reads.length, `${type} is read`).to.equal(1);
        expect(encodes.length, `${type} is encoded`).to.be.within(2, 6);
      }
    } finally {
      await engine.close();
    }
  });

  const { start, current, nothingLeft } = useOwnServices();

  it('share the time limit of one conversion, and leave no files', async () => {
    const slow = `sleep 0.6; touch kept.miff; ${COPY_SCENE}`;
    await start({ MAGICK_BIN: await fakeMagick(slow), CONVERT_TIMEOUT_MS: '1000' });
    const { outcome } = await convert(current().base, await edgeCase('few-colours.png'), {
      max_bytes: '1',
    });
    expect(outcome).to.match(/^413 The file took longer to convert than the limit of 1 second/);
    await nothingLeft();
  });
});

function noisyPixels(width: number, height: number, channels: 3 | 4): Buffer {
  const random = seeded(1);
  const data = Buffer.alloc(width * height * channels, 255);
  for (let at = 0; at < width * height; at += 1) {
    const [x, y] = [at % width, Math.floor(at / width)];
    const light = 120 + 60 * Math.sin(x / 17) + 40 * Math.cos(y / 11) + 24 * random.next();
    data.set([light, 255 - light, (x * 255) / width], at * channels);
  }
  return data;
}

function noisyPhoto(width: number, height: number): Promise<Buffer> {
  const raw = { width, height, channels: 3 } as const;
  return sharp(noisyPixels(width, height, 3), { raw })
    .jpeg({ quality: 95 })
    .toBuffer();
}

function noisyWindow(): Promise<Buffer> {
  const [width, height] = [240, 200];
  const data = noisyPixels(width, height, 4);
  for (let y = 80; y < 120; y += 1) for (let x = 80; x < 120; x += 1) data[(y * width + x) * 4 + 3] = 0;
  return sharp(data, { raw: { width, height, channels: 4 } })
    .png()
    .toBuffer();
}

function noisyAnimation(): Promise<Buffer> {
  const raw = { width: 120, height: 300, channels: 3, pageHeight: 100 } as const;
  return sharp(noisyPixels(120, 300, 3), { raw })
    .gif({ delay: [100, 250, 40], loop: 2 })
    .toBuffer();
}
