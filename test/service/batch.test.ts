import { createHash } from 'node:crypto';
import { expect } from 'chai';
import sharp from 'sharp';
import { INPUT_TYPES, OUTPUT_TYPES, type OutputType } from '../../src/formats.ts';
import { type ClientResponse, fixture, sendForm } from '../helpers/client.ts';
import { decode, difference } from '../helpers/pixels.ts';
import { useService } from '../helpers/service.ts';
import { namesByOthers, readZip, readZipStream } from '../helpers/zip.ts';

const MIB = 1024 * 1024;
type File = readonly [name: string, content: Uint8Array, field?: string];

const photo = await fixture('scene.jpg');

describe('POST /batch', () => {
  const service = useService();

  const batch = (files: readonly File[], fields: Record<string, string> = {}): Promise<ClientResponse> => {
    const form = new FormData();
    for (const [field, value] of Object.entries(fields)) form.append(field, value);
    for (const [name, content, field = 'files'] of files)
      form.append(field, new Blob([new Uint8Array(content)]), name);
    return sendForm(`${service.base}/batch`, { method: 'POST', body: form });
  };
  const namesOf = async (answer: ClientResponse) => {
    expect(answer.status, answer.message).to.equal(200);
    const names = (await readZip(answer.body)).map(({ name }) => name);
    expect(await namesByOthers(answer.body)).to.deep.equal(names);
    return names;
  };
  const refusal = async (files: readonly File[], fields: Record<string, string> = {}) => {
    const { status, message } = await batch(files, fields);
    return `${status} ${message}`;
  };

  describe('for valid files', () => {
    for (const format of ['webp', 'bmp', 'pdf'] as const) {
      it(`converts twenty files of all input types to ${format}, in order, with the same pixels as single conversions`, async () => {
        const types = [...INPUT_TYPES, ...INPUT_TYPES, 'png', 'jpg'] as const;
        const files = await Promise.all(
          types.map(async (type, at): Promise<File> => [`${at}-${type}.bin`, await fixture(`scene.${type}`)]),
        );
        const answer = await batch(files, { format });
        expect(await namesOf(answer)).to.deep.equal(types.map((type, at) => `${at}-${type}.${format}`));
        const entries = await readZip(answer.body);
        for (const [at, { content }] of entries.entries()) {
          const single = await convertSingle(files[at] as File, format);
          const { psnr } = difference(await decode(content, format), await decode(single, format));
          expect(psnr, types[at]).to.equal(Number.POSITIVE_INFINITY);
        }
      });
    }

    const convertSingle = async ([name, content]: File, format: OutputType): Promise<Buffer> => {
      const form = new FormData();
      form.append('file', new Blob([new Uint8Array(content)]), name);
      form.append('format', format);
      return (await sendForm(`${service.base}/convert`, { method: 'POST', body: form })).body;
    };

    it('returns the documented headers', async () => {
      const { headers, body } = await batch([['a.jpg', photo]]);
      expect(Object.fromEntries(headers)).to.deep.include({
        'content-type': 'application/zip',
        'content-disposition': 'attachment; filename=converted.zip',
        'cache-control': 'no-store',
        'content-length': String(body.length),
        'x-content-type-options': 'nosniff',
      });
      expect(headers.get('server-timing')).to.match(
        /^upload;dur=[\d.]+, queue;dur=[\d.]+, prepare;dur=[\d.]+, convert;dur=[\d.]+$/,
      );
    });

    it('defaults to webp at quality 80 and accepts the options of POST /convert', async () => {
      const first = async (fields: Record<string, string>) =>
        (await readZip((await batch([['a.jpg', photo]], fields)).body))[0]?.content as Buffer;
      expect(
        (await first({})).equals(await first({ format: 'webp', quality: '80', strip_metadata: 'true' })),
      ).to.equal(true);
      const { format, width } = await sharp(await first({ output_format: 'JPEG', width: '30' })).metadata();
      expect([format, width]).to.deep.equal(['jpeg', 30]);
    });

    it('accepts the field names files, files[] and files[0]', async () => {
      const files: File[] = [
        ['a.jpg', photo, 'files[]'],
        ['b.jpg', photo, 'files'],
        ['c.jpg', photo, 'files[0]'],
        ['d.jpg', photo, 'files[12]'],
      ];
      expect(await namesOf(await batch(files))).to.deep.equal(['a.webp', 'b.webp', 'c.webp', 'd.webp']);
      for (const field of ['files[x]', 'files[0][1]', 'file[0]', 'files0'])
        expect(await refusal([['a.jpg', photo, field]]), field).to.match(/^400 Unexpected file part/);
    });

    for (const format of OUTPUT_TYPES) {
      it(`${format === 'bmp' ? 'compresses' : 'does not compress'} ${format} entries in the archive`, async () => {
        const { headers, body } = await batch([['a.jpg', photo]], { format });
        const [entry] = await readZip(body);
        expect(entry?.compressed).to.equal(format === 'bmp');
        expect(headers.get('content-length')).to.equal(String(body.length));
        expect(readZipStream(body)).to.deep.equal([{ name: `a.${format}`, content: entry?.content }]);
      });
    }
  });

  describe('naming of the results', () => {
    const cases: Record<string, readonly [string, string][]> = {
      'adds a number to equal names': [
        ['a.jpg', 'a.webp'],
        ['a.png', 'a (2).webp'],
        ['a.gif', 'a (3).webp'],
      ],
      'adds a number to names that differ only in case': [
        ['Photo.jpg', 'Photo.webp'],
        ['photo.JPG', 'photo (2).webp'],
        ['PHOTO.png', 'PHOTO (3).webp'],
      ],
      'skips a number that another name already has': [
        ['a (2).jpg', 'a (2).webp'],
        ['a.jpg', 'a.webp'],
        ['a.png', 'a (3).webp'],
      ],
      'removes Unix and Windows folders': [
        ['../../x.jpg', 'x.webp'],
        ['/etc/y.jpg', 'y.webp'],
        ['C:\\Users\\z.jpg', 'z.webp'],
        ['..\\..\\w.jpg', 'w.webp'],
      ],
      'keeps all scripts and emoji, in Unicode NFC': [
        ['фото 🎉.jpg', 'фото 🎉.webp'],
        ['e\u0301te\u0301.jpg', 'été.webp'],
        ['été.png', 'été (2).webp'],
      ],
      'truncates names to 200 bytes and keeps them unique': [
        [`${'a'.repeat(5000)}.jpg`, `${'a'.repeat(200)}.webp`],
        [`${'a'.repeat(5000)}.png`, `${'a'.repeat(200)} (2).webp`],
      ],
      'replaces names and characters that Windows does not allow': [
        ['CON.jpg', '_CON.webp'],
        ['nul.tar.png', '_nul.tar.webp'],
        ['Com1 .jpg', '_Com1.webp'],
        ['console.jpg', 'console.webp'],
        ['a*?<>|.jpg', 'a_____.webp'],
        ['\u3000 blank. . .jpg', 'blank.webp'],
      ],
      'replaces colons and names without a letter': [
        ['12:30.jpg', '12_30.webp'],
        ['a:b:c.jpg', 'a_b_c.webp'],
        ['c.jpg', 'c.webp'],
        ['...', 'image.webp'],
        ['.', 'image (2).webp'],
        ['errors.json', 'errors.webp'],
      ],
    };
    for (const [how, pairs] of Object.entries(cases)) {
      it(how, async () => {
        const answer = await batch(pairs.map(([name]): File => [name, photo]));
        expect(await namesOf(answer)).to.deep.equal(pairs.map(([, name]) => name));
        for (const { name, utf8 } of await readZip(answer.body)) {
          expect(utf8, name).to.equal(true);
        }
      });
    }

    for (const [how, parameter, name] of [
      ['uses image if the client sent no name', '', 'image.webp'],
      ['removes control characters', "; filename*=UTF-8''a%00b%07c%0D%0Ad.jpg", 'abcd.webp'],
    ] as const)
      it(how, async () => {
        const body = Buffer.concat([
          Buffer.from(
            `--xyz\r\nContent-Disposition: form-data; name="files"${parameter}\r\nContent-Type: application/octet-stream\r\n\r\n`,
          ),
          photo,
          Buffer.from('\r\n--xyz--\r\n'),
        ]);
        const headers = { 'content-type': 'multipart/form-data; boundary=xyz' };
        expect(
          await namesOf(await sendForm(`${service.base}/batch`, { method: 'POST', headers, body })),
        ).to.deep.equal([name]);
      });
  });

  describe('rejects', () => {
    it('more than twenty files', async () => {
      const files = Array.from(
        { length: 21 },
        (_, at): File => [
          `${at}.svg`,
          Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>'),
        ],
      );
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
      const part = (disposition: string, type: string) =>
        `--xyz\r\nContent-Disposition: form-data; ${disposition}\r\nContent-Type: ${type}\r\n\r\n`;
      for (const wrong of [part('name="files"', 'text/plain'), part('name="files[]"', 'text/plain')]) {
        const good = part('name="files"; filename="a.jpg"', 'image/jpeg');
        const body = Buffer.concat([
          Buffer.from(`${wrong}a.png\r\n${good}`),
          photo,
          Buffer.from('\r\n--xyz--\r\n'),
        ]);
        const headers = { 'content-type': 'multipart/form-data; boundary=xyz' };
        const { status, message } = await sendForm(`${service.base}/batch`, {
          method: 'POST',
          headers,
          body,
        });
        expect(`${status} ${message}`).to.match(/^400 The field "files(\[\])?" contains text, not a file/);
      }
    });

    it('invalid options', async () => {
      expect(await refusal([['a.jpg', photo]], { on_error: 'panic' })).to.equal(
        '400 Invalid on_error "panic": expected fail or skip.',
      );
      expect(await refusal([['a.jpg', photo]], { quality: '0' })).to.match(/^400 Invalid quality "0"/);
    });
  });

  describe('with invalid files among valid ones', () => {
    let files: File[];
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
      expect(await namesOf(answer)).to.deep.equal(['good.webp', 'fine.webp', 'errors.json']);
      const entries = await readZip(answer.body);
      const errors = JSON.parse(entries.at(-1)?.content.toString() ?? '');
      expect(
        errors.map(({ index, file, error }: never) => [index, file, (error as { code: number }).code]),
      ).to.deep.equal([
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
      expect(await namesOf(answer)).to.deep.equal([
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
      const { status, body } = await batch(files.slice(0, 2));
      expect([status, JSON.parse(body.toString()).error.file]).to.deep.equal([
        400,
        { index: 1, name: 'cut off.png' },
      ]);
    });

    it('returns no errors.json with on_error=skip when all files are valid', async () => {
      expect(await namesOf(await batch([['a.jpg', photo]], { on_error: 'skip' }))).to.deep.equal(['a.webp']);
    });

    it('fails like the first file with on_error=skip when no file is valid', async () => {
      expect(await refusal(files.slice(1, 5), { on_error: 'SKIP' })).to.match(/^400 File 1 .* is damaged/);
    });

    it('rejects an invalid file at once when on_error=skip follows it, even in a short body', async () => {
      const form = new FormData();
      for (const [name, content] of [files[0], files[2]] as File[])
        form.append('files', new Blob([new Uint8Array(content)]), name);
      form.append('on_error', 'skip');
      expect((await sendForm(`${service.base}/batch`, { method: 'POST', body: form })).status).to.equal(415);
    });

    it('names the file that is too large for the output format', async () => {
      const image = sharp({ create: { width: 16_384, height: 2, channels: 3, background: 'teal' } });
      const wide = await image.png().toBuffer();
      const answer = await refusal([
        ['a.jpg', photo],
        ['wide.png', wide],
      ]);
      expect(answer).to.match(/^400 File 2 \("wide\.png"\) is too large for WebP/);
    });

    it('applies on_error=skip sent after the files to errors found by the conversion', async () => {
      const form = new FormData();
      for (const [name, content] of files.slice(0, 2))
        form.append('files', new Blob([new Uint8Array(content)]), name);
      form.append('on_error', 'skip');
      const answer = await sendForm(`${service.base}/batch`, { method: 'POST', body: form });
      expect(await namesOf(answer)).to.deep.equal(['good.webp', 'errors.json']);
    });
  });
});
