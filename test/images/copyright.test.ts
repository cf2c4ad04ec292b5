// @unit
import { expect } from 'chai';
import fc from 'fast-check';
import { box } from '../../scripts/fixtures/boxes.ts';
import { heif } from '../../scripts/fixtures/heif-writer.ts';
import { bufferReader } from '../../src/images/containers/file.ts';
import { encodeCopyright } from '../../src/images/copyright/blocks.ts';
import { readExifTexts, writeExif } from '../../src/images/copyright/exif-fields.ts';
import {
  type Copyright,
  decodeText,
  type FieldText,
  selectTexts,
} from '../../src/images/copyright/fields.ts';
import { readIptcTexts, toResource, writeIptc } from '../../src/images/copyright/iptc.ts';
import { readCopyright } from '../../src/images/copyright/read.ts';
import { readXmpTexts, writeXmp } from '../../src/images/copyright/xmp.ts';
import { inspect } from '../../src/images/index.ts';
import { writeTempFile } from '../helpers/hooks.ts';

const readBack = async ({ exif, iptc, xmp }: ReturnType<typeof encodeCopyright>): Promise<FieldText[]> => [
  ...((exif && (await readExifTexts(bufferReader(exif)))) ?? []),
  ...(iptc ? readIptcTexts(toResource(iptc)) : []),
  ...((xmp && readXmpTexts(xmp)) ?? []),
];
const plain = (texts: readonly FieldText[]) =>
  texts.map(({ field, text, language }) => [field, text, ...(language ? [language] : [])]);
const xmpOf = (description: string): Buffer =>
  Buffer.from(
    `<x:xmpmeta xmlns:x="adobe:ns:meta/"><r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:d="http://purl.org/dc/elements/1.1/" xmlns:xmpRights="http://ns.adobe.com/xap/1.0/rights/" xmlns:o="http://example.com/">${description}</r:RDF></x:xmpmeta>`,
  );

/** Texts of all fields, in the order in which they are read. */
const ALL: Copyright['texts'] = [
  { field: 'exif:Artist', text: 'Zoë' },
  { field: 'exif:Copyright', text: 'Photographer' },
  { field: 'exif:Copyright', text: 'Editor' },
  { field: 'iptc:By-line', text: 'Zoë' },
  { field: 'iptc:By-line', text: 'Yan' },
  { field: 'iptc:Credit', text: 'Agency' },
  { field: 'iptc:CopyrightNotice', text: '© Agency' },
  { field: 'dc:creator', text: '<Zoë> & "Yan"' },
  { field: 'dc:rights', text: 'All\nrights', language: 'x-default' },
  { field: 'dc:rights', text: 'Alle Rechte', language: 'de-AT' },
  { field: 'xmpRights:Marked', text: 'True' },
  { field: 'xmpRights:Owner', text: 'Owner' },
];

