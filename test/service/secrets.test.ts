// @full: many formats
// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
/**
 * @module Texts that a file can contain, each of which a result without metadata must not contain.
 */

import { constants, deflateSync, inflateSync } from 'node:zlib';
import { expect } from 'chai';
import { box } from '../../scripts/fixtures/boxes.ts';
import { jpegOf, opened } from '../../scripts/fixtures/edge-case.ts';
import { pdf } from '../../scripts/fixtures/pdf.ts';
import { psd } from '../../scripts/fixtures/psd.ts';
import { scene, solid } from '../../scripts/fixtures/scene.ts';
import {
  bmp24,
  cur,
  ico,
  profileSegment,
  tiff,
  withChunk,
  withSegment,
} from '../../scripts/fixtures/writers.ts';
import { declaredProfile, powerCurve } from '../../src/images/colour/declared-colour.ts';
import {
  ALL_INPUT_TYPES,
  ALL_OUTPUT_TYPES,
  type InputType,
  type OutputType,
} from '../../src/tables/formats.ts';
import { converted, type Fields, fixture, formOf, postForm } from '../helpers/client.ts';
import { withTags } from '../helpers/exif.ts';
import { ALL_EXTRAS, extra } from '../helpers/extra.ts';
import { useServiceWith } from '../helpers/service.ts';
import { readZip } from '../helpers/zip.ts';

/** The text in every place but those of the other text. */
const SECRET = 'Zq7-sekret';
/** The text in the profile, the artist and the copyright, which `metadata=copyright` keeps. */
const KEPT = 'Zq8-sekret';
/** Tags of the artist and the copyright. */
const KEPT_TAGS = [315, 33432];

const XMP = `<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmp:Label="${SECRET}"/></rdf:RDF></x:xmpmeta>`;
/** EXIF of one tag: the description of the image. */
const EXIF = tiff([
  { tags: { 270: SECRET, 305: SECRET, 37510: Buffer.from(SECRET) }, strip: Buffer.alloc(2) },
]);
/** IPTC of one dataset: the caption. */
const IPTC = Buffer.concat([Buffer.of(0x1c, 2, 120, 0, SECRET.length), Buffer.from(SECRET)]);
const PHOTOSHOP = Buffer.concat([
  Buffer.from('Photoshop 3.0\x008BIM\x04\x04\0\0\0\0\0', 'latin1'),
  Buffer.of(IPTC.length),
  IPTC,
  Buffer.alloc(IPTC.length % 2),
]);
/** A moment of the year 2021, as a chunk of a PNG has it. */
const TIME = Buffer.of(7, 0xe5, 12, 24, 11, 58, 59);
const text = (keyword: string): Buffer => Buffer.from(`${keyword}\0${SECRET}`, 'latin1');

/** Keywords of texts in a PNG: those of the standard, and names of properties in ImageMagick. */
const KEYWORDS = [
  'Title',
  'Author',
  'Description',
  'Copyright',
  'Creation Time',
  'Software',
  'Disclaimer',
  'Warning',
  'Source',
  'Comment',
  'Collection',
  'comment',
  'label',
  'caption',
  'title',
  'author',
  'signature',
  'tiff:artist',
  'tiff:software',
  'tiff:document',
  'tiff:make',
  'tiff:model',
  'tiff:hostcomputer',
  'tiff:timestamp',
  'tiff:copyright',
  'exif:ImageDescription',
  'pdf:title',
  'pdf:author',
  'pdf:subject',
  'icc:description',
  'date:create',
  'XML:com.adobe.xmp',
  'Raw profile type iptc',
  'jpeg:comment',
];
/** ASCII tags of a TIFF (TIFF 6.0 and its supplements, EXIF, GDAL), and unassigned ones. */
const TEXT_TAGS = [269, 270, 271, 272, 285, 305, 306, 315, 316, 337, 33432, 42112, 65000];

const profile = async (): Promise<Buffer> => {
  const primaries = {
    red: [0.68, 0.32],
    green: [0.265, 0.69],
    blue: [0.15, 0.06],
    white: [0.3127, 0.329],
  } as const;
  const bytes = await declaredProfile({ primaries, transfer: powerCurve(2.2) });
  const whole = Buffer.concat([bytes, Buffer.from(KEPT)]);
  whole.writeUInt32BE(whole.length, 0);
  return whole;
};

const SECRET_TAGS = ['IFD0:ImageDescription', 'IFD0:Software', 'XMP-xmp:Label'].map(
  (tag) => `-${tag}=${SECRET}`,
);
/** Adds EXIF and XMP to a file. */
const withSecrets = (name: string, file: Buffer): Promise<Buffer> => withTags(name, file, ...SECRET_TAGS);

const trailing = (file: Buffer): Buffer => Buffer.concat([file, Buffer.from(SECRET)]);

