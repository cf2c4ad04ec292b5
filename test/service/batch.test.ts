import { createHash } from 'node:crypto';
import { expect } from 'chai';
import sharp from 'sharp';
import { INPUT_TYPES, OUTPUT_TYPES } from '../../src/formats.ts';
import {
  convert,
  type Fields,
  type FormFile,
  fixture,
  formOf,
  jsonOf,
  postForm,
  sendBatch,
  sendForm,
} from '../helpers/client.ts';
import { decode, difference, plain } from '../helpers/pixels.ts';
import { useService } from '../helpers/service.ts';
import { errorsIn, namesIn, readZip, readZipStream } from '../helpers/zip.ts';

const MIB = 1024 * 1024;

const photo = await fixture('scene.jpg');

describe('POST /batch', () => {
  const service = useService();

  const batch = (files: readonly FormFile[], fields: Fields = {}) => sendBatch(service.base, files, fields);
  const refusal = async (files: readonly FormFile[], fields: Fields = {}) =>
    (await batch(files, fields)).outcome;
  /** Sends a body with a file, between this text and the end of the form. */
  const sendRaw = (start: string) =>
    sendForm(`${service.base}/batch`, {
      method: 'POST',
      headers: { 'content-type': 'multipart/form-data; boundary=xyz' },
      body: Buffer.concat([Buffer.from(start), photo, Buffer.from('\r\n--xyz--\r\n')]),
    });
  const part = (disposition: string, type: string) =>
    `--xyz\r\nContent-Disposition: form-data; ${disposition}\r\nContent-Type: ${type}\r\n\r\n`;

  describe('for valid files', () => {
    for (const format of ['webp', 'bmp', 'pdf'] as const) {
      it(`converts twenty files of all types to ${format}, in order, with the pixels of single conversions`, async () => {
        const types = [...INPUT_TYPES, ...INPUT_TYPES, 'png', 'jpg'] as const;
        const files = await Promise.all(
          types.map(
            async (type, at): Promise<FormFile> => [`${at}-${type}.bin`, await fixture(`scene.${type}`)],
          ),
        );
        const answer = await batch(files, { format });
        expect(await namesIn(answer)).to.deep.equal(types.map((type, at) => `${at}-${type}.${format}`));
        const entries = await readZip(answer.body);
        for (const [at, { content }] of entries.entries()) {
          const [name, file] = files[at] as FormFile;
          const single = await convert(service.base, file, { format }, name);
          const { psnr } = difference(await decode(content, format), await decode(single.body, format));
          expect(psnr, types[at]).to.equal(Number.POSITIVE_INFINITY);
        }
      });
    }

    it('returns the documented headers', async () => {
      const { headers } = await batch([['a.jpg', photo]]);
      expect(Object.fromEntries(headers)).to.deep.include({
        'content-type': 'application/zip',
        'content-disposition': 'attachment; filename=converted.zip',
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
      });
      expect(headers.get('server-timing')).to.match(
        /^upload;dur=[\d.]+, queue;dur=[\d.]+, prepare;dur=[\d.]+, convert;dur=[\d.]+$/,
      );
    });

    it('defaults to webp at quality 80 and accepts the options of POST /convert', async () => {
      const first = async (fields: Fields) =>
        (await readZip((await batch([['a.jpg', photo]], fields)).body))[0]?.content as Buffer;
      expect(
        (await first({})).equals(await first({ format: 'webp', quality: '80', strip_metadata: 'true' })),
      ).to.equal(true);
      const { format, width } = await sharp(await first({ output_format: 'JPEG', width: '30' })).metadata();
      expect([format, width]).to.deep.equal(['jpeg', 30]);
    });

    it('accepts the field names files, files[] and files[0]', async () => {
      const files: FormFile[] = [
        ['a.jpg', photo, 'files[]'],
        ['b.jpg', photo, 'files'],
        ['c.jpg', photo, 'files[0]'],
        ['d.jpg', photo, 'files[12]'],
      ];
      expect(await namesIn(await batch(files))).to.deep.equal(['a.webp', 'b.webp', 'c.webp', 'd.webp']);
      for (const field of ['files[x]', 'files[0][1]', 'file[0]', 'files0'])
        expect(await refusal([['a.jpg', photo, field]]), field).to.match(/^400 Unexpected file part/);
    });

    for (const format of OUTPUT_TYPES) {
      it(`${format === 'bmp' ? 'compresses' : 'does not compress'} ${format} entries in the archive`, async () => {
        const { body } = await batch([['a.jpg', photo]], { format });
        const [entry] = await readZip(body);
        expect(entry?.compressed).to.equal(format === 'bmp');
        const [streamed] = readZipStream(body);
        expect(streamed).to.deep.include({ name: `a.${format}`, content: entry?.content });
      });
    }
  });

  describe('naming of the results', () => {
    const cases: Record<string, readonly [string, string][]> = {
      'adds a number to names that are equal or differ only in case': [
        ['a.jpg', 'a.webp'],
        ['a.png', 'a (2).webp'],
        ['A.JPG', 'A (3).webp'],
      ],
      'removes Unix and Windows folders': [
        ['../../x.jpg', 'x.webp'],
        ['/etc/y.jpg', 'y.webp'],
        ['C:\\Users\\z.jpg', 'z.webp'],
        ['..\\..\\w.jpg', 'w.webp'],
      ],
      'replaces names and characters that Windows does not allow': [
        ['CON.jpg', '_CON.webp'],
        ['a*?<>|.jpg', 'a_____.webp'],
        ['\u3000 blank. . .jpg', 'blank.webp'],
      ],
    };
    for (const [how, pairs] of Object.entries(cases)) {
      it(how, async () => {
        const answer = await batch(pairs.map(([name]): FormFile => [name, photo]));
        expect(await namesIn(answer)).to.deep.equal(pairs.map(([, name]) => name));
        for (const { name, utf8 } of await readZip(answer.body)) {
          expect(utf8, name).to.equal(/\P{ASCII}/u.test(name));
        }
      });
    }

    for (const [how, parameter, name] of [
      ['uses image if the client sent no name', '', 'image.webp'],
      ['removes control characters', "; filename*=UTF-8''a%00b%07c%0D%0Ad.jpg", 'abcd.webp'],
    ] as const)
      it(how, async () => {
        const answer = await sendRaw(part(`name="files"${parameter}`, 'application/octet-stream'));
        expect(await namesIn(answer)).to.deep.equal([name]);
      });
  });

  describe('rejects', () => {
    it('more than twenty files', async () => {
      const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>');
      const files = Array.from({ length: 21 }, (_, at): FormFile => [`${at}.svg`, svg]);
      expect((await batch(files.slice(1))).status).to.equal(200);
      expect(await refusal(files)).to.equal('400 Too many files: at most 20 allowed in one request.');
    });

    it('a file larger than 10 MiB, with the name of the file', async () => {
      const padded = (bytes: number) => Buffer.concat([photo, Buffer.alloc(bytes - photo.length)]);
      expect((await batch([['a.jpg', padded(10 * MIB)]])).status).to.equal(200);
      expect(
        await refusal([
          ['a.jpg', photo],
          ['b.jpg', padded(10 * MIB + 1)],
        ]),
      ).to.equal('413 File 2 ("b.jpg") is too large: at most 10.5 MB (10485760 bytes) allowed.');
    });

    it('an unsupported type, with the name of the file', async () => {
      expect(
        await refusal([
          ['a.jpg', photo],
          ['b.png', Buffer.from('text')],
        ]),
      ).to.match(/^415 File 2 \("b\.png"\) is not an image of a supported format \(PNG, .*WebP\)\.$/);
    });

    it('no file, an empty file, and a file under another field name', async () => {
      expect(await refusal([])).to.equal('400 No file was sent: a file part named "files" is required.');
      expect(await refusal([['a.jpg', Buffer.alloc(0)]])).to.equal(
        '400 File 1 ("a.jpg") is empty (0 bytes).',
      );
      expect(await refusal([['a.jpg', photo, 'file']])).to.equal(
        '400 Unexpected file part "file": the file part must be named "files".',
      );
    });

    it('text in the field files or files[]', async () => {
      for (const name of ['files', 'files[]']) {
        const text = `${part(`name="${name}"`, 'text/plain')}a.png\r\n`;
        const { outcome } = await sendRaw(text + part('name="files"; filename="a.jpg"', 'image/jpeg'));
        expect(outcome).to.match(/^400 The field "files(\[\])?" contains text, not a file/);
      }
    });
  });

  describe('with invalid files among valid ones', () => {
    let files: FormFile[];
    before(async () => {
      const png = await fixture('scene.png');
      files = [
        ['good.jpg', photo],
        ['cut off.png', png.subarray(0, 200)],
        ['note.txt', Buffer.from('text')],
        ['large.png', Buffer.concat([png, Buffer.alloc(10 * MIB)])],
        ['empty.png', Buffer.alloc(0)],
        ['fine.png', png],
      ];
    });

    /** Sends files, and on_error=skip behind them. */
    const batchBeforeSkip = (sent: readonly FormFile[]) => {
      const form = formOf({}, sent, 'files');
      form.append('on_error', 'skip');
      return postForm(`${service.base}/batch`, form);
    };

    it('fails by default, with the status and the name of the first invalid file', async () => {
      const two = files.slice(0, 2);
      for (const fields of [{}, { on_error: 'fail' }, { on_error: '' }]) {
        expect(await refusal(two, fields)).to.equal(
          '400 File 2 ("cut off.png") is damaged or not a valid PNG image.',
        );
      }
    });

    it('returns the valid files and errors.json with on_error=skip', async () => {
      const answer = await batch(files, { on_error: 'skip' });
      expect(await namesIn(answer)).to.deep.equal(['good.webp', 'fine.webp', 'errors.json']);
      const entries = await readZip(answer.body);
      const errors = await errorsIn(answer);
      expect(errors.map(({ index, file, error }) => [index, file, error.code])).to.deep.equal([
        [1, 'cut off.png', 400],
        [2, 'note.txt', 415],
        [3, 'large.png', 413],
        [4, 'empty.png', 400],
      ]);
      expect(errors[0]).to.deep.equal({
        index: 1,
        file: 'cut off.png',
        error: {
          code: 400,
          message: 'File 2 ("cut off.png") is damaged or not a valid PNG image.',
          reason: 'corrupt_image',
          retryable: false,
          file: { index: 1, name: 'cut off.png' },
        },
      });
      expect(
        difference(await decode(entries[1]?.content as Buffer), await decode(files[5]?.[1] as Buffer)).psnr,
      ).to.be.above(25);
    });

    it('lists the results in manifest.json with manifest=true', async () => {
      const answer = await batch([...files, ['good.jpg', photo]], {
        on_error: 'skip',
        manifest: 'true',
        width: '60',
      });
      expect(await namesIn(answer)).to.deep.equal([
        ...['good.webp', 'fine.webp', 'good (2).webp', 'errors.json', 'manifest.json'],
      ]);
      const entries = await readZip(answer.body);
      const manifest = JSON.parse(entries.at(-1)?.content.toString() ?? '');
      const described = entries.slice(0, 3).map(({ name, content }, at) => ({
        index: [0, 5, 6][at],
        source: ['good.jpg', 'fine.png', 'good.jpg'][at],
        name,
        type: 'webp',
        width: 60,
        height: 40,
        bytes: content.length,
        sha256: createHash('sha256').update(content).digest('hex'),
        notes: [],
      }));
      expect(manifest).to.deep.equal(described);
    });

    it('names the file of an error that fails the batch', async () => {
      const { code, file } = jsonOf(await batch(files.slice(0, 2))).error;
      expect([code, file]).to.deep.equal([400, { index: 1, name: 'cut off.png' }]);
    });

    it('returns no errors.json with on_error=skip when all files are valid', async () => {
      expect(await namesIn(await batch([['a.jpg', photo]], { on_error: 'skip' }))).to.deep.equal(['a.webp']);
    });

    it('fails like the first file with on_error=skip when no file is valid', async () => {
      expect(await refusal(files.slice(1, 5), { on_error: 'SKIP' })).to.match(/^400 File 1 .* is damaged/);
    });

    it('rejects an invalid file at once when on_error=skip follows it, even in a short body', async () => {
      expect((await batchBeforeSkip([files[0], files[2]] as FormFile[])).status).to.equal(415);
    });

    it('names the file that is too large for the output format', async () => {
      const wide = await plain(16_384, 2).png().toBuffer();
      const answer = await refusal([
        ['a.jpg', photo],
        ['wide.png', wide],
      ]);
      expect(answer).to.match(/^400 File 2 \("wide\.png"\) is too large for WebP/);
    });

    it('applies on_error=skip sent after the files to errors found by the conversion', async () => {
      expect(await namesIn(await batchBeforeSkip(files.slice(0, 2)))).to.deep.equal([
        'good.webp',
        'errors.json',
      ]);
    });
  });
});
