// @full
import { crc32 } from 'node:zlib';
import { expect } from 'chai';
import { type MadeEntry, makeZip } from '../../src/cli/doctor/attack-files.ts';
import { type Fields, type FormFile, fixture, sendBatch } from '../helpers/client.ts';
import { useService } from '../helpers/service.ts';
import { errorsIn, namesIn, readZip } from '../helpers/zip.ts';

const MIB = 1024 * 1024;
const SVG = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>');

/** Creates Info-ZIP's Unicode Path extra field (APPNOTE 6.3.10, section 4.6.9). */
function unicodePath(name: string, unicodeName: string): Buffer {
  const field = Buffer.alloc(9 + Buffer.byteLength(unicodeName));
  field.writeUInt16LE(0x7075, 0);
  field.writeUInt16LE(field.length - 4, 2);
  field.writeUInt8(1, 4);
  field.writeUInt32LE(crc32(name), 5);
  field.write(unicodeName, 9);
  return field;
}

describe('POST /batch with a ZIP archive', () => {
  const service = useService();
  let photo: Buffer;
  let png: Buffer;
  before(async () => {
    [photo, png] = [await fixture('scene.jpg'), await fixture('scene.png')];
  });

  const batch = (files: readonly FormFile[], fields: Fields = {}) => sendBatch(service.base, files, fields);
  const refusal = async (entries: readonly MadeEntry[], fields: Fields = {}) =>
    (await batch([['x.zip', makeZip(entries)]], fields)).outcome;

  it('converts the files of the archive in its order, whatever its name, among the other uploaded files', async () => {
    const zip = makeZip([
      { name: 'photos/2024/one.jpg', content: photo, deflate: true },
      { name: 'two.png', content: png },
      { name: 'windows\\three.png', content: png },
    ]);
    const answer = await batch([
      ['zero.jpg', photo],
      ['x.jpg', zip],
      ['four.jpg', photo],
    ]);
    const names = ['zero.webp', 'photos/2024/one.webp', 'two.webp', 'windows/three.webp', 'four.webp'];
    expect(await namesIn(answer)).to.deep.equal(names);
  });

  it('skips folders, and files that file managers add, in any folder and any case', async () => {
    const junk = [
      'Thumbs.db',
      'album/thumbs.DB',
      'desktop.ini',
      'album/Desktop.ini',
      '._a.png',
      'album/._b.jpg',
      '.DS_Store',
      'album/.DS_Store',
      '__MACOSX/album/._a.png',
      'album/__MACOSX/a.png',
    ].map((name) => ({ name, content: Buffer.from('no image') }));
    const album = { name: 'album/', content: Buffer.alloc(0), mode: 0o40755 };
    const zip = makeZip([album, ...junk, { name: 'album/a.png', content: png }]);
    expect(await namesIn(await batch([['x.zip', zip]]))).to.deep.equal(['album/a.webp']);
  });

  it('keeps the folders of the archive, with names that every system permits, and numbers for equal names', async () => {
    const made = (names: readonly string[]) =>
      makeZip(names.map((name) => ({ name, content: SVG, flags: 0x800 })));
    const answer = await batch(
      [
        [
          'one.zip',
          made(['x/a.svg', 'X/A.svg', 'y/a.svg', './z/./a.svg', 'con/ nul ./a:b/c?.svg', 'e\u0301/é.svg']),
        ],
        ['two.zip', made(['x/a.svg', 'b.webp/c.svg', 'b.svg', 'tab\t/c.svg'])],
        ['folder/flat.svg', SVG],
      ],
      { manifest: 'true' },
    );
    const names = [
      'x/a.webp',
      'X/A (2).webp',
      'y/a.webp',
      'z/a.webp',
      '_con/_nul/a_b/c_.webp',
      'é/é.webp',
      'x/a (3).webp',
      'b.webp/c.webp',
      'b (2).webp',
      'tab/c.webp',
      'flat.webp',
    ];
    expect(await namesIn(answer)).to.deep.equal([...names, 'manifest.json']);
    const manifest = (await readZip(answer.body)).at(-1)?.content as Buffer;
    const listed = JSON.parse(manifest.toString()) as { name: string; source: string }[];
    expect(listed.map(({ name }) => name)).to.deep.equal(names);
    expect(listed[0]?.source).to.equal('x/a.svg');
  });

  describe('for an entry name without the UTF-8 flag', () => {
    for (const [what, name, madeBy, expected] of [
      ['as UTF-8 if it is valid UTF-8 from Unix', Buffer.from('été 日本.png'), 3, 'été 日本.webp'],
      ['as UTF-8 if it is valid UTF-8 from macOS', Buffer.from('été.png'), 19, 'été.webp'],
      ['as UTF-8 if it is valid UTF-8 from Windows', Buffer.from('été.png'), 0, 'été.webp'],
      ['as code page 437 otherwise from Windows', Buffer.from('\x82t\x82.png', 'latin1'), 0, 'été.webp'],
      [
        'with replacement characters otherwise from Unix',
        Buffer.from('\x82t.png', 'latin1'),
        3,
        '\ufffdt.webp',
      ],
    ] as const) {
      it(`decodes it ${what}`, async () => {
        const answer = await batch([['x.zip', makeZip([{ name, madeBy, content: png }])]]);
        expect(await namesIn(answer)).to.deep.equal([expected]);
      });
    }
  });

  it('counts the files of the archive towards the limit of twenty files', async () => {
    const many = Array.from({ length: 20 }, (_, at) => ({ name: `${at}.svg`, content: SVG }));
    const zip = makeZip(many);
    expect((await namesIn(await batch([['x.zip', zip]]))).length).to.equal(20);
    for (const files of [
      [['x.zip', makeZip([...many, { name: '20.svg', content: SVG }])]],
      [
        ['x.zip', zip],
        ['20.svg', SVG],
      ],
      [
        ['0.svg', SVG],
        ['x.zip', zip],
      ],
    ] as const) {
      expect((await batch(files)).outcome).to.equal('400 Too many files: at most 20 allowed in one request.');
    }
  });

  it('accepts an archive larger than MAX_FILE_BYTES if each of its files is smaller', async () => {
    const six = Buffer.concat([photo, Buffer.alloc(6 * MIB)]);
    const zip = makeZip(['a.jpg', 'b.jpg', 'c.jpg'].map((name) => ({ name, content: six })));
    expect(zip.length).to.be.above(10 * MIB);
    expect(await namesIn(await batch([['x.zip', zip]]))).to.deep.equal(['a.webp', 'b.webp', 'c.webp']);
  });

  it('limits the bytes of all archives of a request together', async () => {
    const padding = { name: '__MACOSX/padding', content: Buffer.alloc(110 * MIB) };
    const zip = makeZip([{ name: 'a.svg', content: SVG }, padding]);
    expect((await namesIn(await batch([['a.zip', zip]]))).length).to.equal(1);
    const { outcome } = await batch([
      ['a.zip', zip],
      ['b.zip', zip],
    ]);
    expect(outcome).to.match(/^413 File 2 \("b\.zip"\) is too large/);
  });

  it('limits the actual size of an entry, not its declared size', async () => {
    const bomb = Buffer.concat([photo, Buffer.alloc(30 * MIB)]);
    expect(await refusal([{ name: 'bomb.jpg', content: bomb, deflate: true }])).to.equal(
      '413 File 1 ("bomb.jpg") is too large: at most 10.5 MB (10485760 bytes) allowed.',
    );
    const lying = await refusal([{ name: 'bomb.jpg', content: bomb, deflate: true, declaredSize: 5000 }]);
    expect(lying).to.match(/^400 File 1 \("x\.zip"\) is damaged/);
  });

  describe('rejects an archive', () => {
    const file = (name: string | Buffer, more: Partial<MadeEntry> = {}): MadeEntry => ({
      name,
      content: png,
      ...more,
    });
    const padded = (start: string, bytes: number) => Buffer.concat([Buffer.from(start), Buffer.alloc(bytes)]);
    const UNSAFE = 'is damaged or not safe to read.';
    const NESTED = 'contains another archive.';
    const LONG = 'contains a file with a name of more than 1024 bytes.';
    const folder = (name: string) => file(name, { content: Buffer.alloc(0) });
    for (const [what, problem, entries] of [
      ['with a path that leaves the archive', UNSAFE, () => [file('../a.png')]],
      ['with a Windows path that leaves the archive', UNSAFE, () => [file('..\\a.png')]],
      ['with an absolute path', UNSAFE, () => [file('/etc/a.png')]],
      ['with a drive letter', UNSAFE, () => [file('C:\\a.png')]],
      [
        'with a path that leaves the archive, in UTF-8 without the flag',
        UNSAFE,
        () => [file(Buffer.from('../é.png'))],
      ],
      [
        'that is encrypted',
        'is encrypted.',
        () => [file('a.png', { flags: 1, declaredSize: png.length - 12 })],
      ],
      [
        'with a symbolic link',
        'contains a symbolic link.',
        () => [file('a.png', { mode: 0o120777, content: Buffer.from('/etc/passwd') })],
      ],
      [
        'that contains another archive',
        NESTED,
        () => [file('a.png'), file('b.zip', { content: makeZip([file('c.png')]) })],
      ],
      [
        'that contains a gzip file',
        NESTED,
        () => [file('a.svgz', { content: Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0, 0]) })],
      ],
      [
        'that contains a large archive',
        NESTED,
        () => [file('b.zip', { content: padded('PK\x03\x04', 30 * MIB), deflate: true })],
      ],
      [
        'that contains a spanned archive',
        NESTED,
        () => [file('b.zip', { content: padded('PK\x07\x08', 100) })],
      ],
      ['without entries', 'contains no files.', () => []],
      ['that contains only folders', 'contains no files.', () => [folder('a/')]],
      [
        'with more than 1000 entries',
        'has more than 1000 entries.',
        () => Array.from({ length: 1001 }, (_, at) => folder(`${at}/`)),
      ],
      ['with a name of more than 1 KiB', LONG, () => [file('a.png'), file(`${'x'.repeat(1021)}.png`)]],
      [
        'with a name of more than 1 KiB in an extra field',
        LONG,
        () => [file('a.png', { extraField: unicodePath('a.png', `${'x'.repeat(1021)}.png`) })],
      ],
    ] as const) {
      it(what, async () => {
        const expected = `400 File 1 ("x.zip") ${problem}`;
        expect(await refusal(entries())).to.equal(expected);
        // An error of the archive is not an error of one file: on_error=skip does not apply.
        expect(await refusal(entries(), { on_error: 'skip' })).to.equal(expected);
      });
    }

    for (const [what, damage] of [
      ['that is truncated', (zip: Buffer) => zip.subarray(0, -30)],
      [
        'with a wrong checksum',
        (zip: Buffer) => {
          for (const at of [14, zip.indexOf('PK\x01\x02') + 16]) zip.writeUInt32LE(0x12345678, at);
          return zip;
        },
      ],
      ['with content that does not decompress', (zip: Buffer) => zip.fill(0xff, 60, 300)],
    ] as const)
      it(what, async () => {
        const zip = damage(makeZip([file('a.png', { deflate: what.includes('decompress') })]));
        expect((await batch([['x.zip', zip]])).outcome).to.match(/^400 File 1 \("\w\.\w+"\) is damaged/);
      });
  });

  it('converts the valid files of the archive with on_error=skip', async () => {
    const zip = makeZip([
      { name: 'a.png', content: png },
      { name: 'note.txt', content: Buffer.from('text') },
      { name: 'bomb.png', content: Buffer.concat([png, Buffer.alloc(11 * MIB)]), deflate: true },
      { name: 'b.png', content: png },
    ]);
    const answer = await batch([['x.zip', zip]], { on_error: 'skip' });
    expect(await namesIn(answer)).to.deep.equal(['a.webp', 'b.webp', 'errors.json']);
    expect((await errorsIn(answer)).map(({ index, file, error }) => [index, file, error.code])).to.deep.equal(
      [
        [1, 'note.txt', 415],
        [2, 'bomb.png', 413],
      ],
    );
  });
});
