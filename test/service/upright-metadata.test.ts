// @full: six pairs of formats
import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import sharp from 'sharp';
import { opened } from '../../scripts/fixtures/edge-case.ts';
import { convert, converted, expectSuccess } from '../helpers/client.ts';
import { makeTempDir, writeTempFile } from '../helpers/hooks.ts';
import { useService } from '../helpers/service.ts';
import { readZip } from '../helpers/zip.ts';

const ORIENTATION = 6;

describe('kept metadata of an image that is rotated upright', () => {
  const service = useService();

  /** Encodes the scene with a thumbnail, and an orientation in EXIF and XMP. */
  async function withEverything(extension: 'jpg' | 'png' | 'webp'): Promise<Buffer> {
    const folder = await makeTempDir('upright');
    const [path, thumbnail] = [join(folder, `a.${extension}`), join(folder, 'thumbnail.jpg')];
    const image = opened();
    await image.toFormat(extension === 'jpg' ? 'jpeg' : extension).toFile(path);
    await opened().resize(24, 16).jpeg().toFile(thumbnail);
    const tags = [
      `-IFD0:Orientation=${ORIENTATION}`,
      `-XMP-tiff:Orientation=${ORIENTATION}`,
      '-IFD0:Artist=A',
      '-IFD0:ImageWidth=120',
      '-IFD0:ImageHeight=80',
      '-ExifIFD:ExifImageWidth=120',
      '-ExifIFD:ExifImageHeight=80',
    ];
    const options = ['-q', '-n', '-overwrite_original'];
    execFileSync('exiftool', [...options, ...tags, `-ThumbnailImage<=${thumbnail}`, path]);
    return readFile(path);
  }

  async function tagsOf(file: Buffer): Promise<Record<string, unknown>> {
    const path = await writeTempFile('file', file);
    return JSON.parse(execFileSync('exiftool', ['-j', '-n', '-G1', path], { encoding: 'utf8' }))[0];
  }

  for (const [from, to] of [
    ['jpg', 'jpg'],
    ['jpg', 'png'],
    ['png', 'webp'],
    ['png', 'png'],
    ['webp', 'jpg'],
    ['webp', 'webp'],
  ] as const)
    it(`from ${from} to ${to} has no rotated thumbnail, and no orientation that rotates it again`, async () => {
      const source = await withEverything(from);
      const before = await tagsOf(source);
      expect(before).to.include({ 'XMP-tiff:Orientation': ORIENTATION, 'IFD0:Orientation': ORIENTATION });
      expect(before).to.have.property('IFD1:ThumbnailLength');
      const { body } = await converted(service.base, source, { format: to, strip_metadata: 'false' });
      const { width, height } = await sharp(body).metadata();
      expect([width, height]).to.deep.equal([80, 120]);
      const after = await tagsOf(body);
      expect(after['IFD0:Orientation'] ?? 1).to.equal(1);
      expect(after['XMP-tiff:Orientation'] ?? 1).to.equal(1);
      expect(after).to.not.have.property('IFD1:ThumbnailLength');
      if (from === 'jpg' && to === 'jpg')
        expect(after).to.include({
          'IFD0:Artist': 'A',
          'IFD0:ImageWidth': 80,
          'IFD0:ImageHeight': 120,
          'ExifIFD:ExifImageWidth': 80,
          'ExifIFD:ExifImageHeight': 120,
        });
      expect(after['ExifIFD:ExifImageWidth'] ?? 80).to.equal(80);
      expect(after['ExifIFD:ExifImageHeight'] ?? 120).to.equal(120);
    });

  it('has no thumbnail after rotate, and states the size of the result', async () => {
    const fields = { format: 'jpg', strip_metadata: 'false', rotate: '90' };
    const { body } = await converted(service.base, await withEverything('jpg'), fields);
    const after = await tagsOf(body);
    expect(after).to.include({ 'IFD0:Orientation': 1, 'IFD0:ImageWidth': 120, 'IFD0:ImageHeight': 80 });
    expect(after).to.not.have.property('IFD1:ThumbnailLength');
  });

  it('of variants that are rotated differently states no size that is wrong for one of them', async () => {
    for (const [rotations, size] of [
      [['0', '90'], undefined],
      [['180', '90'], undefined],
      [
        ['90', '270'],
        [120, 80],
      ],
    ] as const) {
      const variants = JSON.stringify(rotations.map((rotate) => ({ name: `by-${rotate}`, rotate })));
      const fields = { format: 'jpg', metadata: 'all', variants };
      const { body } = await expectSuccess(convert(service.base, await withEverything('jpg'), fields));
      const results = (await readZip(body)).filter(({ name }) => name.endsWith('.jpg'));
      expect(results).to.have.lengthOf(2);
      for (const { name, content } of results) {
        const after = await tagsOf(content);
        const stated = ['IFD0:Image', 'ExifIFD:ExifImage'].map((tag) => [
          after[`${tag}Width`],
          after[`${tag}Height`],
        ]);
        const expected = size ?? [undefined, undefined];
        expect(stated, `${name} of ${rotations}`).to.deep.equal([expected, expected]);
        expect(after).to.include({ 'IFD0:Orientation': 1, 'IFD0:Artist': 'A' });
        expect(after).to.not.have.any.keys('IFD1:ThumbnailLength', 'ExifTool:Warning');
      }
    }
  });

  it('of a JPEG with fill bytes before the metadata has no rotated thumbnail', async () => {
    const source = await withEverything('jpg');
    const [start, fill] = [source.subarray(0, 2), Buffer.alloc(3, 0xff)];
    const filled = Buffer.concat([start, fill, source.subarray(2)]);
    const { body } = await convert(service.base, filled, { format: 'jpg', strip_metadata: 'false' });
    const after = await tagsOf(body);
    expect(after).to.include({ 'IFD0:Artist': 'A', 'IFD0:ImageWidth': 80, 'IFD0:ImageHeight': 120 });
    expect(after['XMP-tiff:Orientation'] ?? 1).to.equal(1);
    expect(after).to.not.have.property('IFD1:ThumbnailLength');
  });

  it('of an image that is upright keeps its thumbnail', async () => {
    const folder = await makeTempDir('upright');
    await opened().jpeg().toFile(join(folder, 'a.jpg'));
    await opened().resize(24, 16).jpeg().toFile(join(folder, 'thumbnail.jpg'));
    const [image, thumbnail] = ['a.jpg', 'thumbnail.jpg'].map((name) => join(folder, name));
    execFileSync('exiftool', ['-q', '-overwrite_original', `-ThumbnailImage<=${thumbnail}`, `${image}`]);
    const source = await readFile(join(folder, 'a.jpg'));
    const { body } = await convert(service.base, source, { format: 'jpg', strip_metadata: 'false' });
    expect(await tagsOf(body)).to.have.property('IFD1:ThumbnailLength');
  });
});