describe('the copyright of an image', () => {
  it('is the same after it is written and read, for formats with and without a place for IPTC', async () => {
    const copyright = { texts: ALL, isPartial: false };
    expect(plain(await readBack(encodeCopyright(copyright, 'jpg')))).to.deep.equal(plain(ALL));
    const inWebp = await readBack(encodeCopyright(copyright, 'webp'));
    const withoutIptc = ALL.filter(({ field }) => !field.startsWith('iptc:'));
    expect(plain(inWebp)).to.have.deep.members([
      ...plain(withoutIptc),
      ['photoshop:Credit', 'Agency'], // XMP has its own creator and rights
    ]);
  });

  it('needs no block without its fields', () => {
    const none = { texts: [], isPartial: false };
    expect(encodeCopyright(none, 'jpg')).to.deep.equal({ exif: undefined, iptc: undefined, xmp: undefined });
  });

  it('is decoded as UTF-8, or else as Windows-1252, without control characters', () => {
    expect(decodeText(Buffer.from('© Zoë\0\x07 '))).to.equal('© Zoë');
    expect(decodeText(Buffer.from([0xa9, 0x20, 0x80]))).to.equal('© €');
    expect(decodeText(Buffer.alloc(8193, 'a'))).to.equal(undefined);
  });

  it('is partial if a text is too long, or if there are too many texts', () => {
    const long = selectTexts([{ field: 'exif:Artist', text: undefined }, ...ALL], false);
    expect(long).to.deep.include({ isPartial: true });
    expect(long.texts.length).to.equal(ALL.length);
    const field = 'dc:creator';
    const many = Array.from({ length: 500 }, (_, at) => ({ field, text: `Name ${at}` }) as const);
    expect(selectTexts(many, false)).to.include({ isPartial: true });
    const large = many.map((one) => ({ ...one, text: one.text + '&'.repeat(1000) }));
    const kept = selectTexts(large, false);
    expect(kept.isPartial).to.equal(true);
    expect(writeXmp(kept.texts)?.length).to.be.below(65_000); // fits into a segment of a JPEG
    expect(selectTexts([...ALL, ...ALL], false)).to.deep.equal(selectTexts(ALL, false));
  });

  it('is read from attributes, elements, containers and resources of XMP with any prefixes', () => {
    const description = `<r:Description r:about="" xmpRights:Marked="True" o:Marked="no">
      <d:creator><r:Seq><r:li>A &amp; B &#x26; C</r:li><r:li> D </r:li></r:Seq></d:creator>
      <d:rights><r:Alt><r:li xml:lang="de">&lt;Recht&gt;</r:li></r:Alt></d:rights>
      <xmpRights:WebStatement r:resource="https://example.com/"/>
      <xmpRights:Certificate>plain</xmpRights:Certificate><xmpRights:Owner><r:Bag/></xmpRights:Owner>
      <o:creator>other</o:creator><o:nested><d:creator>nested</d:creator></o:nested></r:Description>`;
    expect(plain(readXmpTexts(xmpOf(description)) ?? [])).to.deep.equal([
      ['xmpRights:Marked', 'True'],
      ['dc:creator', 'A & B & C'],
      ['dc:creator', 'D'],
      ['dc:rights', '<Recht>', 'de'],
      ['xmpRights:WebStatement', 'https://example.com/'],
      ['xmpRights:Certificate', 'plain'],
    ]);
  });

  it('of XMP has no entities of a document type, and no other encoding', () => {
    const bomb = Buffer.concat([Buffer.from('<!DOCTYPE x [<!ENTITY a "b">]>'), xmpOf('')]);
    expect(readXmpTexts(bomb)).to.deep.equal([]);
    const entity = xmpOf(
      '<r:Description><d:creator>&a;&#0;&#x110000;&constructor;</d:creator></r:Description>',
    );
    expect(plain(readXmpTexts(entity) ?? [])).to.deep.equal([['dc:creator', '&a;&constructor;']]);
    expect(readXmpTexts(Buffer.from(xmpOf('').toString(), 'utf16le').fill(0xff, 0, 1))).to.equal(undefined);
  });

  it('is found in IPTC among other resources of Photoshop', () => {
    const other = Buffer.from('8BIM\x04\x04\0\0\0\0\0\0', 'latin1');
    other.writeUInt16BE(0x03ed, 4);
    const resources = Buffer.concat([other, toResource(writeIptc(ALL) as Buffer)]);
    expect(plain(readIptcTexts(resources))).to.deep.equal(
      plain(ALL.filter(({ field }) => field.startsWith('iptc:'))),
    );
  });

  it('is partial if a block of a file is damaged, too large or of no known type', async () => {
    const container = Buffer.from('\0\0\0\x0cJXL \r\n\x87\n', 'latin1');
    for (const [name, body, isPartial] of [
      ['xml ', writeXmp(ALL) as Buffer, false],
      ['brob', Buffer.alloc(0), false], // names no kind of metadata
      ['brob', Buffer.from('Exif'), true],
      ['brob', Buffer.from('xml damaged'), true],
      ['Exif', Buffer.alloc(4, 255), true],
      ['xml ', Buffer.alloc(300 * 1024), true],
    ] as const) {
      const path = await writeTempFile('x.jxl', Buffer.concat([container, box(name, body)]));
      expect(await readCopyright(path, await inspect(path, 'jxl'))).to.include({ isPartial });
    }
    const psd = await writeTempFile('x.psd', '8BPS');
    expect((await readCopyright(psd, { type: 'psd', metadata: ['xmp'] })).isPartial).to.equal(true);
  });

  it('is read from the XMP of an AVIF after an item with JSON, which is no metadata', async () => {
    const xmp = xmpOf('<r:Description xmpRights:Owner="Zoë"/>');
    const items = [
      { type: 'av01', data: Buffer.from('image'), properties: [] },
      { type: 'mime', data: Buffer.from('{"a":1}'), contentType: 'application/json', properties: [] },
      { type: 'mime', data: xmp, contentType: 'application/rdf+xml', properties: [] },
    ];
    const path = await writeTempFile('x.avif', heif({ brand: 'avif', items }));
    const info = await inspect(path, 'avif');
    expect(info.metadata).to.deep.equal(['xmp']);
    const { texts, isPartial } = await readCopyright(path, info);
    expect([plain(texts), isPartial]).to.deep.equal([[['xmpRights:Owner', 'Zoë']], false]);
  });

  it('of damaged EXIF, IPTC and XMP is read without an error, and never beyond the limits', async () => {
    const blocks = [writeExif(ALL), toResource(writeIptc(ALL) as Buffer), writeXmp(ALL)] as Buffer[];
    await fc.assert(
      fc.asyncProperty(
        fc.nat({ max: 2 }),
        fc.array(fc.tuple(fc.nat({ max: 2000 }), fc.nat({ max: 255 })), { maxLength: 8 }),
        fc.nat({ max: 2000 }),
        async (which, changes, cut) => {
          const damaged = Buffer.from(blocks[which] as Buffer).subarray(0, cut);
          for (const [at, byte] of changes) if (at < damaged.length) damaged[at] = byte;
          const found = [
            ...((await readExifTexts(bufferReader(damaged))) ?? []),
            ...readIptcTexts(damaged),
            ...(readXmpTexts(damaged) ?? []),
          ];
          for (const { text = '' } of found) expect(Buffer.byteLength(text)).to.be.at.most(4 * 8192);
        },
      ),
      { seed: 20_261_127, numRuns: 2000 },
    );
  });
});
