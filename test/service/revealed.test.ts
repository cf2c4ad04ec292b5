// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
/**
 * @module What metadata gives away, as ExifTool reads it: the kinds in headers, and the values of
 * `reveal`.
 */
import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import sharp from 'sharp';
import { littleUint16, littleUint32 } from '../../scripts/fixtures/boxes.ts';
import { withChunk, withSegment } from '../../scripts/fixtures/writers.ts';
import { TAG } from '../../src/images/containers/ifd.ts';
import { REVEALED_KINDS, type RevealedKind } from '../../src/images/revealed/fields-table.ts';
import type { Revealed } from '../../src/images/revealed/read-revealed.ts';
import { converted, expectSuccess, fixture, fixturePath, identify, sendBatch } from '../helpers/client.ts';
import { withTags } from '../helpers/exif.ts';
import { ALL_EXTRAS, extraPath } from '../helpers/extra.ts';
import { writeTempFile } from '../helpers/hooks.ts';
import { runInProcess } from '../helpers/in-process.ts';
import { useServiceWith } from '../helpers/service.ts';
import { readZip } from '../helpers/zip.ts';

/** Tags of ExifTool, the names of their fields in the API, and a value of each. */
const TAGS: readonly (readonly [tag: string, name: string, kind: RevealedKind, value: string])[] = [
  ['EXIF:Make', 'Make', 'camera', 'Maker'],
  ['EXIF:SerialNumber', 'SerialNumber', 'camera', '00123'],
  ['EXIF:Artist', 'Artist', 'owner', 'Zoë'],
  ['EXIF:OwnerName', 'OwnerName', 'owner', 'Ann'],
  ['EXIF:Software', 'Software', 'software', 'Editor 1.0'],
  ['EXIF:DateTimeOriginal', 'DateTimeOriginal', 'time', '2024:05:01 10:11:12'],
  ['EXIF:UserComment', 'UserComment', 'comment', 'Grüße'],
  ['EXIF:XPComment', 'XPComment', 'comment', 'at the lake'],
  ['XMP-xmp:CreatorTool', 'xmp:CreatorTool', 'software', 'Tool'],
  ['XMP-dc:Description', 'dc:description', 'comment', 'A <lake> & a hill'],
  ['XMP-aux:SerialNumber', 'aux:SerialNumber', 'camera', '77'],
];
const PLACE = ['-GPSLatitude=48.137154', '-GPSLatitudeRef=N', '-GPSLongitude=11.5', '-GPSLongitudeRef=W'];

const ALL_TAGS = TAGS.map(([tag, , , value]) => `-${tag}=${value}`);

/** Returns a JPEG with a value of each kind. Its thumbnail shows another picture. */
async function tagged(...more: readonly string[]): Promise<Buffer> {
  const thumbnail = await sharp(await fixture('scene.png'))
    .resize(16)
    .jpeg()
    .toBuffer();
  const path = await writeTempFile('thumbnail.jpg', thumbnail);
  const file = await withTags('scene.jpg', await fixture('scene.jpg'), ...ALL_TAGS, ...PLACE, ...more);
  return withTags('scene.jpg', file, `-ThumbnailImage<=${path}`);
}

