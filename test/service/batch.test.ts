// @slow
import { createHash } from 'node:crypto';
import { expect } from 'chai';
import { INPUT_TYPES } from '../../src/tables/formats.ts';
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
import { decode, difference } from '../helpers/pixels.ts';
import { useService } from '../helpers/service.ts';
import { errorsIn, namesIn, readZip } from '../helpers/zip.ts';

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
    it('converts twenty files of all types, in order, with the pixels of single conversions', async () => {
      const types = [...INPUT_TYPES, ...INPUT_TYPES, 'png', 'jpg'] as const;
      const files = await Promise.all(
        types.map(
          async (type, at): Promise<FormFile> => [`${at}-${type}.bin`, await fixture(`scene.${type}`)],
        ),
      );
      const answer = await batch(files);
      expect(await namesIn(answer)).to.deep.equal(types.map((type, at) => `${at}-${type}.webp`));
      const entries = await readZip(answer.body);
      for (const [at, [name, file]] of files.slice(0, INPUT_TYPES.length).entries()) {
        const single = await decode((await convert(service.base, file, {}, name)).body);
        for (const entry of [entries[at], entries[at + INPUT_TYPES.length]]) {
          const { psnr } = difference(await decode(entry?.content as Buffer), single);
          expect(psnr, types[at]).to.equal(Number.POSITIVE_INFINITY);
        }
      }
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
  });

  it('names the results after the files, without folders, and with numbers for equal names', async () => {
    const names = {
      'a.jpg': 'a.webp',
      'A.png': 'A (2).webp',
      '../../x.jpg': 'x.webp',
      'C:\\Users\\CON.jpg': '_CON.webp',
      '\u3000été.jpg': 'été.webp',
    };
    const answer = await batch(Object.keys(names).map((name): FormFile => [name, photo]));
    expect(await namesIn(answer)).to.deep.equal(Object.values(names));
    for (const { name, utf8 } of await readZip(answer.body))
      expect(utf8, name).to.equal(/\P{ASCII}/u.test(name));
  });

  for (const [how, parameter, name] of [
    ['uses image as the name if the client sent none', '', 'image.webp'],
    ['removes control characters from names', "; filename*=UTF-8''a%00b%07c%0D%0Ad.jpg", 'abcd.webp'],
  ] as const)
    it(how, async () => {
      const answer = await sendRaw(part(`name="files"${parameter}`, 'application/octet-stream'));
      expect(await namesIn(answer)).to.deep.equal([name]);
    });

  it('rejects an unsupported type, with the name of the file', async () => {
    expect(
      await refusal([
        ['a.jpg', photo],
        ['b.png', Buffer.from('text')],
      ]),
    ).to.match(/^415 File 2 \("b\.png"\) is not an image of a supported format \(PNG, .*WebP\)\.$/);
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
        const answer = await batch(two, fields);
        expect(answer.outcome).to.equal('400 File 2 ("cut off.png") is damaged or not a valid PNG image.');
        expect(jsonOf(answer).error.file).to.deep.equal({ index: 1, name: 'cut off.png' });
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
        'good.webp',
        'fine.webp',
        'good (2).webp',
        'errors.json',
        'manifest.json',
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

    it('returns no errors.json with on_error=skip when all files are valid', async () => {
      expect(await namesIn(await batch([['a.jpg', photo]], { on_error: 'skip' }))).to.deep.equal(['a.webp']);
    });

    it('fails like the first file with on_error=skip when no file is valid', async () => {
      expect(await refusal(files.slice(1, 5), { on_error: 'SKIP' })).to.match(/^400 File 1 .* is damaged/);
    });

    it('applies on_error=skip sent after the files to errors of the conversion, but not of the upload', async () => {
      const { body } = await batchBeforeSkip(files.slice(0, 2));
      expect((await readZip(body)).map(({ name }) => name)).to.deep.equal(['good.webp', 'errors.json']);
      expect((await batchBeforeSkip([files[0], files[2]] as FormFile[])).status).to.equal(415);
    });
  });
});
