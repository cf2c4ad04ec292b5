// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
/** @module XMP that results keep, and that must not state what is not true of them. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { jpegOf, opened } from '../../scripts/fixtures/edge-case.ts';
import { withSegment } from '../../scripts/fixtures/writers.ts';
import { correctXmp } from '../../src/images/xmp-edits.ts';
import { convert, converted, expectSuccess, type Fields } from '../helpers/client.ts';
import { tagsOf } from '../helpers/exif.ts';
import { ALL_EXTRAS, runDjxl } from '../helpers/extra.ts';
import { writeTempFile } from '../helpers/hooks.ts';
import { useServiceWith } from '../helpers/service.ts';
import { readZip } from '../helpers/zip.ts';

const RDF = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"';
const packet = (description: string): string =>
  `<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF ${RDF}>${description}</rdf:RDF></x:xmpmeta>`;
const item = (semantic: string): string =>
  `<rdf:li rdf:parseType="Resource"><C:Item I:Semantic="${semantic}" I:Mime="image/jpeg" I:Length="31738"/></rdf:li>`;
/** XMP of an Ultra HDR photo, with other prefixes than usual. */
const ULTRA_HDR = packet(
  '<rdf:Description xmlns:C="http://ns.google.com/photos/1.0/container/" xmlns:I="http://ns.google.com/photos/1.0/container/item/"' +
    ' xmlns:h="http://ns.adobe.com/hdr-gain-map/1.0/" h:Version="1.0" xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmp:Label="kept">' +
    `<C:Directory><rdf:Seq>${item('Primary')}${item('GainMap')}</rdf:Seq></C:Directory></rdf:Description>`,
);

/** Whether the metadata of a JPEG XL is compressed, which ExifTool cannot read without a module. */
const isCompressed = (body: Buffer): boolean => body.includes('brob');