async function secretPng(side?: number): Promise<Buffer> {
  const texts = KEYWORDS.map((keyword) => ['tEXt', text(keyword)] as const);
  const compressed = Buffer.concat([Buffer.from('Compressed\0\0', 'latin1'), deflateSync(SECRET)]);
  const itxt = (keyword: string, body: string) => Buffer.from(`${keyword}\0\0\0\0\0${body}`, 'latin1');
  const chunks: (readonly [string, Buffer])[] = [
    ...texts,
    ['zTXt', compressed],
    ['iTXt', itxt('XML:com.adobe.xmp', XMP)],
    ['iTXt', itxt('Comment', SECRET)],
    ['eXIf', EXIF],
    ['prVt', Buffer.from(SECRET)],
    ['tIME', TIME],
    ['iCCP', Buffer.concat([Buffer.from('name\0\0', 'latin1'), deflateSync(await profile())])],
  ];
  const png = await (side ? opened().resize(side, side, { fit: 'fill' }) : opened()).png().toBuffer();
  return trailing(chunks.reduce<Buffer>((file, [name, body]) => withChunk(file, name, body), png));
}

const secretTiff = (tags: readonly number[]): Buffer => {
  const page = (grey: number) => {
    const { data, width, height } = solid(16, [grey, 90, 200, 255]);
    return {
      tags: {
        256: width,
        257: height,
        258: [8, 8, 8],
        262: 2,
        277: 3,
        278: height,
        ...Object.fromEntries(tags.map((tag) => [tag, `${KEPT_TAGS.includes(tag) ? KEPT : SECRET}-${tag}`])),
        700: Buffer.from(XMP),
        33723: IPTC,
        34377: PHOTOSHOP.subarray(14),
      },
      strip: data.filter((_, at) => at % 4 !== 3) as Buffer,
    };
  };
  return trailing(tiff([page(10), page(99)]));
};

/** A file of each type with the text in every place that the type has. */
const FILES: Readonly<Record<InputType, () => Promise<Buffer>>> = {
  png: secretPng,
  async jpg() {
    const segments: (readonly [number, Buffer])[] = [
      [0xe1, Buffer.concat([Buffer.from('Exif\0\0', 'latin1'), EXIF])],
      [0xe1, Buffer.from(`http://ns.adobe.com/xap/1.0/\0${XMP}`, 'latin1')],
      [0xed, PHOTOSHOP],
      [0xfe, Buffer.from(SECRET)],
      ...Array.from({ length: 12 }, (_, at) => [0xe3 + at, Buffer.from(`x\0${SECRET}`)] as const).filter(
        ([marker]) => marker !== 0xed && marker !== 0xee,
      ),
      [0xe2, profileSegment(await profile())],
    ];
    return trailing(
      segments.reduce<Buffer>(
        (file, [marker, body]) => withSegment(file, marker, body),
        await jpegOf(opened()),
      ),
    );
  },
  async gif() {
    const plain = await fixture('moving.gif');
    const comment = Buffer.concat([Buffer.of(0x21, 0xfe, SECRET.length), Buffer.from(SECRET), Buffer.of(0)]);
    const application = Buffer.concat([
      Buffer.of(0x21, 0xff, 11),
      Buffer.from('XMP DataXMP'),
      Buffer.of(SECRET.length),
      Buffer.from(SECRET),
      Buffer.of(0),
    ]);
    return trailing(Buffer.concat([plain.subarray(0, -1), comment, application, plain.subarray(-1)]));
  },
  bmp: async () => trailing(bmp24(scene())),
  tiff: async () => secretTiff(TEXT_TAGS),
  svg: async () =>
    Buffer.from(
      `<!-- ${SECRET} --><svg xmlns="http://www.w3.org/2000/svg" width="60" height="40" id="${SECRET}"><title>${SECRET}</title><desc>${SECRET}</desc><metadata>${XMP}</metadata><rect width="30" height="40" fill="teal"><title>${SECRET}</title></rect></svg>`,
    ),
  avif: async () => trailing(await withSecrets('scene.avif', await fixture('scene.avif'))),
  ico: async () => trailing(ico([{ side: 16, bytes: await secretPng(16) }])),
  async webp() {
    const webp = await opened()
      .withExif({ IFD0: { ImageDescription: SECRET } })
      .withXmp(XMP)
      .withIccProfile('p3')
      .webp()
      .toBuffer();
    const chunk = Buffer.concat([Buffer.from('PRVT\x0a\0\0\0', 'latin1'), Buffer.from(SECRET)]);
    const whole = Buffer.concat([webp, chunk]);
    whole.writeUInt32LE(whole.length - 8, 4);
    return trailing(whole);
  },
  heic: async () => trailing(await withSecrets('scene.heic', await extra('scene.heic'))),
  jxl: async () =>
    Buffer.concat([
      box('JXL ', Buffer.from('\r\n\x87\n', 'latin1')),
      box('ftyp', Buffer.from('jxl \0\0\0\0jxl ')),
      box('jxlc', await extra('scene.jxl')),
      box('Exif', Buffer.concat([Buffer.alloc(4), EXIF])),
      box('xml ', Buffer.from(XMP)),
      box('prvt', Buffer.from(SECRET)),
    ]),
  jp2: async () =>
    Buffer.concat([
      await extra('scene.jp2'),
      box('xml ', Buffer.from(XMP)),
      box('uuid', Buffer.from(`${'x'.repeat(16)}${SECRET}`)),
    ]),
  psd: async () =>
    trailing(
      psd(scene(), {
        resources: [
          [1028, IPTC],
          [1060, Buffer.from(XMP)],
          [1058, EXIF],
          [1008, Buffer.from(SECRET)],
        ],
        layers: 2,
        name: SECRET,
      }),
    ),
  cur: async () => trailing(cur([{ side: 16, bytes: await secretPng(16) }])),
  pdf: async () =>
    trailing(
      pdf([{ width: 60, height: 40, content: '1 0 0 rg 0 0 30 40 re f' }], {
        objects: [`<< /Title (${SECRET}) /Author (${SECRET}) /Keywords (${SECRET}) >>`],
        trailer: '/Info 3 0 R',
      }),
    ),
};