/** Adds a position to a little-endian BigTIFF, which ExifTool cannot write. */
function withPlace(file: Buffer): Buffer {
  const number = (value: number): Buffer => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(BigInt(value));
    return bytes;
  };
  const entry = (tag: number, type: number, count: number, value: Buffer): Buffer =>
    Buffer.concat([littleUint16(tag), littleUint16(type), number(count), value, Buffer.alloc(8)], 20);
  const fractions = (...values: readonly number[]): Buffer =>
    Buffer.concat(values.flatMap((value) => [littleUint32(value * 4), littleUint32(4)]));
  const [ascii, rational, byte, ifd] = [2, 5, 1, 18];
  const start = Number(file.readBigUInt64LE(8));
  const count = Number(file.readBigUInt64LE(start));
  const place = file.length + 2 * 24;
  const directory = [
    entry(1, ascii, 2, Buffer.from('N')),
    entry(2, rational, 3, number(file.length)),
    entry(3, ascii, 2, Buffer.from('W')),
    entry(4, rational, 3, number(file.length + 24)),
    entry(5, byte, 1, Buffer.from([1])),
    entry(6, rational, 1, fractions(519.5)),
  ];
  const first = file.subarray(start + 8, start + 8 + 20 * count);
  const parts = [
    file,
    fractions(48, 30, 0),
    fractions(11, 15, 0),
    number(directory.length),
    Buffer.concat(directory),
    number(0),
    number(count + 1),
    first,
    entry(TAG.gps, ifd, 1, number(place)),
    number(0),
  ];
  const changed = Buffer.concat(parts);
  number(changed.length - 20 * (count + 1) - 16).copy(changed, 8);
  return changed;
}

const sourcePath = (name: string): string =>
  /heic|jxl|jp2|psd|pdf|cur/.test(name) ? extraPath(name) : fixturePath(name);

/** Returns the kinds of which ExifTool finds a value. */
async function kindsIn(name: string, file: Buffer): Promise<RevealedKind[]> {
  const path = await writeTempFile(name, file);
  const [tags] = JSON.parse(execFileSync('exiftool', ['-j', '-G1', path]).toString());
  const names = Object.keys(tags);
  const tests: Readonly<Record<RevealedKind, RegExp>> = {
    place: /^GPS:GPSLatitude$/,
    time: /:DateTimeOriginal$/,
    camera: /:(Make|SerialNumber)$/,
    owner: /:(Artist|OwnerName)$/,
    software: /^(IFD0:Software|XMP-xmp:CreatorTool)$/,
    comment: /:(UserComment|XPComment|Description)$/,
    thumbnail: /^IFD1:ThumbnailImage$/,
  };
  return REVEALED_KINDS.filter((kind) => names.some((one) => tests[kind].test(one)));
}