describe('kept XMP', () => {
  const own = useServiceWith(ALL_EXTRAS);
  const withXmp = async (xmp: string): Promise<Buffer> =>
    withSegment(await jpegOf(opened()), 0xe1, Buffer.from(`http://ns.adobe.com/xap/1.0/\0${xmp}`, 'latin1'));

  it('declares no gain map that is gone, and a note says so in every mode', async () => {
    const file = await withXmp(ULTRA_HDR);
    for (const format of ['jpg', 'png', 'tiff', 'avif', 'jxl', 'webp', 'gif', 'pdf'])
      for (const metadata of ['none', 'copyright', 'all']) {
        const { notes, body } = await converted(own.base, file, { format, metadata, width: '60' });
        expect(notes, `${format} ${metadata}`).to.match(/(^|, )hdr-removed/);
        const declared = ['31738', 'GainMap', 'h:Version'].filter((text) => body.includes(text));
        expect(declared, `${format} ${metadata}`).to.deep.equal([]);
        if (metadata !== 'all' || ['webp', 'gif', 'pdf'].includes(format) || isCompressed(body)) continue;
        const tags = await tagsOf(body, format);
        expect(tags['XMP-xmp:Label'], format).to.equal('kept');
        expect(
          Object.keys(tags).filter((tag) => /hdrgm|GContainer/i.test(tag)),
          format,
        ).to.deep.equal([]);
      }
  });

  it('is not changed in a JPEG XL from which the JPEG can be restored', async () => {
    const file = await withXmp(ULTRA_HDR);
    const fields = { format: 'jxl', lossless: 'true', metadata: 'all' };
    const { notes, body } = await converted(own.base, file, fields);
    expect(notes).to.equal(null);
    expect((await runDjxl(body, 'jpg')).equals(file)).to.equal(true);
  });

  it('is in a JPEG XL with the pixels of a JPEG that libjxl cannot restore, and declares no gain map', async () => {
    const file = await withXmp(ULTRA_HDR);
    const second = await jpegOf(opened());
    const profile = readFileSync(new URL('../../scripts/fixtures/srgb-1998.icc', import.meta.url));
    const part = (at: number) =>
      Buffer.concat([Buffer.from(`ICC_PROFILE\0${String.fromCharCode(at, 2)}`), halfOf(at)]);
    const halfOf = (at: number) => profile.subarray(...(at === 1 ? [0, 1000] : [1000]));
    const swapped = [1, 2].reduce((whole, at) => withSegment(whole, 0xe2, part(at)), file);
    for (const [what, bytes, notes] of [
      ['without an end', file.subarray(0, -2), 'hdr-removed, truncated-input'],
      [
        'with half of its data',
        file.subarray(0, file.length - second.length / 2),
        'hdr-removed, truncated-input',
      ],
      ['with its profile in the wrong order', swapped, 'hdr-removed, metadata-partly-kept'],
      [
        'with EXIF of no bytes',
        withSegment(file, 0xe1, Buffer.from('Exif\0\0')),
        'hdr-removed, metadata-partly-kept',
      ],
    ] as const) {
      const answer = await converted(own.base, bytes, { format: 'jxl', lossless: 'true', metadata: 'all' });
      // libjxl 0.11 restores a JPEG with EXIF of no bytes.
      if (answer.notes === null && what.endsWith('no bytes')) {
        expect((await runDjxl(answer.body, 'jpg')).equals(bytes)).to.equal(true);
        continue;
      }
      expect(answer.notes, what).to.equal(notes);
      const plain = await converted(own.base, bytes, { format: 'jxl', metadata: 'all' });
      expect(plain.notes, what).to.equal(notes);
      expect(answer.body.equals(plain.body), what).to.equal(true);
    }
  });

  /** Writes the description of a panorama with ExifTool: elements, and no gain map. */
  async function panorama(name: string, file: Buffer): Promise<Buffer> {
    const path = await writeTempFile(name, file);
    const sizes = { FullPanoWidthPixels: 120, FullPanoHeightPixels: 80, CroppedAreaImageWidthPixels: 120 };
    const places = { CroppedAreaImageHeightPixels: 80, CroppedAreaLeftPixels: 0, CroppedAreaTopPixels: 20 };
    const tags = Object.entries({
      ...sizes,
      ...places,
      ProjectionType: 'equirectangular',
      PoseHeadingDegrees: 200,
    });
    const args = tags.map(([tag, value]) => `-XMP-GPano:${tag}=${value}`);
    execFileSync('exiftool', ['-q', '-overwrite_original', ...args, '-XMP-xmp:Label=kept', path]);
    return readFile(path);
  }
  const panoramaIn = async (body: Buffer, format?: string) => {
    const tags = Object.entries(await tagsOf(body, format));
    return Object.fromEntries(
      tags.flatMap(([tag, value]) => (tag.startsWith('XMP-GPano:') ? [[tag.slice(10), value]] : [])),
    );
  };

  it('states the sizes of a panorama that was resized, and other properties as they were', async () => {
    for (const [name, make, formats] of [
      ['a.jpg', async () => jpegOf(opened()), ['jpg', 'png', 'tiff', 'avif', 'jxl']],
      ['a.png', async () => opened().png().toBuffer(), ['png', 'avif']],
      ['a.tiff', async () => opened().tiff().toBuffer(), ['jpg', 'tiff']],
    ] as const) {
      const file = await panorama(name, await make());
      for (const format of formats) {
        const { body } = await converted(own.base, file, { format, metadata: 'all', width: '30' });
        if (isCompressed(body)) continue;
        // ImageMagick 6 loses XMP of a PNG.
        if (name === 'a.png' && (await tagsOf(body, format))['XMP-xmp:Label'] === undefined) continue;
        expect(await panoramaIn(body, format), `${name} to ${format}`).to.include({
          FullPanoWidthPixels: 30,
          FullPanoHeightPixels: 20,
          CroppedAreaImageWidthPixels: 30,
          CroppedAreaImageHeightPixels: 20,
          CroppedAreaLeftPixels: 0,
          CroppedAreaTopPixels: 5,
          ProjectionType: 'equirectangular',
          PoseHeadingDegrees: 200,
        });
      }
    }
  });

  const EDITS: readonly Fields[] = [
    { crop: '0,0,60,80' },
    { rotate: '90' },
    { flip: 'horizontal' },
    { trim: '1' },
    { width: '40', height: '40', fit: 'cover' },
    { width: '40', height: '40', fit: 'contain' },
  ];
  for (const edit of EDITS)
    it(`has no panorama after ${JSON.stringify(edit)}`, async () => {
      const file = await panorama('a.jpg', await jpegOf(opened()));
      const { body } = await converted(own.base, file, { format: 'jpg', metadata: 'all', ...edit });
      expect(await panoramaIn(body)).to.deep.equal({});
      expect((await tagsOf(body))['XMP-xmp:Label']).to.equal('kept');
    });

  it('keeps a panorama of the same size as it is, and none for results of several sizes', async () => {
    const file = await panorama('a.jpg', await jpegOf(opened()));
    const { body } = await converted(own.base, file, { format: 'jpg', metadata: 'all' });
    expect(await panoramaIn(body)).to.deep.equal(await panoramaIn(file));
    const variants = JSON.stringify([
      { name: 'a', width: 30 },
      { name: 'b', width: 60 },
    ]);
    const several = await expectSuccess(
      convert(own.base, file, { format: 'jpg', metadata: 'all', variants }),
    );
    for (const { content } of await readZip(several.body))
      expect(await panoramaIn(content)).to.deep.equal({});
  });

  it('keeps its length, and takes linear time if it is hostile', () => {
    const sides = 'xmlns:G="http://ns.google.com/photos/1.0/panorama/" G:FullPanoWidthPixels="99" G:A="b"';
    const grown = Buffer.from(packet(`<rdf:Description ${sides}/>`));
    const { length } = grown;
    correctXmp(grown, { x: 2, y: 2 });
    expect(grown.length).to.equal(length);
    expect(grown.toString()).to.not.match(/G:(Full|A)/); // 198 needs another character
    const open = Buffer.from(packet(`<rdf:Description ${sides}>${'<G:A>'.repeat(40_000)}`));
    const before = process.cpuUsage();
    correctXmp(open, undefined);
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1000, 'ms').to.be.below(200);
  });
});