/** Options that take different paths to a result. */
const PATHS: Readonly<Record<string, Fields>> = {
  'no option': {},
  'metadata=copyright': { metadata: 'copyright' },
  'a width': { width: '12' },
  'lossless=true': { lossless: 'true' },
  max_bytes: { max_bytes: '20000' },
  'a crop and borders': { crop: '0,0,10,10', width: '30', height: '20', fit: 'contain', background: '#f00' },
  'trim and rotate': { trim: 'yes', rotate: '90' },
  'pages and frames': { pages: 'all', frames: 'all' },
  'a watermark': { watermark_scale: '50' },
};
const WITH_LIMIT: readonly OutputType[] = ['webp', 'jpg', 'avif', 'jxl'];

/**
 * Returns the bytes of a file, and those of each of its streams that are compressed with Deflate.
 */
function streamsOf(file: Buffer): Buffer[] {
  const streams = [file];
  for (let at = file.indexOf(0x78); at >= 0; at = file.indexOf(0x78, at + 1)) {
    if (file.length - at < 2 || file.readUInt16BE(at) % 31 !== 0) continue;
    try {
      streams.push(inflateSync(file.subarray(at), { finishFlush: constants.Z_SYNC_FLUSH }));
    } catch {} // not a stream
  }
  return streams;
}

/** Encodings of a text: Latin-1, UTF-16 of both byte orders, and hexadecimal digits of these. */
function encodingsOf(secret: string): Buffer[] {
  const little = Buffer.from(secret, 'utf16le');
  const plain = [Buffer.from(secret), little, Buffer.from(little).swap16()];
  const digits = plain.map((bytes) => bytes.toString('hex'));
  return [...plain, ...[...digits, ...digits.map((one) => one.toUpperCase())].map((one) => Buffer.from(one))];
}

const holds = (file: Buffer, secret: string): boolean =>
  streamsOf(file).some((stream) => encodingsOf(secret).some((one) => stream.includes(one)));

describe('a text anywhere in a file', () => {
  const own = useServiceWith(ALL_EXTRAS);

  for (const type of ALL_INPUT_TYPES)
    it(`of the type ${type} is in no result without metadata`, async () => {
      const file = await FILES[type]();
      expect(holds(file, SECRET), 'the file').to.equal(true);
      const mark = await secretPng(16);
      for (const [path, fields] of Object.entries(PATHS))
        for (const format of ALL_OUTPUT_TYPES) {
          if ((path === 'max_bytes' && !WITH_LIMIT.includes(format)) || (type === 'pdf' && format === 'pdf'))
            continue;
          const files = [
            ['a', file] as const,
            ...(path === 'a watermark' ? [['m.png', mark, 'watermark'] as const] : []),
          ];
          const form = formOf({ format, ...fields }, files);
          const { outcome, body } = await postForm(`${own.base}/convert`, form);
          expect(outcome, `${format} with ${path}`).to.equal('200');
          expect(holds(body, SECRET), `${format} with ${path}`).to.equal(false);
          expect(body.includes(TIME), `time: ${format} with ${path}`).to.equal(false);
          if (path !== 'metadata=copyright')
            expect(holds(body, KEPT), `what is kept: ${format} with ${path}`).to.equal(false);
        }
    });

  it('is in no result of a request for several', async () => {
    const variants = ALL_OUTPUT_TYPES.filter((format) => format !== 'pdf').map((format) => ({
      name: format,
      format,
    }));
    for (const type of ALL_INPUT_TYPES) {
      const { body } = await converted(own.base, await FILES[type](), { variants: JSON.stringify(variants) });
      for (const { name, content } of await readZip(body))
        expect(holds(content, SECRET), `${type}: ${name}`).to.equal(false);
    }
  });
});