describe('what metadata gives away', () => {
  const own = useServiceWith(ALL_EXTRAS);
  const reveal = async (file: Buffer): Promise<Revealed> =>
    (await identify(own.base, file, { reveal: 'true' })).revealed;
  const listed = (headers: Headers, name: string): string[] => headers.get(name)?.split(', ') ?? [];

  for (const name of [
    'scene.jpg',
    'scene.png',
    'scene.webp',
    'scene.tiff',
    'scene.avif',
    'scene.heic',
    'scene.jxl',
  ])
    it(`is in the headers of a result of ${name}, as ExifTool finds it in both`, async () => {
      const type = name.split('.')[1] as string;
      const source =
        type === 'jpg'
          ? await tagged()
          : await withTags(name, await readFile(sourcePath(name)), ...ALL_TAGS, ...PLACE);
      const before = await kindsIn(name, source);
      expect(before).to.include.members(['place', 'time', 'camera', 'owner']);
      for (const metadata of ['none', 'copyright', 'all']) {
        const { headers, body } = await converted(own.base, source, { format: 'webp', metadata });
        const after = await kindsIn('result.webp', body);
        if (metadata === 'none') expect(after, metadata).to.deep.equal([]);
        else if (metadata === 'copyright') expect(after, metadata).to.not.include('place');
        else if (type === 'jpg') expect(after).to.deep.equal(REVEALED_KINDS);
        expect(listed(headers, 'x-removed-metadata'), metadata).to.deep.equal(
          before.filter((kind) => !after.includes(kind)),
        );
        expect(listed(headers, 'x-kept-metadata'), metadata).to.deep.equal(
          before.filter((kind) => after.includes(kind)),
        );
      }
    });

  it('is in no header of a result of an image without metadata', async () => {
    const { headers } = await converted(own.base, await fixture('scene.jpg'));
    expect([headers.get('x-removed-metadata'), headers.get('x-kept-metadata')]).to.deep.equal([null, null]);
  });

  it('is found in the directory of a TIFF without EXIF', async () => {
    const source = await withTags('scene.tiff', await fixture('scene.tiff'), '-IFD0:Artist=Zoë');
    const { headers } = await converted(own.base, source);
    expect(listed(headers, 'x-removed-metadata')).to.include('owner').and.not.include('place');
  });

  it('is read from a BigTIFF, whose entries have space for a fraction', async () => {
    const source = withPlace(
      await sharp(await fixture('scene.png'))
        .tiff({ bigtiff: true })
        .toBuffer(),
    );
    const path = await writeTempFile('big.tiff', source);
    // ExifTool has names of other directories for those of a position in a BigTIFF.
    const [tags] = JSON.parse(execFileSync('exiftool', ['-j', '-u', path]).toString());
    expect(tags).to.include({ InteropVersion: '48 30 0', Exif_0x0006: 519.5 });
    const { values } = await reveal(source);
    expect(values.map(({ name, value }) => [name, value])).to.deep.equal([
      ['GPSPosition', '48.500000, -11.250000'],
      ['GPSAltitude', '-519.5 m'],
    ]);
  });

  it('states that turning a photo removes its thumbnail, with all metadata', async () => {
    const source = await tagged('-n', '-Orientation=6');
    const { headers, body } = await converted(own.base, source, { format: 'jpg', metadata: 'all' });
    expect(await kindsIn('turned.jpg', body)).to.not.include('thumbnail');
    expect(listed(headers, 'x-removed-metadata')).to.deep.equal(['thumbnail']);
  });

  it('is stated for a PDF with the data of a JPEG', async () => {
    const fields = { format: 'pdf', lossless: 'true' };
    const kept = await converted(own.base, await tagged(), { ...fields, metadata: 'all' });
    expect(kept.body.includes('00123')).to.equal(true);
    expect(listed(kept.headers, 'x-kept-metadata')).to.deep.equal(REVEALED_KINDS);
    const removed = await converted(own.base, await tagged(), fields);
    expect(removed.body.includes('00123')).to.equal(false);
    expect(listed(removed.headers, 'x-removed-metadata')).to.deep.equal(REVEALED_KINDS);
  });

  it('has the positions of the files in a batch, and is in its manifest', async () => {
    const files = [
      ['a.jpg', await fixture('scene.jpg')],
      ['b.jpg', await tagged()],
    ] as const;
    const { headers, body } = await expectSuccess(sendBatch(own.base, files, { manifest: 'true' }));
    expect(headers.get('x-removed-metadata')).to.match(/^place;files="1", time;files="1", /);
    const list = (await readZip(body)).find(({ name }) => name === 'manifest.json');
    const [plain, photo] = JSON.parse(`${list?.content}`);
    expect(plain).to.not.have.property('metadata');
    expect(photo.metadata).to.deep.equal({ removed: REVEALED_KINDS, kept: [] });
  });

  it('is in the report of the command line', async () => {
    const path = await writeTempFile('photo.jpg', await tagged());
    const { lines } = await runInProcess(['convert', path, '-o', `${path}.webp`, '--json']);
    expect(JSON.parse(lines[0] as string).metadata).to.deep.equal({ removed: REVEALED_KINDS, kept: [] });
  });

  it('is listed with its values by reveal, as ExifTool reads them', async () => {
    const source = await tagged();
    const { values, thumbnail, complete } = await reveal(source);
    for (const [, name, kind, value] of TAGS)
      expect(values.map(({ source: _, ...one }) => one)).to.deep.include({ kind, name, value });
    expect(values[0]).to.deep.equal({
      kind: 'place',
      source: 'exif',
      name: 'GPSPosition',
      value: '48.137154, -11.500000',
    });
    const path = await writeTempFile('tagged.jpg', source);
    const expected = execFileSync('exiftool', ['-b', '-ThumbnailImage', path]);
    expect(Buffer.from(thumbnail?.base64 ?? '', 'base64').equals(expected)).to.equal(true);
    expect(complete).to.equal(true);
  });

  it('is not listed without reveal', async () => {
    const plain = JSON.stringify(await identify(own.base, await tagged(), { plan: 'true', width: '10' }));
    for (const [, , , value] of TAGS) expect(plain).to.not.include(value);
    expect(plain).to.not.include('48.137');
    expect(plain).to.not.include('revealed');
  });

  it('includes the comments of a JPEG, the texts of a PNG and the comments of a GIF', async () => {
    const chunk = Buffer.from('Author\0Ann', 'latin1');
    for (const [file, expected] of [
      [withSegment(await fixture('scene.jpg'), 0xfe, Buffer.from('hello')), ['comment', 'Comment', 'hello']],
      [withChunk(await fixture('scene.png'), 'tEXt', chunk), ['owner', 'Author', 'Ann']],
      [
        await withTags('moving.gif', await fixture('moving.gif'), '-Comment=gif text'),
        ['comment', 'Comment', 'gif text'],
      ],
    ] as const) {
      const { values } = await reveal(file);
      expect(values.map(({ kind, name, value }) => [kind, name, value])).to.deep.include(expected);
    }
  });

  it('is read from the XMP of a GIF, unless it does not end as XMP of a GIF must', async () => {
    const source = await withTags('moving.gif', await fixture('moving.gif'), ...ALL_TAGS);
    const found = await reveal(source);
    expect(found.values.map(({ source: _, ...one }) => one)).to.deep.equal(
      TAGS.filter(([tag]) => tag.startsWith('XMP'))
        .map(([, name, kind, value]) => ({ kind, name, value }))
        .sort((one, other) => REVEALED_KINDS.indexOf(one.kind) - REVEALED_KINDS.indexOf(other.kind)),
    );
    expect(found.complete).to.equal(true);
    const { headers } = await converted(own.base, source);
    expect(listed(headers, 'x-removed-metadata')).to.deep.equal(['camera', 'software', 'comment']);
    const damaged = Buffer.from(source);
    damaged[damaged.indexOf(Buffer.of(1, 255, 254, 253)) + 2] = 255;
    expect(await reveal(damaged)).to.deep.include({ values: [], complete: false });
  });

  it('is complete only for types whose metadata is read', async () => {
    for (const name of ['scene.svg', 'scene.pdf', 'scene.ico', 'scene.cur', 'scene.jp2', 'scene.psd'])
      expect((await reveal(await readFile(sourcePath(name)))).complete, name).to.equal(false);
    for (const name of ['scene.bmp', 'scene.gif', 'scene.png', 'scene.webp', 'scene.jxl'])
      expect((await reveal(await readFile(sourcePath(name)))).complete, name).to.equal(true);
  });

  it('is bounded and has no control characters, whatever a file contains', async () => {
    const hostile = `\u001b[31m${'A'.repeat(5000)}`;
    const comments = Array.from({ length: 150 }, (_, at) => Buffer.from(`${at}\u202e\u0007${hostile}`));
    const file = comments.reduce<Buffer>(
      (jpeg, comment) => withSegment(jpeg, 0xfe, comment),
      await fixture('scene.jpg'),
    );
    const { values, complete } = await reveal(file);
    expect(values).to.have.length(100);
    expect(complete).to.equal(false);
    for (const { value } of values) {
      expect(value.length).to.be.at.most(201);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: what must not be there
      expect(value).to.not.match(/[\u0000-\u001f\u007f-\u009f\u202e]/);
    }
  });

  it('is printed for the files of a folder that give something away', async () => {
    const path = await writeTempFile('photo.jpg', await tagged());
    const plain = await writeTempFile('plain.jpg', await fixture('scene.jpg'));
    const { lines, status } = await runInProcess(['identify', '--reveal', plain, path]);
    expect(status).to.equal(0);
    expect(lines.slice(0, 2)).to.deep.equal([path, '  place      GPSPosition: 48.137154, -11.500000']);
    expect(lines).to.include('  camera     SerialNumber: 00123');
    expect(lines.join('\n')).to.not.include(plain);
  });
});
